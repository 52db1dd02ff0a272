"""The dashboard finds the shadows of a cluster by their topics, and reads all their scores."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW

from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.challengers import PushedChallengers
from traceweir.streams.board.dashboard.result_diff import NoDiffError
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_named, create_topics

pytestmark = pytest.mark.broker


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(settings)
    return settings


async def test_a_shadow_is_found_by_its_topic_and_all_its_scores_are_read(settings: Settings) -> None:
    topic = settings.topics.shadow_results("judge-b")
    create_named(settings, {topic: "delete"}, {})
    put_scores(
        settings.kafka_bootstrap_servers, [make_score("a"), make_score("b")], at=NOW - timedelta(days=9), topic=topic
    )
    found = PushedChallengers(settings)
    await found.look()
    assert found.shadows == ["judge-b"]
    scores = await asyncio.to_thread(found.scores, "judge-b")
    assert sorted(score.session_id for score in scores) == ["a", "b"]
    with pytest.raises(NoDiffError, match=r"results\.shadow\.dropped"):
        await asyncio.to_thread(found.scores, "dropped")

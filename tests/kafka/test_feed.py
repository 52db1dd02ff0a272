"""On Apache Kafka, a topic has an id: a store notices that its topics were deleted and created again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.feed import Feed
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

LIMIT_S = 60.0


async def test_a_topic_that_was_created_again_and_is_longer_now_is_refused(settings: Settings, tmp_path: Path) -> None:
    store, stored = open_store(tmp_path / "store.duckdb"), asyncio.Event()
    servers, topic = settings.kafka_bootstrap_servers, settings.topics.results
    put_scores(servers, [make_score("a")], topic=topic)
    first = Feed(settings, store, keep={}, now=lambda: NOW, changed=stored.set)
    running = asyncio.create_task(first.run())
    await asyncio.wait_for(stored.wait(), LIMIT_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert first.state.stored_rows == 1
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    client.delete_topics([topic])[topic].result(LIMIT_S)
    create_topics(settings)
    put_scores(servers, [make_score(name) for name in "aaaa"], topic=topic)

    with pytest.raises(StoreError, match=f"the topic {topic} was deleted and created again since the store read it"):
        await asyncio.wait_for(Feed(settings, store, keep={}, now=lambda: NOW).run(), LIMIT_S)

    assert store.query("SELECT count(*) AS n FROM results") == [{"n": 1}]

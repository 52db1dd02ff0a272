"""Scores on Apache Kafka: only committed ones are shown, a time is looked up, and a restarted broker loses none."""

from __future__ import annotations

from datetime import timedelta

import pytest
from aiokafka import AIOKafkaProducer
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.tools.results.reader import Results, ResultsError, ScoreFilter
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("restored_fetcher")]


def put(settings: Settings, *session_ids: str, hours_ago: int = 0) -> None:
    scores, topic = [make_score(name) for name in session_ids], f"{settings.topic_prefix}results"
    put_scores(settings.kafka_bootstrap_servers, scores, at=NOW - timedelta(hours=hours_ago), topic=topic)


async def shown(settings: Settings, wanted: ScoreFilter) -> set[str]:
    async with Results(settings, wanted) as results:
        return {found.score.session_id async for found in results.matching()}


async def test_reading_since_a_time_begins_at_the_first_record_of_that_time(settings: Settings) -> None:
    put(settings, "old", "old", hours_ago=2)
    put(settings, "old")
    since_ms = int((NOW - timedelta(hours=1)).timestamp() * 1000)
    home = partition_of(b"old", 4)

    async with BoundedReader(settings, f"{settings.topic_prefix}results", ResultsError) as reader:
        begins = await reader.begins_since(since_ms)

    assert begins == {number: 2 if number == home else 0 for number in range(4)}
    assert await shown(settings, ScoreFilter(since_ms=since_ms)) == {"old"}
    assert await shown(settings, ScoreFilter(since_ms=since_ms + 3_600_001)) == set()


async def test_scores_of_an_aborted_transaction_are_not_shown(settings: Settings) -> None:
    options = {"bootstrap_servers": settings.kafka_bootstrap_servers, "transactional_id": f"{settings.topic_prefix}w"}
    async with AIOKafkaProducer(**options) as worker:
        await worker.begin_transaction()
        await worker.send_and_wait(f"{settings.topic_prefix}results", make_score("lost").wire(), b"lost", partition=0)
        await worker.abort_transaction()
    put(settings, "kept")
    assert await shown(settings, ScoreFilter()) == {"kept"}


async def test_the_newest_record_is_found_before_records_of_aborted_transactions(settings: Settings) -> None:
    put(settings, "kept", hours_ago=2)
    put(settings, "kept", hours_ago=1)
    topic, home = f"{settings.topic_prefix}results", partition_of(b"kept", 4)
    options = {"bootstrap_servers": settings.kafka_bootstrap_servers, "transactional_id": f"{settings.topic_prefix}w"}
    async with AIOKafkaProducer(**options) as worker:
        for _ in range(3):
            await worker.begin_transaction()
            await worker.send_and_wait(topic, make_score("lost").wire(), b"lost", partition=home)
            await worker.abort_transaction()

    async with BoundedReader(settings, topic, ResultsError) as reader:
        times = await reader.times()

    assert times == tuple(int((NOW - timedelta(hours=hours)).timestamp() * 1000) for hours in (2, 1))


async def test_following_continues_after_a_restart_of_the_broker() -> None:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home) as cluster:
        settings = Settings(kafka_bootstrap_servers=cluster.bootstrap_servers)
        assert create_topics(settings).wrong == ()
        async with Results(settings, ScoreFilter()) as results:
            following = results.following(pytest.fail)
            put(settings, "before")
            assert (await anext(following)).score.session_id == "before"
            cluster.kill(1)
            cluster.start(1)
            cluster.wait()
            put(settings, "after")
            assert (await anext(following)).score.session_id == "after"
            await following.aclose()  # type: ignore[attr-defined]

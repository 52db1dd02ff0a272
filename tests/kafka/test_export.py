"""An exporter goes on where it stood, also when Kafka has removed the offsets of its group, with what waits there."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import ConnectionGroup, CoordinationType
from aiokafka.errors import CommitFailedError
from aiokafka.protocol.group import LeaveGroupRequest
from confluent_kafka.admin import AdminClient
from tests.support.dlq import Dlq
from tests.support.exporting import Clock, exporting, webhook_exporting
from tests.support.http_target import HttpTarget, Request, Said, http_target
from tests.support.results import make_score, put_scores

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.checkpoints import ExportTransactions
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.clients import client_of
from traceweir.streams.worker.kafka.member_offsets import member_of
from traceweir.streams.worker.kafka.topic_admin import create_topics, delete_topics

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("restored_fetcher")]


def put(settings: Settings, *names: str) -> set[str]:
    """Writes a score for each session, and returns their result ids."""
    scores = [make_score(name) for name in names]
    put_scores(settings.kafka_bootstrap_servers, scores, topic=settings.topics.results)
    return {score.result_id for score in scores}


def remove_offsets(settings: Settings, group: str) -> None:
    """Removes the offsets of a group, as Kafka does when no process of the group has run for a week."""
    client = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    client.delete_consumer_groups([group])[group].result(30)


@pytest.mark.parametrize("only_new", [False, True])
async def test_an_exporter_whose_offsets_have_expired_sends_what_came_since_and_says_so(
    settings: Settings, caplog: pytest.LogCaptureFixture, *, only_new: bool
) -> None:
    caplog.set_level(logging.INFO)
    group = f"{settings.topic_prefix}export"
    async with http_target() as target:
        async with exporting(settings, target.url, group=group):
            first = put(settings, *map(str, range(20)))
            await target.until(lambda target: set(target.ids) == first)
        assert "the group is new, and begins with the oldest record" in caplog.text
        remove_offsets(settings, group)
        target.accepted.clear()
        second = put(settings, *(f"while-away-{number}" for number in range(20)))
        async with exporting(settings, target.url, group=group, only_new=only_new):
            await target.until(lambda target: second <= set(target.ids))

    assert set(target.ids) == second
    assert "Kafka has removed the offsets of the group" in caplog.text


async def test_a_topic_that_was_created_again_is_read_whole_although_it_has_grown_past_the_offset(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    group = f"{settings.topic_prefix}export"
    async with http_target() as target:
        async with exporting(settings, target.url, group=group):
            first = put(settings, "a")
            await target.until(lambda target: set(target.ids) == first)
        delete_topics(settings, [settings.topics.results])
        create_topics(settings)
        target.accepted.clear()
        second = put(settings, *map(str, range(40)))
        async with exporting(settings, target.url, group=group):
            await target.until(lambda target: set(target.ids) == second)
    assert "the topic was deleted and created again" in caplog.text


def session_of(request: Request) -> str:
    return str(json.loads(request.body)["data"]["session_id"])


async def test_the_new_owner_of_a_partition_sends_what_waits_there(settings: Settings) -> None:
    """The first exporter owns all partitions, and the second joins it while events wait on each of them."""
    sessions = [f"bad-{number}" for number in range(12)]
    scores = [make_score(session, revision=revision) for revision in range(2) for session in sessions]
    put_scores(settings.kafka_bootstrap_servers, scores, at=utc_now(), topic=settings.topics.results)
    group, clock, recovered = f"{settings.topic_prefix}hook", Clock(60), asyncio.Event()

    def answer(request: Request) -> Said:
        return Said(200 if recovered.is_set() else 500)

    def senders(target: HttpTarget) -> dict[str, set[str]]:
        """The sessions whose events each exporter has sent."""
        found: dict[str, set[str]] = {"traceweir/1": set(), "traceweir/2": set()}
        for request in target.arrived:
            found[request.headers["User-Agent"]].add(session_of(request))
        return found

    async with (
        http_target(answer) as target,
        webhook_exporting(settings, target.url, group=group, now=clock, version="1") as first,
    ):
        await target.until(lambda target: senders(target)["traceweir/1"] == set(sessions))
        async with webhook_exporting(settings, target.url, group=group, now=clock, version="2"):
            await target.until(lambda target: bool(senders(target)["traceweir/2"]))
            recovered.set()
            await target.until(lambda target: len(target.accepted) >= len(scores))
    for session in sessions:
        revisions = [
            json.loads(each.body)["data"]["revision"] for each in target.accepted if session_of(each) == session
        ]
        assert revisions == [0, 1]
    assert first.relay.counts["given_up"] == 0


async def test_an_event_that_is_given_up_is_a_dead_letter_that_a_replay_sends_after_a_crash(
    settings: Settings, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The second event of the session is sent only after the first one was given up in a transaction."""
    names = ["s", *map(str, range(8))]
    scores = [make_score(name) for name in names] + [make_score("s", revision=1)]
    put_scores(settings.kafka_bootstrap_servers, scores, at=utc_now(), topic=settings.topics.results)
    group, clock = f"{settings.topic_prefix}hook", Clock(6 * 3600)
    dlq = Dlq(settings.kafka_bootstrap_servers, settings.topic_prefix, capfdbinary)
    refused = {("s", 0)}

    def event(request: Request) -> tuple[str, int]:
        data = json.loads(request.body)["data"]
        return data["session_id"], data["revision"]

    async with http_target(lambda request: Said(500 if event(request) in refused else 200)) as target:
        async with webhook_exporting(settings, target.url, group=group, now=clock) as exporter:
            await target.until(lambda target: ("s", 1) in map(event, target.accepted))
            exporter.crash()
        refused.clear()
        async with webhook_exporting(settings, target.url, group=group, now=clock):
            ended = await asyncio.to_thread(dlq, "replay", "--stage", "export")
            await target.until(lambda target: ("s", 0) in map(event, target.accepted))

    assert ended.out.decode() == f"1 dead letter sent: 1 to {settings.topics.export_waiting}\n"
    assert {event(request) for request in target.accepted} == {(name, 0) for name in names} | {("s", 1)}
    assert exporter.relay.counts["given_up"] == 1


@pytest.mark.parametrize(("value", "offset"), [(b"waits", 6), (None, 5)], ids=["further", "where it stood"])
async def test_an_exporter_that_has_lost_its_partitions_neither_sets_the_offset_back_nor_ends_what_waits(
    settings: Settings, value: bytes | None, offset: int
) -> None:
    """It does not know yet that Kafka has left it out of the group, as after a freeze."""
    place, group = TopicPartition(settings.topics.results, 0), f"{settings.topic_prefix}export"
    row = Output(settings.topics.export_waiting, 0, b"export@5@1", value)
    former_checkpoints, checkpoints = ExportTransactions(settings, group), ExportTransactions(settings, group)
    await former_checkpoints.open()
    await checkpoints.open()
    try:
        async with member(settings, group) as former:
            await former_checkpoints.write(former, [], {place: 5})
            await leave(former, group)
            async with member(settings, group) as owner:
                await checkpoints.write(owner, [], {place: 50})
                with pytest.raises(CommitFailedError):
                    await former_checkpoints.write(former, [row], {place: offset})
                assert await owner.committed(place) == 50
                # It waits for transactions that are open.
                async with BoundedReader(settings, row.topic, RuntimeError, up_to_all=True) as reader:
                    assert [record async for record in reader.records()] == []
    finally:
        await former_checkpoints.close()
        await checkpoints.close()


@asynccontextmanager
async def member(settings: Settings, group: str) -> AsyncIterator[AIOKafkaConsumer]:
    """Joins a group, and then asks it nothing for minutes."""
    options = consumer_options(settings)
    async with AIOKafkaConsumer(
        settings.topics.results,
        **options,
        group_id=group,
        enable_auto_commit=False,
        session_timeout_ms=300_000,
        heartbeat_interval_ms=299_000,
    ) as consumer:
        yield consumer


async def leave(consumer: AIOKafkaConsumer, group: str) -> None:
    """Lets Kafka forget a member that does not know it."""
    client = client_of(consumer)
    node = await client.coordinator_lookup(CoordinationType.GROUP, group)
    await client.send(node, LeaveGroupRequest(group, member_of(consumer).id), group=ConnectionGroup.COORDINATION)

"""Replays on Apache Kafka: records and marks are one transaction, and two replays at the same time double nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from tests.support.dlq import Dlq, letter

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.dead_letters import replay as sending
from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, DeadLetters, DeadLettersError
from traceweir.streams.tools.dead_letters.replay import ReplayStep, replay, resend
from traceweir.streams.worker.runtime.delivery import Transaction

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("restored_fetcher")]


@pytest.fixture
def dlq(settings: Settings, capfdbinary: pytest.CaptureFixture[bytes]) -> Dlq:
    return Dlq(settings.kafka_bootstrap_servers, settings.topic_prefix, capfdbinary)


def put(dlq: Dlq, count: int) -> None:
    dlq.put([letter(number, dlq.prefix) for number in range(count)])


def replay_steps(settings: Settings, *, dry_run: bool = False) -> AsyncGenerator[ReplayStep]:
    return replay(settings, DeadLetterFilter(), again=False, dry_run=dry_run)


async def sent(steps: AsyncIterator[ReplayStep]) -> list[str]:
    return [str(step.found.id) async for step in steps if step.outcome == "sent"]


async def collect(steps: AsyncIterator[ReplayStep], done: list[ReplayStep]) -> None:
    async for step in steps:
        done.append(step)  # noqa: PERF401  # Steps before an error must be kept.


def rows(settings: Settings, topic: str, isolation: str = "read_committed") -> Sequence[Message]:
    """Returns the records of a topic."""
    options = {
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "group.id": "reader-of-tests",
        "enable.partition.eof": True,
        "isolation.level": isolation,
    }
    consumer, found, ends = Consumer(options), list[Message](), 0
    consumer.assign([TopicPartition(settings.topic_prefix + topic, number, OFFSET_BEGINNING) for number in range(4)])
    while ends < 4:
        message = consumer.poll(30)
        assert message is not None, f"{topic} does not end"
        if message.error() is None:
            found.append(message)
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ends += 1
    consumer.close()
    return found


def keys(settings: Settings) -> list[bytes]:
    return sorted(message.key() for message in rows(settings, "traces"))


async def test_records_and_marks_become_visible_together(
    settings: Settings, dlq: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(dlq, 3)
    seen = []
    commit = AIOKafkaProducer.commit_transaction

    async def look_and_commit(producer: AIOKafkaProducer) -> None:
        uncommitted = await asyncio.to_thread(rows, settings, "traces", "read_uncommitted")
        seen.append((len(uncommitted), len(keys(settings)), len(rows(settings, "dead-letters"))))
        await commit(producer)

    monkeypatch.setattr(AIOKafkaProducer, "commit_transaction", look_and_commit)
    assert len(await sent(replay_steps(settings))) == 3

    assert seen == [(3, 0, 3)]
    assert (len(keys(settings)), len(rows(settings, "dead-letters"))) == (3, 6)
    assert set((await asyncio.to_thread(dlq.states)).values()) == {"replayed"}
    assert await sent(replay_steps(settings)) == []


async def test_a_second_replay_fences_the_first_and_no_record_is_sent_twice(
    settings: Settings, dlq: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "BATCH_RECORDS", 4)
    put(dlq, 20)
    async with aclosing(replay_steps(settings)) as first:
        done = [await anext(first)]  # The first transaction, which is committed.
        second = await sent(replay_steps(settings))
        with pytest.raises(DeadLettersError, match=r"another replay of this prefix has started.* It has sent 4 dead"):
            await collect(first, done)

    assert (len(done), len(second)) == (4, 16)
    assert keys(settings) == sorted(b"key %d" % number for number in range(20))


async def test_a_replay_waits_for_an_open_transaction_and_reads_the_marks_behind_it(
    settings: Settings, dlq: Dlq
) -> None:
    put(dlq, 4)
    letters = f"{settings.topic_prefix}dead-letters"
    options = {"bootstrap_servers": settings.kafka_bootstrap_servers}
    async with AIOKafkaProducer(**options, transactional_id=f"{settings.topic_prefix}worker-0") as worker:
        await worker.begin_transaction()
        for number in range(4):
            await worker.send_and_wait(letters, b"open", partition=number)
        assert len(await sent(sends_before_the_open_one(settings))) == 4
        async with DeadLetters(settings) as found:  # Reads up to the last stable offset.
            assert [each.replayed async for each in found.matching(DeadLetterFilter())] == [False] * 4

        second = asyncio.create_task(sent(replay_steps(settings)))
        done, _ = await asyncio.wait({second}, timeout=1)
        assert not done  # The replay waits for the open transaction before the marks.
        await worker.abort_transaction()
        assert await second == []
    assert len(keys(settings)) == 4


async def sends_before_the_open_one(settings: Settings) -> AsyncIterator[ReplayStep]:
    """Acts as a replay that read before the transaction was opened, and replay_steps now."""
    delivery = Transaction({"bootstrap_servers": settings.kafka_bootstrap_servers}, f"{settings.topic_prefix}dlq")
    await delivery.start()
    async with DeadLetters(settings) as letters:
        found = [each async for each in letters.matching(DeadLetterFilter())]
    topics = settings.topics
    marks = [
        Output(topics.dead_letters, each.id.partition, None, None, [("traceweir.replayed", str(each.id).encode())])
        for each in found
    ]
    await delivery.send({}, [*(resend(each, topics, 4) for each in found), *marks], {})
    await delivery.stop()
    for each in found:
        yield ReplayStep(each, "sent")


async def test_a_replay_that_fails_before_its_commit_sends_no_record(
    settings: Settings, dlq: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(dlq, 3)

    async def die(producer: AIOKafkaProducer) -> None:
        raise KeyError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(AIOKafkaProducer, "commit_transaction", die)
        with pytest.raises(KeyError):
            await sent(replay_steps(settings))

    assert len(await sent(replay_steps(settings))) == 3
    assert len(keys(settings)) == 3


async def test_a_dry_run_writes_no_record_and_fences_no_replay(
    settings: Settings, dlq: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "BATCH_RECORDS", 1)
    put(dlq, 2)
    async with aclosing(replay_steps(settings)) as replaying:
        await anext(replaying)
        before = [len(rows(settings, topic, "read_uncommitted")) for topic in ("traces", "dead-letters")]
        outcomes = [step.outcome async for step in replay_steps(settings, dry_run=True)]
        assert [len(rows(settings, topic, "read_uncommitted")) for topic in ("traces", "dead-letters")] == before
        assert len(await sent(replaying)) == 1
    assert sorted(outcomes) == ["already_replayed", "would_send"]


FENCED_AT_THIRD_SEND = """
import asyncio, os
from traceweir.streams.tools.dead_letters import replay
from traceweir.streams.cli.main import main
from traceweir.streams.worker.runtime.delivery import Transaction
send, count = replay._Sender.send, 0
async def fenced(sender):
    global count
    count += 1
    if count == 3:
        other = Transaction({"bootstrap_servers": os.environ["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"]},
                            os.environ["TRACEWEIR_TOPIC_PREFIX"] + "dlq")
        await other.start()
        await other.stop()
    return await send(sender)
replay.BATCH_RECORDS, replay._Sender.send = 1, fenced
main(["dlq", "replay", "--all"])
"""


def test_a_fenced_command_reports_the_other_replay_in_one_line(settings: Settings, dlq: Dlq) -> None:
    put(dlq, 4)
    ended = subprocess.run(
        [sys.executable, "-c", FENCED_AT_THIRD_SEND],
        env=os.environ | dlq.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("another replay of this prefix has started, so this replay stops. It has sent 2 ")
    assert ended.stderr.count("\n") == 1


def test_the_command_reports_what_it_sent_and_sends_each_record_once(settings: Settings, dlq: Dlq) -> None:
    put(dlq, 5)
    assert dlq("replay", "--all", "--dry-run").out.endswith(
        f"5 dead letters would be sent: 5 to {settings.topic_prefix}traces\n".encode()
    )
    first, second = dlq("replay", "--reason", "late"), dlq("replay", "--reason", "late")
    assert (first.code, first.out) == (0, f"5 dead letters sent: 5 to {settings.topic_prefix}traces\n".encode())
    assert (second.code, second.out[:22]) == (0, b"0 dead letters sent; 5")
    assert len(keys(settings)) == 5
    for message in rows(settings, "traces"):
        headers = dict(message.headers())
        assert headers.keys() == {"traceweir.replay", "traceweir.first_place", "traceweir.timestamp"}
        assert message.timestamp()[1] > int(headers["traceweir.timestamp"]) == 1_000

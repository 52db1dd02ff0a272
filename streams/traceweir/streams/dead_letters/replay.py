"""Replay: sends what dead letters keep back to where it came from, each at most once unless asked again.

On Apache Kafka the records and the marks that say so are one transaction, under one transactional id for all replays of a prefix: who
begins fences who was at it, and sees every mark that was made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Literal, NamedTuple

from aiokafka.errors import KafkaError, ProducerFenced
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from traceweir.schemas.dead_letter import KEPT_BYTES, PREFIX, REPLAY, REPLAYED
from traceweir.streams.dead_letters.originals import Originals
from traceweir.streams.dead_letters.reader import DeadLetters, DeadLettersError, Found, Wanted
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.topic_admin import check_partitions, reach
from traceweir.streams.runtime.delivery import Delivery, PlainSends, Transaction
from traceweir.streams.settings import Settings, aiokafka_options
from traceweir.streams.stages.base import MAX_BATCH_BYTES, Output, envelope_size
from traceweir.streams.topics import Topics

TIMESTAMP = PREFIX + "timestamp"
"""Header of a replayed record: its timestamp when it came first, in milliseconds since 1970."""
BATCH_RECORDS = 500
BATCH_BYTES = 4_000_000
"""A transaction takes so much at most: it must end long before the broker loses patience with it."""
ANSWER_TIMEOUT_S = 60.0
STOP_WITHIN_S = 5.0

Outcome = Literal["sent", "would_send", "already_replayed", "refused"]


class NotReplayable(Exception):  # noqa: N818  # an outcome that the caller handles
    """A dead letter that cannot be sent again; the message says why."""


class ReplayStep(NamedTuple):
    """What became of one dead letter."""

    found: Found
    outcome: Outcome
    to: tuple[str, int] | None = None
    """Topic and partition."""
    because: str | None = None
    """Why it cannot be sent again."""


async def replay(settings: Settings, wanted: Wanted, *, again: bool, dry_run: bool) -> AsyncGenerator[ReplayStep]:
    """Send the dead letters that are meant, and mark them; tell of each once that is done.

    Args:
        settings: Where Kafka is.
        wanted: Which ones.
        again: Whether to send also what was replayed before.
        dry_run: Send nothing, and fence nobody; tell what would be done.

    Raises:
        KafkaUnreachable: no broker answers.
        DeadLettersError: a topic is missing or wrong or cannot be read, another replay has begun, or the brokers stopped answering.
    """
    embedded = is_embedded(await asyncio.to_thread(reach, settings))
    topics = Topics.of(settings.topic_prefix)
    inputs = (topics.traces, topics.invocations, topics.sessions, topics.candidates)
    if problems := await asyncio.to_thread(check_partitions, settings, inputs):
        raise DeadLettersError("\n".join(problems))
    if dry_run:
        async with DeadLetters(settings) as letters, Originals(settings) as originals:
            async for found in letters.matching(wanted):
                yield (await _judged(found, originals, topics, settings.partitions, again))[0]
        return
    sender = _Sender(settings, transactions=settings.delivery != "at_least_once" and not embedded)
    try:
        await sender.start()  # before anything is read: from now on nobody else sends
        async with DeadLetters(settings, up_to_all=True) as letters, Originals(settings) as originals:
            async for found in letters.matching(wanted):
                step, output = await _judged(found, originals, topics, settings.partitions, again)
                if output is None:
                    yield step
                    continue
                sender.add(step, output)
                if sender.full:
                    for sent in await sender.send():
                        yield sent
            for sent in await sender.send():
                yield sent
    finally:
        await sender.stop()


def resend(found: Found, topics: Topics, partitions: int) -> Output:
    """The record that a dead letter was, for where it came from.

    A stray goes to the topic that it was first read from, at its home: only workers write strays. The timestamp is when it is sent, as with
    its own it would be `late` for its age alone; that stands in a header.

    Raises:
        NotReplayable: part of it is missing, or it names no place to go to.
    """
    letter = found.letter
    place = f"{letter.topic}[{letter.partition}]@{letter.offset}"
    if letter.size is not None:
        raise NotReplayable(
            f"only the first {KEPT_BYTES} of {letter.size} bytes are kept, and {place} does not hold the whole any more"
        )
    if letter.left_out is not None:
        raise NotReplayable(f"its key and headers were left out ({letter.left_out} bytes); they are at {place}")
    topic = letter.topic
    if topic == topics.strays:
        if letter.origin is None:
            raise NotReplayable("it is a stray, and does not say from which topic")
        topic = letter.origin
    if topic not in (topics.traces, topics.invocations, topics.sessions, topics.candidates):
        raise NotReplayable(f"topic {topic!r} is no input of a stage under this prefix")
    if not 0 <= letter.partition < partitions:
        raise NotReplayable(f"topic {topic!r} has no partition {letter.partition}")
    timestamp = found.at if letter.timestamp is None else letter.timestamp
    headers = [*letter.headers, (REPLAY, str(found.id).encode()), (TIMESTAMP, str(timestamp).encode())]
    if (size := envelope_size(letter.key, headers)) > KEPT_BYTES:
        raise NotReplayable(
            f"its key and headers would have {size} bytes with those of a replay; at most {KEPT_BYTES} are taken"
        )
    size = DefaultRecordBatchBuilder.estimate_size_in_bytes(letter.key, letter.value, headers)
    if size > MAX_BATCH_BYTES:
        raise NotReplayable(f"it would take {size} bytes to send; at most {MAX_BATCH_BYTES} are sent")
    return Output(topic, letter.partition, letter.key, letter.value, headers)


async def _judged(
    found: Found, originals: Originals, topics: Topics, partitions: int, again: bool
) -> tuple[ReplayStep, Output | None]:
    if found.replayed and not again:
        return ReplayStep(found, "already_replayed"), None
    try:
        output = resend(await originals.completed(found), topics, partitions)
    except NotReplayable as why:
        return ReplayStep(found, "refused", because=str(why)), None
    return ReplayStep(found, "would_send", (output.topic, output.partition)), output


class _Sender:
    """Sends records with their marks, many at once."""

    def __init__(self, settings: Settings, *, transactions: bool) -> None:
        self._letters = Topics.of(settings.topic_prefix).dead_letters
        self._servers, self._transactions = settings.kafka_bootstrap_servers, transactions
        options = aiokafka_options(settings)
        name = f"{settings.topic_prefix}dlq"
        self._delivery: Delivery = Transaction(options, name) if transactions else PlainSends(options)
        self._steps: list[ReplayStep] = []
        self._outputs: list[Output] = []
        self._bytes = self._sent = 0

    @property
    def full(self) -> bool:
        """Whether it is time to send."""
        return len(self._steps) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES

    async def start(self) -> None:
        """Fence other replays."""
        await self._within_reason(self._delivery.start())

    def add(self, step: ReplayStep, output: Output) -> None:
        """Take a record to send."""
        self._steps.append(step._replace(outcome="sent"))
        self._outputs.append(output)
        self._bytes += len(output.value or b"") + envelope_size(output.key, output.headers)

    async def send(self) -> list[ReplayStep]:
        """Send what was taken, and mark it; returns what is done."""
        steps, outputs = self._steps, self._outputs
        marks = [self._mark(step.found) for step in steps]
        # Where nothing holds them together the marks come last: it may come about that a record is sent twice, and not that one is lost.
        for batch in [[*outputs, *marks]] if self._transactions else [outputs, marks]:
            if batch:
                await self._within_reason(self._delivery.send([], batch, {}))
        self._steps, self._outputs, self._bytes = [], [], 0
        self._sent += len(steps)
        return steps

    async def stop(self) -> None:
        """Disconnect."""
        with suppress(TimeoutError, KafkaError):  # it would wait for a dead broker for ever
            await asyncio.wait_for(self._delivery.stop(), STOP_WITHIN_S)

    def _mark(self, found: Found) -> Output:
        return Output(self._letters, found.id.partition, None, None, [(REPLAYED, str(found.id).encode())])

    async def _within_reason(self, done: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await done
        except ProducerFenced:
            raise DeadLettersError(
                f"another replay of this prefix has begun, and this one gives way; it has sent {self._sent} dead letters, and none of them "
                "is sent twice. Once the other has ended, replay what is still open"
            ) from None
        except (KafkaError, TimeoutError) as error:
            again = (
                "sends what was not sent, and nothing twice" if self._transactions else "may send some a second time"
            )
            raise DeadLettersError(
                f"Kafka at {self._servers} stopped taking records ({error!r}); {self._sent} dead letters are sent for sure. See that it "
                f"runs and that this user may write to the topics; to replay again {again}"
            ) from error

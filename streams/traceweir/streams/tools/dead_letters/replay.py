"""Replays dead letters: sends their records back to the original topics, each at most once unless `again` is set.

On Apache Kafka one transaction contains the records and the marks that record the replay. All replays of a prefix
share one transactional id: a replay that starts fences a running replay, and sees every mark that the running replay
made.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from aiokafka.errors import KafkaError, ProducerFenced

from traceweir.schemas.alert import Alert
from traceweir.schemas.base import WireModel
from traceweir.schemas.dead_letter import FIRST_PLACE, KEPT_BYTES, PREFIX, REPLAY, REPLAYED
from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES, Output, envelope_size
from traceweir.streams.base.stages.record_limits import record_bytes
from traceweir.streams.base.topics import Topics, export_waiting_key
from traceweir.streams.tools.dead_letters.originals import Originals, UnreadableRecordsError
from traceweir.streams.tools.dead_letters.reader import (
    DeadLetterFilter,
    DeadLetters,
    DeadLettersError,
    FoundDeadLetter,
    LetterId,
)
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.topic_admin import check_partitions, reach
from traceweir.streams.worker.runtime.delivery import CheckpointDelivery, PlainSends, Transaction, stop_in_time

TIMESTAMP = PREFIX + "timestamp"
"""Header of a replayed record: the record's original timestamp, in milliseconds since 1970."""
BATCH_RECORDS = 500
BATCH_BYTES = 4_000_000
"""Limits of one transaction, in records and bytes: it must end long before the broker aborts it for its timeout."""
ANSWER_TIMEOUT_S = 60.0

Outcome = Literal["sent", "would_send", "already_replayed", "refused"]


class NotReplayable(Exception):  # noqa: N818  # an outcome that the caller handles
    """A dead letter cannot be sent again; the message states the reason."""


class ReplayStep(NamedTuple):
    """The outcome of the replay of one dead letter."""

    found: FoundDeadLetter
    outcome: Outcome
    to: tuple[str, int] | None = None
    """Topic and partition that receive the record."""
    because: str | None = None
    """Why the dead letter cannot be sent again; None if it can."""


async def replay(
    settings: Settings,
    wanted: DeadLetterFilter,
    *,
    again: bool,
    dry_run: bool,
    mended: Mapping[LetterId, bytes] = MappingProxyType({}),
) -> AsyncGenerator[ReplayStep]:
    """Sends the selected dead letters and marks them; yields the outcome of each after it is sent and marked.

    Args:
        settings: Where Kafka is.
        wanted: Selects the dead letters.
        mended: New values of dead letters by id, which replace the values of their records.
        again: Whether to send also dead letters that were replayed before.
        dry_run: Sends nothing and fences no other replay; yields what would be done.

    Raises:
        KafkaUnreachableError: no broker answers.
        DeadLettersError: a topic is missing or wrong or cannot be read, another replay has begun, or the brokers
            stopped answering.
    """
    embedded = is_embedded(await asyncio.to_thread(reach, settings))
    topics = settings.topics
    inputs = (topics.traces, topics.invocations, topics.sessions, topics.candidates)
    if problems := await asyncio.to_thread(check_partitions, settings, inputs):
        raise DeadLettersError("\n".join(problems))

    # A deployment without the stage collect has no OTLP topics, and one without exporters needs none for them.
    optional = (topics.otlp_spans, topics.otlp_logs, topics.export_waiting)
    missing = {
        name: problem for name in optional for problem in await asyncio.to_thread(check_partitions, settings, [name])
    }

    async def planned(found: FoundDeadLetter, originals: Originals) -> tuple[ReplayStep, list[Output]]:
        if found.replayed and not again:
            return ReplayStep(found, "already_replayed"), []
        try:
            if found.id in mended:
                wholes = [_mended(found, mended[found.id])]
            else:
                wholes = await originals.records(found)
            outputs = [resend(whole, topics, settings.partitions) for whole in wholes]
        except (NotReplayable, UnreadableRecordsError) as why:
            return ReplayStep(found, "refused", because=str(why)), []
        place = outputs[0].topic, outputs[0].partition
        if (problem := missing.get(place[0])) is not None:
            return ReplayStep(found, "refused", because=problem), []
        return ReplayStep(found, "would_send", place), outputs

    if dry_run:
        async with DeadLetters(settings) as dead_letter_reader, Originals(settings) as originals:
            async for found in dead_letter_reader.matching(wanted):
                yield (await planned(found, originals))[0]
        return
    sender = _Sender(settings, transactions=settings.delivery != "at_least_once" and not embedded)
    try:
        await (
            sender.start()
            # Before reading: this fences other replays, so that the marks read afterwards are complete.
        )
        async with DeadLetters(settings, up_to_all=True) as dead_letter_reader, Originals(settings) as originals:
            async for found in dead_letter_reader.matching(wanted):
                step, outputs = await planned(found, originals)
                if not outputs:
                    yield step
                    continue
                sender.add(step, outputs)
                if sender.full:
                    for sent in await sender.send():
                        yield sent
            for sent in await sender.send():
                yield sent
    finally:
        await sender.stop()


def resend(found: FoundDeadLetter, topics: Topics, partitions: int) -> Output:
    """Returns the record of a dead letter, as an output to the topic and partition that the record came from.

    A record of an added partition goes to the partition whose worker has read it. A record of the topic `strays` or
    `spans` goes to the topic that it was first read from, on its home partition, because only workers write to these
    topics. A score or alert that an exporter has not delivered goes to the topic on which those of this exporter wait. The new
    timestamp is the time of sending: with its original timestamp the record would be `late` because of its age alone. A
    header carries the original timestamp.

    Raises:
        NotReplayable: part of the record is missing, the record would be too large, or the topic or partition is
            unknown.
    """
    letter = found.letter
    place = f"{letter.topic}[{letter.partition}]@{letter.offset}"
    if letter.reason == "missed":
        raise NotReplayable(f"Kafka deleted the records up to {place} before they were read")
    if letter.size is not None:
        raise NotReplayable(
            f"only the first {KEPT_BYTES} of {letter.size} bytes are kept, and {place} no longer holds the whole record"
        )
    if letter.left_out is not None:
        raise NotReplayable(f"its key and headers were left out ({letter.left_out} bytes); they are at {place}")
    topic = letter.topic
    key = letter.key
    if topic in (topics.results, topics.alerts) and letter.group is not None and letter.timestamp is not None:
        sent: type[WireModel] = Score if topic == topics.results else Alert
        topic = topics.export_waiting
        key = export_waiting_key(letter.group, letter.offset, letter.timestamp)
        try:
            sent.model_validate_json(letter.value or b"")
        except ValueError:
            raise NotReplayable(
                f"its value is no {sent.__name__.lower()}, which an exporter could not send; mend the value"
            ) from None
    if topic in (topics.strays, topics.spans):
        if letter.origin is None:
            raise NotReplayable(
                f"its record comes from the internal topic {topic!r}, and the header with the original topic is missing"
            )
        topic = letter.origin
    if topic not in (
        topics.otlp_spans,
        topics.otlp_logs,
        topics.traces,
        topics.invocations,
        topics.sessions,
        topics.candidates,
        topics.export_waiting,
    ):
        raise NotReplayable(f"topic {topic!r} is not an input of a stage under this prefix")
    # A topic that was created again can lack the added partitions.
    partition = letter.partition % partitions if topic in topics.added_to() else letter.partition
    if letter.partition < 0 or partition >= partitions:
        raise NotReplayable(f"topic {topic!r} has no partition {letter.partition}")
    timestamp = found.at if letter.timestamp is None else letter.timestamp
    headers = [
        *letter.headers,
        (REPLAY, str(found.id).encode()),
        # The records of a session that was set aside have no offset, so all of them would have one place.
        *([(FIRST_PLACE, letter.refused_at.encode())] if letter.offset >= 0 else ()),
        (TIMESTAMP, str(timestamp).encode()),
    ]
    if (size := envelope_size(key, headers)) > KEPT_BYTES:
        raise NotReplayable(
            f"its key and headers would have {size} bytes with the headers of a replay; the limit is {KEPT_BYTES} bytes"
        )
    size = record_bytes(key, letter.value, headers)
    if size > MAX_BATCH_BYTES:
        raise NotReplayable(f"its record would need a batch of {size} bytes; the limit is {MAX_BATCH_BYTES} bytes")
    return Output(topic, partition, key, letter.value, headers)


def _mended(found: FoundDeadLetter, value: bytes) -> FoundDeadLetter:
    """Returns a dead letter with a new value.

    Raises:
        NotReplayable: the value is the one of the dead letter, so that the record would be rejected again.
    """
    letter = found.letter
    if letter.size is None and letter.value is not None and _same_json(letter.value, value):
        raise NotReplayable("its value is unchanged; mend the value, or replay the dead letter without --from")
    return replace(found, letter=replace(letter, value=value, size=None, sha256=None))


def _same_json(one: bytes, other: bytes) -> bool:
    """Returns whether two values are equal, or are the same JSON with other spaces between its values."""
    try:
        # The texts are compared, because in Python `true` equals 1, and 1 equals 1.0.
        return one == other or json.dumps(json.loads(one)) == json.dumps(json.loads(other))
    except (ValueError, RecursionError):
        return False


class _Sender:
    """Sends records with their marks, in batches."""

    def __init__(self, settings: Settings, *, transactions: bool) -> None:
        self._letters = settings.topics.dead_letters
        self._servers = settings.kafka_bootstrap_servers
        self._transactions = transactions
        options = producer_options(settings)
        name = f"{settings.topic_prefix}dlq"
        timeout_s = settings.transaction_timeout_s
        self._delivery: CheckpointDelivery = (
            Transaction(options, name, timeout_s=timeout_s) if transactions else PlainSends(options)
        )
        self._steps: list[ReplayStep] = []
        self._outputs: list[Output] = []
        self._bytes = self._sent = 0

    @property
    def full(self) -> bool:
        """Whether the batch has reached a limit and must be sent."""
        return len(self._steps) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES

    async def start(self) -> None:
        """Connects, and fences other replays if transactions are used."""
        await self._with_timeout(self._delivery.start())

    def add(self, step: ReplayStep, outputs: Sequence[Output]) -> None:
        """Adds the records of a dead letter to the batch."""
        self._steps.append(step._replace(outcome="sent"))
        self._outputs += outputs
        self._bytes += sum(len(each.value or b"") + envelope_size(each.key, each.headers) for each in outputs)

    async def send(self) -> list[ReplayStep]:
        """Sends the batch with its marks; returns the steps that are done."""
        steps = self._steps
        outputs = self._outputs
        marks = [self._mark(step.found) for step in steps]
        # Without a transaction the marks are sent last: after a failure a record can be sent twice, but none is lost.
        for batch in [[*outputs, *marks]] if self._transactions else [outputs, marks]:
            if batch:
                await self._with_timeout(self._delivery.send({}, batch, {}))
        self._steps = []
        self._outputs = []
        self._bytes = 0
        self._sent += len(steps)
        return steps

    async def stop(self) -> None:
        """Disconnects."""
        await stop_in_time(self._delivery)

    def _mark(self, found: FoundDeadLetter) -> Output:
        return Output(self._letters, found.id.partition, None, None, [(REPLAYED, str(found.id).encode())])

    async def _with_timeout(self, done: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await done
        except ProducerFenced:
            raise DeadLettersError(
                f"another replay of this prefix has started, so this replay stops. It has sent {self._sent} dead letters; "
                "none of them is sent twice. When the other replay has ended, replay the dead letters that are still open"
            ) from None
        except (KafkaError, TimeoutError) as error:
            again = (
                "sends the remaining dead letters and none twice"
                if self._transactions
                else "can send some of them twice"
            )
            raise DeadLettersError(
                f"Kafka at {self._servers} stopped accepting records ({error!r}); at least {self._sent} dead letters are "
                "sent. Check that Kafka runs and that this user is allowed to write to the topics. "
                f"To replay again {again}"
            ) from error

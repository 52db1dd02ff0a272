"""Defines the `Stage` protocol. A stage is a plain object for one partition that uses no Kafka client, clock or file.

The checkpoint passes records to the stage. It then collects, in one step, the rows, outputs and offsets that belong
together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.dead_letter import (
    KEPT_BYTES,
    ORIGIN,
    REPLAY,
    DeadLetter,
    Headers,
    Reason,
    first_place,
    last_header,
)
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.inputs import place_of

MAX_BATCH_BYTES = 1_000_000
"""The largest batch in bytes, and so the largest record. Below the 1 MiB that brokers accept by default."""
MAX_OUTPUT_BYTES = 950_000
"""The largest key and value of an output together, in bytes.

They must fit a batch with the headers; a larger output would stop the worker.
"""

CUT_BYTES = 4_000_000
"""Bytes of outputs beyond which a stage leaves what else is due to the next cut, so that a backlog is no single transaction."""

MAX_KEY_BYTES = 4 * MAX_IDENTIFIER_CHARS
"""The largest key of an output, in bytes: an identifier, of which UTF-8 writes each character in at most 4 bytes."""


class Record(Protocol):
    """A consumed record, as aiokafka parses it. The code that reads it knows its topic and partition."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, as the producer or the broker set it."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


@dataclass(frozen=True, slots=True)
class UnreadableBatch:
    """A batch whose records cannot be seen, in the form of one record. Its value is the batch as Kafka stores it.

    Its offset is the last one of the batch, so that the next record has a higher one.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    """The highest timestamp in the batch, in milliseconds since 1970."""
    value: bytes
    problem: str
    """The offsets, and why the records cannot be seen; one sentence."""
    key: ClassVar[None] = None
    headers: ClassVar[Headers] = ()


@dataclass(frozen=True, slots=True)
class MissedRecords:
    """Records that Kafka deleted before they were read, in the form of one record at their last offset."""

    offset: int
    timestamp: ClassVar[int] = -1
    """What Kafka calls no timestamp."""
    value: ClassVar[None] = None
    key: ClassVar[None] = None
    headers: ClassVar[Headers] = ()


class Output(NamedTuple):
    """A record to send with the checkpoint."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds since 1970; None: the time of sending."""


Rows = list[tuple[bytes, bytes | None]]
"""Rows to write to the stage's table, as pairs of key and value; the value None deletes the row."""


class Cut(NamedTuple):
    """The changes since the last cut. They become visible together."""

    rows: Rows
    outputs: list[Output]
    offsets: dict[str, int]
    """Per input, the offset below which the rows and outputs so far reflect every record."""


Read = Callable[[bytes], bytes | None]
"""Returns a row of the stage's table as of the last cut, None if it does not exist."""


class Stage(Protocol):
    """The work of one stage on one partition. No method awaits; `apply` can start work that finishes later.

    An input has the name of its topic, except the added partitions of a topic of users (`inputs`).
    """

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the state from the rows of the last finished checkpoint."""

    def apply(self, source: str, records: Sequence[Record]) -> None:
        """Processes records of one input, in order.

        Changes memory only. After an exception the state counts as unusable: the partition is loaded again from its last
        checkpoint, and a record on which the stage raises alone comes to `reject`.
        """

    def reject(self, source: str, record: Record, why: RecordRejected) -> None:
        """Turns the next record of an input into a dead letter, without any other effect.

        The record comes here in place of `apply`, because `apply` or the following `cut` raised on it.
        """

    def tick(self, now: float, behind: Mapping[str, float]) -> None:
        """Advances the time.

        Args:
            now: Seconds since 1970.
            behind: The inputs that are not read to their end yet. The value is the time in seconds since 1970 after
                which all records were appended that the stage has not taken yet; 0 if that time is unknown.

        Raises:
            SessionFailed: this session cannot be closed.
        """

    def full(self) -> bool:
        """Returns whether the stage accepts no further records for now."""

    def cut(self) -> Cut:
        """Returns all changes since the last cut. The rows of the previous cut are readable by then.

        Raises:
            RecordFailed: work that `apply` started for this record has raised.
            SessionFailed: this session cannot be published.
        """

    def drop(self) -> None:
        """Discards the state and stops publishing: the partition now belongs to another worker."""


@runtime_checkable
class SetsSessionsAside(Protocol):
    """A stage that holds records of sessions, and raises `SessionFailed` if it cannot work on one of the sessions."""

    def set_aside(self, session: bytes, why: RecordRejected) -> None:
        """Turns the records of an open session into dead letters, without any other effect.

        The stage has just been loaded. It raised on this session before.
        """


@runtime_checkable
class TellsOutputs(Protocol):
    """A stage that often has changes without outputs: nobody waits for these, so that their checkpoint can be later."""

    def has_outputs(self) -> bool:
        """Returns whether a cut would return outputs now, or would raise."""


@runtime_checkable
class WorksLater(Protocol):
    """A stage whose work on a record can end after `apply`."""

    @property
    def in_flight(self) -> int:
        """Number of records that were taken and are not done."""


NewStage = Callable[[int, Read, Callable[[], None]], Stage]
"""Creates the stage of a partition: `new(partition, read, changed)`.

`read` returns a row of the stage's table, as `Read` says. The stage calls `changed()` when work
that the stage started has ended and there are changes to cut.
"""


@dataclass(frozen=True)
class StageSpec:
    """The name, the topics and the factory of a stage."""

    name: str
    """Prefix of the stage's rows in the table, and its name in dead letters."""
    inputs: tuple[str, ...]
    """Topics from which the stage consumes records and commits offsets.

    Among records with equal timestamps, records of the topic that is listed first come first.
    """
    outputs: tuple[str, ...]
    """Topics that the stage writes to."""
    new: NewStage
    max_records: int = 2_000
    """Number of records that the stage takes before other tasks run; 1 for a stage that needs long for a record."""


def handed_topics(specs: Sequence[StageSpec]) -> frozenset[str]:
    """Returns the inputs whose records a stage can take before their transaction is committed.

    A stage with several inputs orders their records by time, so it must know where each of them ends. A stage that takes
    single records would hold the event loop, and the transaction, for as long as it needs for all of them.
    """
    return frozenset(spec.inputs[0] for spec in specs if len(spec.inputs) == 1 and spec.max_records > 1)


class End(NamedTuple):
    """The position in an input when a fetch returned, the end of the input, and the time up to which it is read."""

    position: int
    stable: int
    """The last stable offset: the end of the records that a `read_committed` consumer can see."""
    at: float
    """A time before the broker reported the offsets, in seconds since 1970 (`FetchTimes.read_at`)."""
    held_back: bool = False
    """Whether an open transaction holds back records: the log continues behind the last stable offset."""


def envelope_size(key: bytes | None, headers: Headers) -> int:
    """Returns the size of a record's key and headers in bytes. A header can have no value."""
    size = len(key or b"")
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size


def dead_letter(
    topic: str, source: str, partition: int, record: Record, stage: str, reason: Reason, detail: str
) -> Output:
    """Returns the dead letter for a record of the input `source`, as an output to the partition whose stage has read it.

    The dead letter omits the key and the headers if they do not fit beside the value. Its timestamp is the time of
    sending: with the timestamp of a record that was years late or early, the broker would delete the dead letter at
    once, or never.
    """
    key = record.key
    headers = record.headers
    left_out = None
    if (size := envelope_size(key, headers)) > KEPT_BYTES:
        key = None
        headers = ()
        left_out = size
        detail = f"{detail} (left out: {size} bytes of key and headers)"
    letter = DeadLetter(
        reason,
        detail,
        stage,
        *place_of(source, partition),
        record.offset,
        key,
        record.value,
        headers,
        timestamp=record.timestamp,
        origin=last_header(headers, ORIGIN),
        replay_of=last_header(headers, REPLAY),
        first_place=first_place(record.headers),
        left_out=left_out,
    )
    return Output(topic, partition, key, letter.wire_value(), letter.wire_headers())

"""What a stage is: a plain object for one partition, which knows no Kafka, no clock and no file.

The checkpoint hands it records, and takes from it, in one moment, the rows, outputs and offsets that belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from traceweir.schemas.dead_letter import KEPT_BYTES, ORIGIN, REPLAY, DeadLetter, Headers, Reason, last_header

MAX_BATCH_BYTES = 1_000_000
"""Limit of a batch, and so of a record; below the 1 MiB that brokers accept by default."""
MAX_OUTPUT_BYTES = 950_000
"""The largest value of an output. It must fit a batch together with its key and headers; a larger one would stop the worker."""


class Record(Protocol):
    """A consumed record, as aiokafka parses it. Where it stands, its reader knows."""

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


class Output(NamedTuple):
    """A record to send with the checkpoint."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds since 1970; None: when it is sent."""


Rows = list[tuple[bytes, bytes | None]]
"""Rows of the stage's table to write; None deletes."""


class Cut(NamedTuple):
    """What came about since the last cut and becomes visible together."""

    rows: Rows
    outputs: list[Output]
    offsets: dict[str, int]
    """By topic, the offset below which every record is reflected in rows and outputs so far."""


Read = Callable[[bytes], bytes | None]
"""Reads a row of the stage's table as of the last finished checkpoint."""


class Stage(Protocol):
    """One stage's work on one partition. Nothing here awaits; `apply` may start work that finishes later."""

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the rows of the last finished checkpoint."""

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Take records of one input topic, in order. Changes memory and nothing else; never raises for what a record holds."""

    def tick(self, now: float, behind: Collection[str]) -> None:
        """Time passes: `now` in seconds since 1970; `behind` names the input topics that are not yet read to their end."""

    def full(self) -> bool:
        """Whether to leave further records where they are."""

    def cut(self) -> Cut:
        """All that came about since the last cut. The former cut's rows are readable by now."""

    def drop(self) -> None:
        """The partition belongs to somebody else now: forget it, and publish nothing more."""


NewStage = Callable[[int, Read, Callable[[], None]], Stage]
"""Makes the stage of a partition: `new(partition, read, changed)`. `read` gives a row of the stage's table as of the last finished
checkpoint; the stage calls `changed()` when work that it started has ended and there is something to cut."""


@dataclass(frozen=True)
class StageSpec:
    """A stage as whoever runs it needs it."""

    name: str
    """Prefix of the stage's rows in the table, and its name in dead letters."""
    inputs: tuple[str, ...]
    """Topics whose records the stage takes and whose offsets it commits. At equal timestamps the first of them comes first."""
    outputs: tuple[str, ...]
    """Topics that the stage writes to."""
    new: NewStage


class End(NamedTuple):
    """How far a topic partition was read when a fetch returned, and the time of the fetch."""

    position: int
    stable: int
    """Last stable offset: the end of the records that a `read_committed` reader sees."""
    at: float
    """Time of the broker's answer, in seconds since 1970."""


def envelope_size(key: bytes | None, headers: Headers) -> int:
    """Bytes of a record's key and headers. A header may have no value."""
    size = len(key or b"")
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size


def dead_letter(
    topic: str, source: str, partition: int, record: Record, stage: str, reason: Reason, detail: str
) -> Output:
    """The output for a record of the topic `source` that could not be used, in the partition of the same number.

    A key and headers that would not fit beside the value are left out. Its timestamp is when it is sent: with that of a record that came
    years late or early it would be deleted at once, or never.
    """
    key, headers, left_out = record.key, record.headers, None
    if (size := envelope_size(key, headers)) > KEPT_BYTES:
        key, headers, left_out = None, (), size
        detail = f"{detail} (left out: {size} bytes of key and headers)"
    letter = DeadLetter(
        reason,
        detail,
        stage,
        source,
        partition,
        record.offset,
        key,
        record.value,
        headers,
        timestamp=record.timestamp,
        origin=last_header(headers, ORIGIN),
        replay_of=last_header(headers, REPLAY),
        left_out=left_out,
    )
    return Output(topic, partition, key, letter.wire_value(), letter.wire_headers())

"""Turns records of the output topics into rows of the store. Reads no clock and no Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
import orjson

from traceweir.schemas.alert import Alert
from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.dead_letter import DeadLetter, marked
from traceweir.schemas.dimensions import UNKNOWN_MODEL
from traceweir.schemas.score import Score
from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS, ClosingReason, current
from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.board.store.tables import (
    ALERTS,
    DEAD_LETTERS,
    DIMENSIONS,
    LABELS,
    NETWORK,
    REPLAYS,
    RESULTS,
    SESSIONS,
    Table,
    TableName,
)
from traceweir.streams.tools.labels.record import label_of_record
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.tools.results.table import INTEGERS, row_of

KEPT_TEXT_CHARACTERS = 4_000
"""Characters of a dead letter's key and value that the store keeps; the topic has them whole."""
MOST_ALERT_BYTES = 65_536
"""Size of the largest alert that is stored; one with the longest ids is smaller."""
REMOVED = "removed"
"""The state of an alert that a tombstone has removed."""


class ConsumedRecord(Protocol):
    """A record of Kafka, as its consumer returns it."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""

    @property
    def timestamp(self) -> int:
        """When the record was written, in milliseconds since 1970."""

    @property
    def key(self) -> bytes | None:
        """The key."""

    @property
    def value(self) -> bytes | None:
        """The value; None for a tombstone."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """The headers, in their order."""


class SourcePartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass
class Batch:
    """Rows of several tables, and the offsets that are next when these rows are stored."""

    rows: dict[TableName, list[tuple[Any, ...]]] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)
    """Number of records that have no row, by topic: they are not what a worker writes there."""
    offsets: dict[SourcePartition, int] = field(default_factory=dict)
    """The offset after the last record that was read, by partition."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """The id of each topic to which the offsets belong, if the store does not know it yet."""
    current_at: dict[str, datetime] = field(default_factory=dict)
    """By topic, a time: with the records from the offsets on, the store lacks nothing that the topic contained then."""

    @property
    def row_count(self) -> int:
        """Number of rows of all tables."""
        return sum(map(len, self.rows.values()))


class _Event(msgspec.Struct, gc=False):
    """The dimensions of an event, and what says whether it counts."""

    event_id: str | None = None
    replaces: list[str] | None = None
    app_name: str | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    environment: str | None = None
    model: str | None = None


class _Session(msgspec.Struct, gc=False):
    """The fields of a session that have columns; reading them takes a tenth of the time of a Session."""

    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_IDENTIFIER_CHARS)]
    segment: Annotated[int, msgspec.Meta(ge=0, lt=MOST_SEGMENTS)]
    revision: Annotated[int, msgspec.Meta(ge=0, lt=MOST_REVISIONS)]
    closed_because: ClosingReason
    first_record_at: Annotated[datetime, msgspec.Meta(tz=True)]
    last_record_at: Annotated[datetime, msgspec.Meta(tz=True)]
    events: list[_Event]
    traces: list[msgspec.Raw]


_read_session = msgspec.json.Decoder(_Session).decode
_dimensions = attrgetter(*DIMENSIONS)


class RowReader:
    """Adds records to batches.

    Args:
        topics: The table of each topic.
        keeps_content: Whether documents of sessions, accepted traces and dead letters are stored too.
        now: The clock.
    """

    def __init__(
        self, topics: Mapping[str, TableName], *, keeps_content: bool = True, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._keeps_content = keeps_content
        self._now = now
        readers: dict[TableName, Callable[[ConsumedRecord], tuple[Table, tuple[Any, ...]]]] = {
            "results": _result,
            "sessions": self._session,
            "network": self._network,
            "dead_letters": self._dead_letter,
            "labels": self._label,
            "alerts": _alert,
        }
        self._readers = {topic: readers[name] for topic, name in topics.items()}

    def add(self, batch: Batch, topic: str, records: Iterable[ConsumedRecord]) -> None:
        """Adds the rows of the records of a topic. A record without a row is counted and changes nothing else."""
        read = self._readers[topic]
        unreadable = 0
        for record in records:
            try:
                table, row = read(record)
            except (ValueError, OverflowError, RecursionError, OSError, msgspec.MsgspecError):
                # A forged record costs itself.
                unreadable += 1
            else:
                batch.rows.setdefault(table.name, []).append(row)
        if unreadable:
            batch.unreadable[topic] = batch.unreadable.get(topic, 0) + unreadable

    def _session(self, record: ConsumedRecord) -> tuple[Table, tuple[Any, ...]]:
        value = record.value or b""
        session = _read_session(value)
        known: dict[str, str] = {}
        events = current(session.events)
        for event in events:
            known.update(_known(event))
        cells = {
            "session_id": session.session_id,
            "segment": session.segment,
            "revision": session.revision,
            "closed_because": session.closed_because.value,
            "first_record_at": _utc(session.first_record_at),
            "last_record_at": _utc(session.last_record_at),
            "events": len(events),
            "traces": len(session.traces),
            **known,
            "document": value.decode() if self._keeps_content else None,
        }
        return SESSIONS, _row(SESSIONS, record, cells)

    def _network(self, record: ConsumedRecord) -> tuple[Table, tuple[Any, ...]]:
        if not record.key:
            raise ValueError("a record of the network has the id of its trace as key")
        if record.value is not None:
            orjson.loads(record.value)
        cells = {
            "trace_id": record.key.decode(),
            "accepted": record.value is not None,
            "document": record.value.decode() if record.value is not None and self._keeps_content else None,
        }
        return NETWORK, _row(NETWORK, record, cells)

    def _label(self, record: ConsumedRecord) -> tuple[Table, tuple[Any, ...]]:
        if record.value is None:
            return LABELS, _row(LABELS, record, _removed_label(record))
        label = label_of_record(record.key, record.value, record.timestamp, self._now())
        subject = label.subject.__dict__
        cells = {name: subject[name] if name in subject else getattr(label, name, None) for name in LABELS.column_names}
        cells["occurred_at"] = _utc(label.occurred_at)
        cells["note"] = label.note if self._keeps_content else None
        place = {"written_at", "partition", "offset"}
        return LABELS, _row(LABELS, record, {name: cell for name, cell in cells.items() if name not in place})

    def _dead_letter(self, record: ConsumedRecord) -> tuple[Table, tuple[Any, ...]]:
        if (letter_id := marked(record.headers)) is not None:
            return REPLAYS, _row(REPLAYS, record, {"letter_id": letter_id})
        letter = DeadLetter.read(record.key, record.value, record.headers)
        size = letter.size if letter.size is not None else len(letter.value or b"")
        cells = {
            "letter_id": f"{record.partition}:{record.offset}",
            "reason": letter.reason,
            "stage": letter.stage,
            "detail": printable(letter.detail),
            "source_topic": letter.origin or letter.topic,
            "source_partition": letter.partition,
            "source_offset": letter.offset,
            "record_key": self._text(letter.key),
            "record_value": self._text(letter.value),
            "record_bytes": size,
        }
        return DEAD_LETTERS, _row(DEAD_LETTERS, record, cells)

    def _text(self, content: bytes | None) -> str | None:
        if content is None or not self._keeps_content:
            return None
        return content[: 4 * KEPT_TEXT_CHARACTERS].decode(errors="backslashreplace")[:KEPT_TEXT_CHARACTERS]


def _known(event: _Event) -> dict[str, str]:
    found = {name: value for name, value in zip(DIMENSIONS, _dimensions(event), strict=True) if value}
    if found.get("model") == UNKNOWN_MODEL:
        del found["model"]
    return found


def _result(record: ConsumedRecord) -> tuple[Table, tuple[Any, ...]]:
    value = record.value or b""
    score = Score.model_validate_json(value)
    return RESULTS, row_of(FoundScore(record.timestamp, record.partition, record.offset, score, value))


def _removed_label(record: ConsumedRecord) -> dict[str, Any]:
    """Returns the cells of a label that a tombstone has removed: nothing of it is left but its id."""
    if not record.key:
        raise ValueError("a label has its id as key")
    return {
        "label_id": record.key.decode(),
        **dict.fromkeys(("session_id", "level", "criterion", "annotator", "kind", "drawn"), ""),
        "self_declared": True,
        "occurred_at": datetime.fromtimestamp(record.timestamp / 1000, UTC),
        "withdrawn": True,
    }


def _alert(record: ConsumedRecord) -> tuple[Table, tuple[Any, ...]]:
    if record.value is None:
        return ALERTS, _row(ALERTS, record, _removed_alert(record))
    if len(record.value) > MOST_ALERT_BYTES:
        raise ValueError(f"an alert has at most {MOST_ALERT_BYTES} bytes")
    alert = Alert.model_validate_json(record.value)
    if record.key != alert.alert_id.encode():
        raise ValueError("an alert has its id as key, by which the topic is compacted")
    cells = {
        "alert_id": alert.alert_id,
        "state": alert.state,
        "metric": alert.stream.metric,
        "level": alert.stream.level,
        "onset_from": _utc(alert.onset.earliest),
        "onset_to": _utc(alert.onset.latest),
        "occurred_at": _utc(alert.occurred_at),
        "document": alert.wire().decode(),
    }
    return ALERTS, _row(ALERTS, record, cells)


def _removed_alert(record: ConsumedRecord) -> dict[str, Any]:
    """Returns the cells of an alert that a tombstone has removed: nothing of it is left but its id."""
    if not record.key:
        raise ValueError("an alert has its id as key")
    written_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    return {
        "alert_id": record.key.decode(),
        "state": REMOVED,
        **dict.fromkeys(("metric", "level", "document"), ""),
        **dict.fromkeys(("onset_from", "onset_to", "occurred_at"), written_at),
    }


def _row(table: Table, record: ConsumedRecord, cells: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the cells in the order of the columns; a column that is not named is empty."""
    place = {
        "written_at": datetime.fromtimestamp(record.timestamp / 1000, UTC),
        "partition": record.partition,
        "offset": record.offset,
    }
    row = tuple(cells[name] if name in cells else place.get(name) for name in table.column_names)
    if any(isinstance(cell, int) and cell not in INTEGERS for cell in row):
        raise OverflowError("an integer has more than 64 bits")
    return row


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)

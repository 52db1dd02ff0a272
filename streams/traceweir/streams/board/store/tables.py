"""Defines the tables of the store, independent of the database: their columns, their keys and what replaces a row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal

from traceweir.streams.tools.results.table import COLUMNS, Column, ColumnType

TableName = Literal["results", "sessions", "network", "dead_letters", "replays", "labels", "labelled_scores", "alerts"]

DIMENSIONS = ("app_name", "agent_name", "agent_version", "environment", "model")
"""The dimensions of an agent that the store knows. The others have about as many values as there are results."""
RESULT_DIMENSIONS = (*DIMENSIONS, "judge")
"""The dimensions by which figures of results are added up: those of the agent, and the model that judged."""
CHANGES = ("agent_version", "config_digest", "model", "judge")
"""The kinds of changes of which the first results are known."""
REASONS = ("missing_input", "sampled_out", "budget", "timeout", "error", "unsupported")
"""Why a result has no value, one counter each."""

_PLACE = (Column("partition", "integer"), Column("offset", "integer"))
_DIMENSIONS = tuple(Column(name, "text", nullable=True) for name in DIMENSIONS)


@dataclass(frozen=True)
class Table:
    """A table whose rows come from one topic.

    A row replaces the row with the same key if its version is the same or higher. Versions are compared column by
    column. The row that was written last wins among equal versions, because only a replayed record repeats a version.
    """

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns that identify a row."""
    version: tuple[str, ...]
    """The columns that order the rows with the same key; empty if later records always win."""
    time: str
    """The column by whose age rows are removed."""
    removed_if: str = ""
    """The condition, in SQL, of old rows that are removed; empty if all of them are."""
    keeps_history: bool = False
    """Whether replaced rows move to a table of their own, `replaced_` and the name."""

    @cached_property
    def column_types(self) -> dict[str, ColumnType]:
        """The types of the columns by their names, in their order."""
        return {column.name: column.type for column in self.columns}

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(self.column_types)

    @cached_property
    def key_columns(self) -> dict[str, ColumnType]:
        """The types of the columns of the key by their names."""
        return {name: self.column_types[name] for name in self.key}

    @cached_property
    def identity_of(self) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """Returns the cells of the key of a row."""
        return _cells(self, self.key)

    @cached_property
    def version_of(self) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """Returns the cells of the version of a row; versions are compared as tuples."""
        return _cells(self, self.version)


def key_of(text: str) -> int:
    """Returns the number that the column `key` has for the first column of a table's key: half of its MD5 hash.

    >>> key_of("abc")
    8250560606382298838
    """
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "little")


def newest_of(
    table: Table, rows: Iterable[tuple[Any, ...]]
) -> tuple[dict[tuple[Any, ...], tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Returns the row that counts for each identity, and the other rows, of rows in the order of their records."""
    identity_of = table.identity_of
    version_of = table.version_of
    newest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    superseded = []
    for row in rows:
        identity = identity_of(row)
        before = newest.get(identity)
        if before is None:
            newest[identity] = row
        elif version_of(row) >= version_of(before):
            newest[identity] = row
            superseded.append(before)
        else:
            superseded.append(row)
    return newest, superseded


def _cells(table: Table, names: Sequence[str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    at = [table.column_names.index(name) for name in names]
    if len(at) > 1:
        return itemgetter(*at)
    return lambda row: tuple(row[each] for each in at)


RESULTS = Table(
    "results",
    # The fields of a Score. A column that is no field of a Score is added here, behind these; exported tables have
    # `COLUMNS` too.
    COLUMNS,
    key=("session_id", "result_id"),
    version=("revision", "attempt"),
    time="occurred_at",
    keeps_history=True,
)
SESSIONS = Table(
    "sessions",
    (
        Column("written_at", "time"),
        Column("session_id", "text"),
        Column("segment", "integer"),
        Column("revision", "integer"),
        Column("closed_because", "text"),
        Column("first_record_at", "time"),
        Column("last_record_at", "time"),
        Column("events", "integer"),
        Column("traces", "integer"),
        *_DIMENSIONS,
        Column("document", "text", nullable=True),
        *_PLACE,
    ),
    key=("session_id", "segment"),
    version=("revision",),
    time="last_record_at",
)
NETWORK = Table(
    "network",
    (
        Column("written_at", "time"),
        Column("trace_id", "text"),
        Column("accepted", "boolean"),
        Column("document", "text", nullable=True),
        *_PLACE,
    ),
    key=("trace_id",),
    version=(),
    time="written_at",
)
DEAD_LETTERS = Table(
    "dead_letters",
    (
        Column("written_at", "time"),
        Column("letter_id", "text"),
        Column("reason", "text"),
        Column("stage", "text"),
        Column("detail", "text"),
        Column("source_topic", "text"),
        Column("source_partition", "integer"),
        Column("source_offset", "integer"),
        Column("record_key", "text", nullable=True),
        Column("record_value", "text", nullable=True),
        Column("record_bytes", "integer"),
        *_PLACE,
    ),
    key=("letter_id",),
    version=(),
    time="written_at",
)

REPLAYS = Table(
    "replays",
    (Column("written_at", "time"), Column("letter_id", "text"), *_PLACE),
    key=("letter_id",),
    version=(),
    time="written_at",
)

LABELS = Table(
    "labels",
    (
        Column("written_at", "time"),
        Column("label_id", "text"),
        Column("session_id", "text"),
        Column("segment", "integer", nullable=True),
        Column("revision", "integer", nullable=True),
        Column("level", "text"),
        Column("invocation_id", "text", nullable=True),
        Column("trace_id", "text", nullable=True),
        Column("criterion", "text"),
        Column("metric_digest", "text", nullable=True),
        Column("verdict", "text", nullable=True),
        Column("value", "number", nullable=True),
        Column("category", "text", nullable=True),
        Column("note", "text", nullable=True),
        Column("annotator", "text"),
        Column("self_declared", "boolean"),
        Column("kind", "text"),
        Column("drawn", "text"),
        Column("inclusion_probability", "number", nullable=True),
        Column("occurred_at", "time"),
        Column("withdrawn", "boolean"),
        *_PLACE,
    ),
    key=("label_id",),
    # As on the compacted topic: the last record of an id counts.
    version=(),
    time="occurred_at",
)
_KEPT = (
    "session_id", "segment", "revision", "attempt", "level", "invocation_id", "trace_id", "metric", "value", "threshold",
    "status", "occurred_at", "result_id", "scorer_version", "config_digest", *RESULT_DIMENSIONS, "category",
    "inclusion_probability", "metric_digest",
)  # fmt: skip
KEPT_SCORES = Table(
    "labelled_scores",
    # What is kept of a removed result that has a label. It contains no text of agents and judges.
    tuple(column for column in COLUMNS if column.name in _KEPT),
    key=("session_id", "result_id", "revision"),
    version=("attempt",),
    time="occurred_at",
)
ALERTS = Table(
    "alerts",
    (
        Column("written_at", "time"),
        Column("alert_id", "text"),
        Column("state", "text"),
        Column("metric", "text"),
        Column("level", "text"),
        # The interval that contains the change.
        Column("onset_from", "time"),
        Column("onset_to", "time"),
        Column("occurred_at", "time"),
        # The whole record.
        Column("document", "text"),
        *_PLACE,
    ),
    key=("alert_id",),
    # The last record of an alert counts: it is raised first, and resolved later.
    version=(),
    time="written_at",
    # An alert that is still open can be older than all results that are kept.
    removed_if="state <> 'raised'",
)

TABLES = (RESULTS, SESSIONS, NETWORK, DEAD_LETTERS, REPLAYS, LABELS, KEPT_SCORES, ALERTS)

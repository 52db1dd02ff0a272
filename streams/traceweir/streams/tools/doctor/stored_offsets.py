"""Reads the offsets of the last checkpoints from the changelog of an application, without reading all of it.

Each checkpoint that reads something writes the row of the offsets, so the latest one is near the end. The row of the ids
is written only when an id changes, so it can be anywhere; in most changelogs it is among the first rows. Ids never come
back. So the first row with the present ids is the latest one, and only a row with other ids is searched for to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from time import monotonic
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import place_of
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.runtime.checkpoint_rows import INPUTS_ROW, OFFSETS

WITHIN_S = 10.0
"""Time limit for reading the changelog, in seconds."""
LAST_RECORDS, GROWTH = 1_000, 8
"""Number of offsets at the end of a partition that are read first, and the factor by which it grows while they are too few."""
_OFFSETS = TypeAdapter(dict[str, int])
_IDS = TypeAdapter(dict[str, str])

Value = TypeVar("Value")
_Rows = dict[bytes, bytes]


class OffsetsUnreadableError(Exception):
    """The stored offsets cannot be read; the message states the reason."""


class Stored(NamedTuple):
    """The stored offsets of a partition number."""

    offsets: Mapping[str, int]
    """By input, the offset that a worker reads next; empty before the first checkpoint."""
    ids: Mapping[str, str]
    """By input, the id of the log to which the offset belongs; an input is missing if it is unknown."""
    is_whole: bool
    """Whether the changelog was read far enough for the latest offsets and ids."""


async def stored_offsets(
    settings: Settings, changelog: str, ids: Mapping[str, str], within_s: float = WITHIN_S
) -> dict[int, Stored]:
    """Returns the stored offsets of each partition. Only committed rows are read.

    Args:
        settings: Where Kafka is.
        changelog: The changelog topic.
        ids: By topic, the ids that the logs have now.
        within_s: Time limit for reading, in seconds. What was not read until then is not whole.

    Raises:
        OffsetsUnreadableError: the changelog is missing, or cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    deadline_s = monotonic() + within_s
    async with BoundedReader(settings, changelog, OffsetsUnreadableError) as reader:
        return {number: await _read(reader, number, ids, deadline_s) for number in range(settings.partitions)}


async def _read(reader: BoundedReader, number: int, ids: Mapping[str, str], deadline_s: float) -> Stored:
    begin = reader.begins[number]
    end = reader.ends[number]
    rows: _Rows = {}
    start = end
    count = LAST_RECORDS
    while OFFSETS not in rows and start > begin:
        start = max(begin, end - count)
        count = count * GROWTH
        rows, in_time = await _rows(reader, number, start, end, deadline_s)
        if not in_time:
            return Stored({}, {}, is_whole=False)
    offsets = _parsed(_OFFSETS, rows, OFFSETS, reader, number)

    def are_present(found: _Rows) -> bool:
        stored = _parsed(_IDS, found, INPUTS_ROW, reader, number)
        current = {name: ids.get(place_of(name, number).topic) for name in offsets}
        return all(stored.get(name) == log_id for name, log_id in current.items() if log_id is not None)

    in_time = True
    if offsets and INPUTS_ROW not in rows and start > begin:
        early, in_time = await _rows(reader, number, begin, start, deadline_s, until=are_present)
        rows = early | rows
    stored_ids = _parsed(_IDS, rows, INPUTS_ROW, reader, number)
    return Stored(offsets, stored_ids if in_time else {}, is_whole=in_time)


async def _rows(
    reader: BoundedReader,
    number: int,
    begin: int,
    end: int,
    deadline_s: float,
    until: Callable[[_Rows], bool] = lambda found: False,
) -> tuple[_Rows, bool]:
    """Returns the latest rows of offsets and ids between two offsets, and whether all was read that had to be."""
    found: _Rows = {}
    async with aclosing(reader.records({number: begin})) as records:
        async for record in records:
            if record.offset >= end:
                break
            if record.key in (OFFSETS, INPUTS_ROW):
                found[record.key] = record.value or b"{}"
                if record.key == INPUTS_ROW and until(found):
                    break
            if monotonic() > deadline_s:
                return found, False
    return found, True


def _parsed(
    kind: TypeAdapter[dict[str, Value]], rows: _Rows, key: bytes, reader: BoundedReader, number: int
) -> dict[str, Value]:
    try:
        return kind.validate_json(rows.get(key, b"{}"))
    except ValidationError as error:
        raise OffsetsUnreadableError(
            f"the row {key.decode()!r} of {reader.topic}, partition {number}, is none of a worker: {printable(explain(error))}"
        ) from error

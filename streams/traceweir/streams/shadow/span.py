"""Resolves the range of a shadow: which offsets of the topic `sessions` belong to a span of time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import NamedTuple

from traceweir.streams.kafka.bounded_reader import BoundedReader
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.topic_admin import reach
from traceweir.streams.settings import Settings
from traceweir.streams.shadow.errors import ShadowError


class Span(NamedTuple):
    """The offsets of a range, by partition."""

    begins: Mapping[int, int]
    ends: Mapping[int, int]
    expired_before_ms: int | None
    """The time before which sessions of the range have expired; None if the range begins later."""


async def resolve_span(settings: Settings, since_ms: int | None, until_ms: int | None) -> Span:
    """Returns the offsets of the sessions that were written in a span of time.

    Args:
        settings: Where Kafka is.
        since_ms: Begin in milliseconds since 1970; None: the oldest session.
        until_ms: End, not part of the span; None: the sessions that exist now.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic cannot be read, or no session was written in this span.
    """
    topic = settings.topics.sessions
    async with BoundedReader(settings, topic, ShadowError) as reader:
        ends = dict(reader.ends)
        begins = dict(reader.begins) if since_ms is None else await _first_since(settings, reader, since_ms)
        if until_ms is not None:
            ends = await _first_since(settings, reader, until_ms)
        begins = {number: min(begin, ends[number]) for number, begin in begins.items()}
        if begins == ends:
            raise ShadowError(_empty(topic, since_ms, until_ms, await _times(reader)))
        has_expired = any(reader.begins.values()) and since_ms is not None
        oldest = (await _times(reader)) if has_expired else None
    is_cut = oldest is not None and since_ms is not None and since_ms < oldest[0]
    return Span(begins, ends, oldest[0] if oldest is not None and is_cut else None)


async def _first_since(settings: Settings, reader: BoundedReader, at_ms: int) -> dict[int, int]:
    """Returns the offset of the first record with this timestamp or a later one, by partition; its end without one."""
    if not is_embedded(await asyncio.to_thread(reach, settings)):
        return await reader.begins_since(at_ms)
    found = dict(reader.ends)  # the embedded broker cannot search by time, and has few records
    for number, begin in reader.begins.items():
        async with aclosing(reader.records({number: begin})) as records:
            async for record in records:
                if record.timestamp >= at_ms:
                    found[number] = record.offset
                    break
    return found


async def _times(reader: BoundedReader) -> tuple[int, int] | None:
    """Returns the times of the oldest and, nearly, the latest record, in milliseconds; None if there is no record."""
    times = []
    for number, end in reader.ends.items():
        begin = reader.begins[number]
        for start in {begin, max(begin, end - 2)}:  # the last offset can end a transaction
            async with aclosing(reader.records({number: start})) as records:
                async for record in records:
                    times.append(record.timestamp)
                    break
    return (min(times), max(times)) if times else None


def _empty(topic: str, since_ms: int | None, until_ms: int | None, times: tuple[int, int] | None) -> str:
    if times is None:
        return f"topic {topic!r} has no session: workers write them there as soon as sessions have closed"
    since = "its begin" if since_ms is None else iso(since_ms)
    until = "now" if until_ms is None else iso(until_ms)
    what = (
        f"no session was written to {topic!r} between {since} and {until}; it has sessions from {iso(times[0])} to "
        f"{iso(times[1])}"
    )
    if until_ms is not None and until_ms <= times[0]:
        return f"{what}. Earlier sessions have expired (retention.ms of the topic): choose a later --from and --to"
    return f"{what}: choose another --from or --to"


def iso(milliseconds: int) -> str:
    """Returns a time in ISO 8601 and UTC, in seconds.

    >>> iso(1_500)
    '1970-01-01T00:00:01Z'
    """
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms after 1970"

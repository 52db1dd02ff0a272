"""Resolves the range of a shadow: which offsets of the topic `sessions` belong to a span of time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import NamedTuple

from traceweir.schemas.text import listed
from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.topic_admin import reach

_NAMED = 10


class OffsetRange(NamedTuple):
    """The offsets of a range, by partition."""

    begins: Mapping[int, int]
    ends: Mapping[int, int]
    cut: Mapping[int, int | None]
    """The partitions in which sessions of the range can have expired, and the time of the oldest that exists.

    None: no session exists. The time is in milliseconds since 1970.
    """


async def resolve_span(settings: Settings, since_ms: int | None, until_ms: int | None) -> OffsetRange:
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
            has_expired = any(reader.begins.values())
            raise ShadowError(_empty(topic, since_ms, until_ms, await reader.times(), has_expired=has_expired))
        cut = {} if since_ms is None else await _cut(reader, since_ms)
    return OffsetRange(begins, ends, cut)


async def _cut(reader: BoundedReader, since_ms: int) -> dict[int, int | None]:
    """Returns the partitions whose oldest record is not before the begin of the span, if records before it expired.

    An oldest record of the very millisecond of the begin counts: the one before it can be of the same millisecond.
    """
    found: dict[int, int | None] = {}
    for number, begin in reader.begins.items():
        # No record of this partition has expired.
        if begin == 0:
            continue
        oldest = await reader.time_of_first(number)
        if oldest is None or oldest >= since_ms:
            found[number] = oldest
    return found


async def _first_since(settings: Settings, reader: BoundedReader, at_ms: int) -> dict[int, int]:
    """Returns the offset of the first record with this timestamp or a later one, by partition; its end without one."""
    if not is_embedded(await asyncio.to_thread(reach, settings)):
        return await reader.begins_since(at_ms)
    # The embedded broker cannot search by time, and has few records.
    found = dict(reader.ends)
    for number, begin in reader.begins.items():
        async with aclosing(reader.records({number: begin})) as records:
            async for record in records:
                if record.timestamp >= at_ms:
                    found[number] = record.offset
                    break
    return found


def expired_text(topic: str, cut: Mapping[int, int | None]) -> str:
    """Returns a sentence for the partitions of which a range has lost its first sessions.

    >>> expired_text("sessions", {0: 1_500, 3: None})
    'sessions after --from can have expired (retention.ms of sessions): partition 0 begins at 1970-01-01T00:00:01Z, 3 is empty'
    """
    named = [
        f"{number} is empty" if oldest is None else f"{number} begins at {iso(oldest)}"
        for number, oldest in sorted(cut.items())
    ]
    places = listed(named, most=_NAMED, separator=", ")
    return f"sessions after --from can have expired (retention.ms of {topic}): partition {places}"


def _empty(
    topic: str, since_ms: int | None, until_ms: int | None, times: tuple[int, int] | None, *, has_expired: bool
) -> str:
    if times is None and has_expired:
        return f"topic {topic!r} has no session any more: all have expired (retention.ms of the topic)"
    if times is None:
        return f"topic {topic!r} has no session: workers write them there as soon as sessions have closed"
    since = "its begin" if since_ms is None else iso(since_ms)
    until = "now" if until_ms is None else iso(until_ms)
    what = (
        f"no session was written to {topic!r} between {since} and {until}; it has sessions from {iso(times[0])} to "
        f"{iso(times[1])}"
    )
    if has_expired and until_ms is not None and until_ms <= times[0]:
        return f"{what}. Earlier sessions have expired (retention.ms of the topic): choose a later --from and --to"
    return f"{what}: choose another --from or --to"

"""Turns the records of an open session into dead letters, because the session cannot be closed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.base.stages.base import Output, Read
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.topics import Topics
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.pipeline.assemble.session_rows import EVENT, TRACE, split, unpack

_UNKNOWN_OFFSET = -1
"""The offset of a dead letter whose record was read long ago: a session does not keep the offsets of its records."""


def dead_letters(session: OpenSession, read: Read, topics: Topics, partition: int, why: RecordRejected) -> list[Output]:
    """Returns a dead letter for each record of a session, with the whole value and the session id as the key.

    The value is whole also above 64 kB, because a replay cannot find the record on its topic without an offset. A chunk
    that is missing from the table or damaged is left out from its damage on: it can be the reason why the session cannot
    be closed.
    """
    rows = [read(session.key(number)) for number in range(session.sealed)]
    bodies = [body for row in rows if row is not None for body in _bodies(row)]
    outputs = []
    for body in [*bodies, b"".join([session.tail, *session.new])]:
        for kind, raw in _entries(body):
            topic = topics.traces if kind == TRACE else topics.invocations
            about = DeadLetter(why.reason, why.detail, "assemble", topic, partition, _UNKNOWN_OFFSET, session.id, None)
            outputs.append(Output(topics.dead_letters, partition, session.id, raw, about.wire_headers()))
    return outputs


def _bodies(row: bytes) -> list[bytes]:
    try:
        return [split(row)[1]]
    except (ValueError, struct.error):
        return []


def _entries(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    with suppress(struct.error):
        for kind, _, raw in unpack(body):
            # What the session knows of refused records is in their own dead letters.
            if kind in (EVENT, TRACE):
                yield kind, raw

"""Reads recorded sessions from the `sessions` topic, by session id."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.lab.evals.recordings import Recording, SessionParts
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader


class SessionsUnreadableError(Exception):
    """The sessions topic cannot be read; the message names the reason and the way out."""


def absence(session_id: str, settings: Settings) -> str:
    """Returns the sentence about a session that the topic does not have."""
    return (
        f"the sessions topic does not have the session {printable(session_id)!r}; it has a session when the session is "
        f"closed, at the latest {settings.idle_gap_s:g} s after the last event (TRACEWEIR_IDLE_GAP_S), and until the "
        "topic's retention deletes it"
    )


async def read_sessions(settings: Settings, wanted: Collection[str]) -> dict[str, Recording]:
    """Returns the wanted sessions that the topic still holds, each joined from the latest revisions of its segments.

    Raises:
        KafkaUnreachableError: no broker answers.
        SessionsUnreadableError: the topic is missing or wrong or cannot be read.
    """
    return (await _read(settings, wanted)).recordings()


async def read_segments(settings: Settings, session_id: str) -> list[Session]:
    """Returns the segments of a session that the topic still holds, in order, each in its latest revision.

    Raises:
        KafkaUnreachableError: no broker answers.
        SessionsUnreadableError: the topic is missing or wrong or cannot be read.
    """
    return (await _read(settings, [session_id])).segments(session_id)


async def _read(settings: Settings, wanted: Collection[str]) -> SessionParts:
    """Returns the parts of the wanted sessions.

    Only the partitions of the wanted ids are read, from beginning to end; other sessions are discarded.
    """
    parts = SessionParts()
    if not wanted:
        return parts
    keys = {name.encode("utf-8", "surrogatepass") for name in wanted}
    homes = {partition_of(key, settings.partitions) for key in keys}
    topic = settings.topics.sessions
    async with BoundedReader(settings, topic, SessionsUnreadableError, partitions=homes) as reader:
        async for record in reader.records():
            if record.key in keys and record.value:
                _take(parts, record)
    return parts


def _take(parts: SessionParts, record: Any) -> None:
    try:
        parts.add(Session.model_validate_json(record.value))
    except ValidationError as error:
        raise SessionsUnreadableError(
            f"{record.topic}[{record.partition}]@{record.offset} is not a session that this version can read "
            f"({printable(explain(error))}); if a later version wrote the record, install that version"
        ) from None

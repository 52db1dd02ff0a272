"""Reads recorded sessions from the `sessions` topic, by session id."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.evals.recordings import Recording, SessionParts
from traceweir.streams.kafka.bounded_reader import BoundedReader
from traceweir.streams.settings import Settings
from traceweir.streams.stages.partitioner import partition_of


class SessionsUnreadableError(Exception):
    """The sessions topic cannot be read; the message names the reason and the way out."""


async def read_sessions(settings: Settings, wanted: Collection[str]) -> dict[str, Recording]:
    """Returns the wanted sessions that the topic still holds: all segments, each in its latest revision.

    Only the partitions of the wanted ids are read, from beginning to end; other sessions are discarded.

    Raises:
        KafkaUnreachableError: no broker answers.
        SessionsUnreadableError: the topic is missing or wrong or cannot be read.
    """
    if not wanted:
        return {}
    keys = {name.encode("utf-8", "surrogatepass") for name in wanted}
    homes = {partition_of(key, settings.partitions) for key in keys}
    parts = SessionParts()
    topic = settings.topics.sessions
    async with BoundedReader(settings, topic, SessionsUnreadableError, partitions=homes) as reader:
        async for record in reader.records():
            if record.key in keys and record.value:
                _take(parts, record)
    return parts.recordings()


def _take(parts: SessionParts, record: Any) -> None:
    try:
        parts.add(Session.model_validate_json(record.value))
    except ValidationError as error:
        raise SessionsUnreadableError(
            f"{record.topic}[{record.partition}]@{record.offset} is not a session that this version can read "
            f"({printable(explain(error))}); if a later version wrote the record, install that version"
        ) from None

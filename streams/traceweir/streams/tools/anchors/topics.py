"""Writes and reads the topics of anchors: the frozen sessions, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from traceweir.schemas.anchor import Anchor
from traceweir.schemas.session import Session
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.keyed_writer import KeyedWriter

AGAIN = "Run the command again"


class AnchorsError(Exception):
    """A topic of anchors cannot be read, or has none; the message states the reason and the way out."""


@dataclass(slots=True)
class KnownAnchors:
    """The anchors of the topic."""

    by_id: dict[str, Anchor] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """The place of each record that is no anchor, as `partition/offset`."""


def anchors_writer(settings: Settings) -> KeyedWriter:
    """Returns what writes anchors, and tombstones."""
    return KeyedWriter(settings, settings.topics.anchors, noun="anchor", again=AGAIN)


def verdicts_writer(settings: Settings) -> KeyedWriter:
    """Returns what writes verdicts."""
    return KeyedWriter(settings, settings.topics.anchor_verdicts, noun="verdict", again=AGAIN)


async def read_anchors(settings: Settings) -> KnownAnchors:
    """Returns the anchors of the topic, the last record of each id.

    Raises:
        KafkaUnreachableError: no broker answers.
        AnchorsError: the topic is missing or wrong, or cannot be read.
    """
    found = KnownAnchors()
    async with BoundedReader(settings, settings.topics.anchors, AnchorsError) as reader:
        async for record in reader.records():
            key = (record.key or b"").decode(errors="replace")
            if record.value is None:
                found.by_id.pop(key, None)
                continue
            try:
                anchor = Anchor.model_validate_json(record.value)
            except ValidationError:
                found.unreadable.append(f"{record.partition}/{record.offset}")
            else:
                found.by_id[anchor.anchor_id] = anchor
    return found


async def read_revisions(settings: Settings, wanted: Collection[str]) -> dict[tuple[str, int], list[Session]]:
    """Returns all revisions of the wanted sessions that the topic still holds, by session and segment.

    Raises:
        KafkaUnreachableError: no broker answers.
        AnchorsError: the topic is missing or wrong, or cannot be read.
    """
    found: dict[tuple[str, int], list[Session]] = {}
    keys = {name.encode("utf-8", "surrogatepass") for name in wanted}
    homes = {partition_of(key, settings.partitions) for key in keys}
    if not homes:
        return found
    async with BoundedReader(settings, settings.topics.sessions, AnchorsError, partitions=homes) as reader:
        async for record in reader.records():
            if record.key not in keys or not record.value:
                continue
            try:
                session = Session.model_validate_json(record.value)
            except ValidationError:
                # A session of a later version; its label finds no session, which is said.
                continue
            found.setdefault((session.session_id, session.segment), []).append(session)
    return found


def by_key(anchors: Iterable[Anchor]) -> dict[bytes, bytes | None]:
    """Returns the records of anchors."""
    return {each.anchor_id.encode(): each.wire() for each in anchors}

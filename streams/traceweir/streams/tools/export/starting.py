"""Decides where an exporter begins to read a partition, and says why."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Kept(NamedTuple):
    """Where an exporter stood, as the topic `exports` has it."""

    offset: int
    """The offset of the next record."""
    topic_id: str | None
    """The id of the topic that was read; None from a broker without ids."""
    at: datetime
    """When it stood there."""


class KnownPartition(NamedTuple):
    """What is known of a partition before it is read."""

    begin: int
    """The offset of the oldest record."""
    end: int
    """The offset after the newest record."""
    committed: int | None
    """The offset of the consumer group; None if Kafka has none."""
    kept: Kept | None
    """Where the exporter stood; None if nobody has written it."""
    topic_id: str | None
    """The id of the topic now; None from a broker without ids."""


class Start(NamedTuple):
    """Where an exporter begins."""

    offset: int
    why: str
    """The reason, as a sentence."""
    removed: int = 0
    """Number of records, at most, that retention has removed before they were sent."""
    unusual: bool = False
    """Whether a person should know."""


def start_of(found: KnownPartition, *, only_new: bool, use: str = "sent") -> Start:
    """Returns where to begin: at the group's offset, else where the exporter stood, else at an end of the topic.

    >>> start_of(KnownPartition(0, 9, None, None, None), only_new=True)[:2]
    (9, 'the group is new, and --only-new leaves out what is on the topic already')

    Args:
        found: What is known of the partition.
        only_new: Whether a new group begins at the end, in place of the oldest record.
        use: What is done with records, for the sentence about removed ones.
    """
    begin, end, committed, kept, topic_id = found
    if committed is None and kept is None:
        if only_new:
            return Start(end, "the group is new, and --only-new leaves out what is on the topic already")
        return Start(begin, "the group is new, and begins with the oldest record")
    if kept is not None and None not in (kept.topic_id, topic_id) and kept.topic_id != topic_id:
        return _on_another_topic(begin)
    stood = committed if committed is not None else kept.offset if kept is not None else begin
    if stood > end:
        return _on_another_topic(begin)
    if stood == begin - 1:
        # The last entry of a log is often the marker of a transaction, which is no record.
        return Start(begin, "the offset of the group")
    if stood < begin:
        return Start(
            begin,
            f"the records from offset {stood} to {begin} were removed by the topic's retention before they were {use}",
            begin - stood,
            unusual=True,
        )
    if committed is None and kept is not None:
        return Start(
            stood,
            "Kafka has removed the offsets of the group, as it does some days after the last process has left; the group stood "
            f"here at {kept.at:%Y-%m-%d %H:%M} UTC. Name another --group to send everything again",
            unusual=True,
        )
    return Start(stood, "the offset of the group")


def _on_another_topic(begin: int) -> Start:
    return Start(begin, "the topic was deleted and created again, and is read from its beginning", unusual=True)

"""Sets where an exporter begins to read its partitions, and notes where it stands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.kept_offsets import KeptOffsets
from traceweir.streams.tools.export.starting import KnownPartition, Start, start_of
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.topic_admin import topic_ids

log = logging.getLogger(__name__)


class Positions:
    """Where a consumer group stands on a topic, from `open` to `close`.

    Args:
        settings: Where Kafka is.
        topic: The topic.
        group: The consumer group.
        only_new: Whether a group without offsets begins with the next record, in place of the oldest one.
    """

    def __init__(self, settings: Settings, topic: str, group: str, *, only_new: bool) -> None:
        self._settings = settings
        self._group = group
        self._only_new = only_new
        self._topic = topic
        self._kept = KeptOffsets(settings, group)
        self.offsets: dict[TopicPartition, int] = {}
        """The offset of the group by partition, of those that have a position."""

    async def open(self) -> None:
        """Connects.

        Raises:
            KafkaUnreachableError: no broker answers.
            KafkaError: the brokers stopped answering.
        """
        self._kept = KeptOffsets(self._settings, self._group)
        self.offsets.clear()
        await self._kept.open()

    async def begin(
        self, consumer: AIOKafkaConsumer, places: Collection[TopicPartition], has_moved: Callable[[], bool]
    ) -> int:
        """Sets the position of assigned partitions, and logs where they begin and why.

        Args:
            consumer: Owns the partitions.
            places: The partitions.
            has_moved: Returns whether the partitions have moved to others meanwhile.

        Returns:
            Number of records, at most, that retention has removed before they were sent.

        Raises:
            CommitFailedError: the partitions have moved.
        """
        if not places:
            log.info("waiting for a partition: other processes of the group own all of them")
            return 0
        numbers = [place.partition for place in places]
        topic_id = (await in_request_thread(topic_ids, self._settings, [self._topic])).get(self._topic)
        kept = await self._kept.read(numbers)
        begins = await consumer.beginning_offsets(places)
        ends = await consumer.end_offsets(places)
        starts = {}
        moved = {}
        for place in sorted(places):
            committed = await consumer.committed(place)
            found = KnownPartition(begins[place], ends[place], committed, kept.get(place.partition), topic_id)
            start = starts[place] = start_of(found, only_new=self._only_new)
            consumer.seek(place, start.offset)
            if start.offset != committed:
                moved[place] = start.offset
        if has_moved():
            return 0
        _log_starts(starts)
        if moved:
            # A new group would otherwise begin later if it ended before its first batch. The offset of a former topic is
            # replaced before its id is; otherwise a start between the two would take it for one of the new topic.
            await consumer.commit(moved)
        self._kept.note({place.partition: start.offset for place, start in starts.items()}, topic_id)
        self.offsets |= {place: start.offset for place, start in starts.items()}
        await self._kept.write()
        return sum(start.removed for start in starts.values())

    def note(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Notes committed offsets, which `write` writes."""
        self.offsets |= offsets
        self._kept.note({place.partition: offset for place, offset in offsets.items()})

    async def write(self) -> None:
        """Writes where the group stands, for the case that Kafka removes its offsets."""
        await self._kept.write()

    async def write_if_due(self) -> None:
        """Does so if the last time is a while ago."""
        await self._kept.write_if_due()

    def forget(self) -> None:
        """Forgets the partitions: they move."""
        self._kept.forget()
        self.offsets.clear()

    async def close(self) -> None:
        """Disconnects, also after a failed `open`."""
        await self._kept.close()


def _log_starts(starts: Mapping[TopicPartition, Start]) -> None:
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for place, start in starts.items():
        by_reason.setdefault((start.why, start.unusual), []).append(f"{place.topic}[{place.partition}]@{start.offset}")
    for (why, unusual), where in by_reason.items():
        log.log(logging.WARNING if unusual else logging.INFO, "begins at %s: %s", ", ".join(where), why)

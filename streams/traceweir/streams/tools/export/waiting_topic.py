"""Reads the scores that wait for a target from the topic `export-waiting`, and says what is written there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing, suppress
from typing import Any

from aiokafka.errors import TopicAuthorizationFailedError

from traceweir.schemas.dead_letter import is_replay
from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.topics import export_waiting_key
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.tools.export.waiting import WaitingScore
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)


MAX_REPLAYED = 100
"""Scores of replays in memory that nobody has taken yet; the topic is read on when one was taken."""


class _UnreadableError(Exception):
    """The topic cannot be read."""


class WaitingTopic:
    """The rows of one exporter on the topic: a score for each that waits.

    Args:
        settings: Where Kafka is.
        group: The consumer group of the exporter; the rows of other groups are left alone.
    """

    def __init__(self, settings: Settings, group: str) -> None:
        self._settings, self._group = settings, group
        self._topic = settings.topics.export_waiting
        self._reader: BoundedReader | None = None
        self._following: asyncio.Task[None] | None = None
        self._replayed: asyncio.Queue[WaitingScore] = asyncio.Queue(MAX_REPLAYED)

    async def open(self, partitions: Collection[int]) -> AsyncGenerator[WaitingScore, None]:
        """Yields what waits in these partitions, in the order in which it was written, and follows them until `close`.

        It waits for transactions that are still open, such as the last one of the former owner. Of each score only the key
        is kept, so that what waits need not fit in memory.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
            ExportError: this user may not read it.
        """
        await self.close()
        reader = BoundedReader(self._settings, self._topic, _UnreadableError, partitions=partitions, up_to_all=True)
        try:
            self._reader = await reader.__aenter__()
            newest = await self._newest(reader)
            begins: dict[int, int] = {}
            for (partition, _), offset in newest.items():
                begins[partition] = min(offset, begins.get(partition, offset))
            async with aclosing(reader.records(begins)) as records:
                async for record in records:
                    is_newest = newest.get((record.partition, record.key)) == record.offset
                    if is_newest and (row := self._row(record)) is not None:
                        yield row
        except _UnreadableError as error:
            await self.close()
            if isinstance(error.__cause__, TopicAuthorizationFailedError):
                raise ExportError(f"{error}: grant Read on {self._topic} (docs/access-control.md)") from error
            raise KafkaUnreachableError(str(error)) from error
        except BaseException:
            await self.close()
            raise
        self._following = asyncio.create_task(self._follow(reader))

    def next_replayed(self) -> WaitingScore | None:
        """Returns the next score that others have written, as `traceweir dlq replay` does; None if there is none now.

        Raises:
            KafkaUnreachableError: the topic cannot be read any more.
        """
        if self._following is not None and self._following.done():
            try:
                self._following.result()
            except _UnreadableError as error:
                raise KafkaUnreachableError(str(error)) from error
        return None if self._replayed.empty() else self._replayed.get_nowait()

    def row(self, score: WaitingScore) -> Output:
        """Returns the record that lets a score wait."""
        return Output(self._topic, score.partition, self._key(score), score.value, timestamp=int(score.since_s * 1000))

    def tombstone(self, score: WaitingScore) -> Output:
        """Returns the record that says that a score waits no longer."""
        return Output(self._topic, score.partition, self._key(score), None)

    async def close(self) -> None:
        """Stops following."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait({following})
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.__aexit__(None, None, None)
        self._replayed = asyncio.Queue(MAX_REPLAYED)

    async def _newest(self, reader: BoundedReader) -> dict[tuple[int, bytes], int]:
        """Returns the offset of the newest record of each key of this group that has a value, by partition and key."""
        mine = f"{self._group}@".encode()
        newest: dict[tuple[int, bytes], int] = {}
        async with aclosing(reader.records()) as records:
            async for record in records:
                if record.key is None or not record.key.startswith(mine):
                    continue
                if record.value is None:
                    newest.pop((record.partition, record.key), None)
                else:
                    newest[record.partition, record.key] = record.offset
        return newest

    async def _follow(self, reader: BoundedReader) -> None:
        async for record in reader.following(lambda trouble: log.warning("%s", trouble)):
            # The exporter knows what it has written itself.
            if is_replay(record.headers) and (row := self._row(record)) is not None:
                await self._replayed.put(row)

    def _key(self, score: WaitingScore) -> bytes:
        return export_waiting_key(self._group, score.offset, score.at_ms)

    def _row(self, record: Any) -> WaitingScore | None:
        """Returns the score of a row; None for a tombstone, a row of another group and the record of another program."""
        with suppress(ValueError):
            group, offset, at_ms = (record.key or b"").decode().rsplit("@", 2)
            if group == self._group and record.value is not None:
                session_id = Score.model_validate_json(record.value).session_id
                row = WaitingScore(
                    record.partition, int(offset), int(at_ms), session_id, record.value, record.timestamp / 1000
                )
                # A number in another form would have another tombstone, and wait again after each start.
                return row if self._key(row) == record.key else None
        return None

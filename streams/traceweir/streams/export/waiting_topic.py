"""Reads the scores that wait for a target from the topic `export-waiting`, and says what is written there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from aiokafka.errors import TopicAuthorizationFailedError

from traceweir.schemas.dead_letter import is_replay
from traceweir.schemas.score import Score
from traceweir.streams.export.errors import ExportError
from traceweir.streams.export.waiting import WaitingScore
from traceweir.streams.kafka.bounded_reader import BoundedReader
from traceweir.streams.kafka.errors import KafkaUnreachableError
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import Output
from traceweir.streams.topics import export_waiting_key

log = logging.getLogger(__name__)


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
        self._replayed: list[WaitingScore] = []

    async def open(self, partitions: Collection[int]) -> list[WaitingScore]:
        """Returns what waits in these partitions, in the order in which it was written, and follows them until `close`.

        It waits for transactions that are still open, such as the last one of the former owner.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
            ExportError: this user may not read it.
        """
        await self.close()
        reader = BoundedReader(self._settings, self._topic, _UnreadableError, partitions=partitions, up_to_all=True)
        found: dict[tuple[int, bytes], WaitingScore] = {}
        try:
            self._reader = await reader.__aenter__()
            async for record in self._reader.records():
                key = record.partition, record.key or b""
                found.pop(key, None)
                if (row := self._row(record)) is not None:
                    found[key] = row
        except _UnreadableError as error:
            await self.close()
            if isinstance(error.__cause__, TopicAuthorizationFailedError):
                raise ExportError(f"{error}: grant Read on {self._topic} (docs/access-control.md)") from error
            raise KafkaUnreachableError(str(error)) from error
        except BaseException:
            await self.close()
            raise
        self._following = asyncio.create_task(self._follow(self._reader))
        return list(found.values())

    def replayed(self) -> list[WaitingScore]:
        """Returns what others have written since the last call: scores that `traceweir dlq replay` sends again.

        Raises:
            KafkaUnreachableError: the topic cannot be read any more.
        """
        if self._following is not None and self._following.done():
            try:
                self._following.result()
            except _UnreadableError as error:
                raise KafkaUnreachableError(str(error)) from error
        found, self._replayed = self._replayed, []
        return found

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
        self._replayed.clear()

    async def _follow(self, reader: BoundedReader) -> None:
        async for record in reader.following(lambda trouble: log.warning("%s", trouble)):
            # The exporter knows what it has written itself.
            if is_replay(record.headers) and (row := self._row(record)) is not None:
                self._replayed.append(row)

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

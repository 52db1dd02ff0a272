"""Reads the scores that wait for a target from the topic `export-waiting`, and says what is written there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import msgspec
from aiokafka.errors import TopicAuthorizationFailedError

from traceweir.schemas.dead_letter import is_replay
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.topics import export_waiting_key
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.tools.export.waiting_score import WaitingRow, WaitingScore
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
        key_field: The field of a score's JSON that keeps its order.
        reader: Has the parameters of `BoundedReader`, and reads the topic.
    """

    def __init__(
        self, settings: Settings, group: str, key_field: str, *, reader: Callable[..., BoundedReader] = BoundedReader
    ) -> None:
        self._settings = settings
        self.group = group
        # Reading it alone takes a fraction of the time of a Score.
        key = msgspec.defstruct("_Key", [("key", str, msgspec.field(name=key_field))])
        self._read_key: Callable[[bytes], Any] = msgspec.json.Decoder(key).decode
        self._reads = reader
        self._topic = settings.topics.export_waiting
        self._reader: BoundedReader | None = None
        self._following: asyncio.Task[None] | None = None
        self._replayed: asyncio.Queue[WaitingRow] = asyncio.Queue(MAX_REPLAYED)

    async def open(self, partitions: Collection[int]) -> AsyncGenerator[WaitingRow, None]:
        """Yields the rows of these partitions, each partition's in the order of the topic, and follows them until `close`.

        It waits for transactions that are still open, such as the last one of the former owner.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
            ExportError: this user may not read it.
        """
        await self.close()
        try:
            with self._unreadable():
                self._reader = reader = await self._connect(partitions)
                async with aclosing(self._rows(reader)) as rows:
                    async for row in rows:
                        yield row
        except BaseException:
            await self.close()
            raise
        self._following = asyncio.create_task(self._follow(reader))

    async def read(self, partition: int, begin: int) -> AsyncGenerator[WaitingRow, None]:
        """Yields the rows of a partition from an offset on, and goes on to follow all partitions as before.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
            ExportError: this user may not read it.
        """
        with self._unreadable():
            reader = await self._connect({partition})
            try:
                async with aclosing(self._rows(reader, {partition: begin})) as rows:
                    async for row in rows:
                        yield row
            finally:
                await reader.__aexit__(None, None, None)

    def next_replayed(self) -> WaitingRow | None:
        """Returns the next row that others have written, as `traceweir dlq replay` does; None if there is none now.

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
        following = self._following
        self._following = None
        if following is not None:
            following.cancel()
            await asyncio.wait({following})
        reader = self._reader
        self._reader = None
        if reader is not None:
            await reader.__aexit__(None, None, None)
        self._replayed = asyncio.Queue(MAX_REPLAYED)

    async def _connect(self, partitions: Collection[int]) -> BoundedReader:
        reader = self._reads(self._settings, self._topic, _UnreadableError, partitions=partitions, up_to_all=True)
        return await reader.__aenter__()

    @contextmanager
    def _unreadable(self) -> Iterator[None]:
        try:
            yield
        except _UnreadableError as error:
            if isinstance(error.__cause__, TopicAuthorizationFailedError):
                raise ExportError(f"{error}: grant Read on {self._topic} (docs/access-control.md)") from error
            raise KafkaUnreachableError(str(error)) from error

    async def _rows(
        self, reader: BoundedReader, begins: Mapping[int, int] | None = None
    ) -> AsyncGenerator[WaitingRow, None]:
        async with aclosing(reader.records(begins)) as records:
            async for record in records:
                if (row := self._row(record)) is not None:
                    yield row

    async def _follow(self, reader: BoundedReader) -> None:
        async for record in reader.following(lambda trouble: log.warning("%s", trouble)):
            # The exporter knows what it has written itself.
            if is_replay(record.headers) and (row := self._row(record)) is not None and row.score is not None:
                await self._replayed.put(row)

    def _key(self, score: WaitingScore) -> bytes:
        return export_waiting_key(self.group, score.offset, score.at_ms)

    def _row(self, record: Any) -> WaitingRow | None:
        """Returns a row; None for one of another group and for the record of another program.

        Of a score only the key is read here: what waits can be read more than once, and is sent only once.
        """
        with suppress(ValueError, msgspec.MsgspecError, RecursionError):
            group, offset, at_ms = (record.key or b"").decode().rsplit("@", 2)
            place = record.partition, int(offset), int(at_ms)
            # A number in another form would have another tombstone, and wait again after each start.
            if group != self.group or export_waiting_key(group, *place[1:]) != record.key:
                return None
            if record.value is None:
                return WaitingRow(place, record.offset, None)
            key = self._read_key(record.value).key
            return WaitingRow(place, record.offset, WaitingScore(*place, key, record.value, record.timestamp / 1000))
        return None

"""Returns fetched records as aiokafka's parser creates them, and reads on after what aiokafka cannot read.

aiokafka copies every record into a dataclass of eleven fields, which costs a third of the time that assemble spends on
the record. aiokafka also raises an error for a header name that is not UTF-8, and for a batch that it cannot decompress,
at every attempt: one such record would block its partition without end. A second call after the error would skip the
records before the batch.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from traceweir.schemas.text import printable
from traceweir.streams.worker.kafka.decompression import MAX_BATCH_BYTES, decompressed_bytes, limit_decompression
from traceweir.streams.worker.kafka.unreadable_batch import UnreadableBatchError, unreadable_batch

_LENGTH_AT, _BODY_AT = 8, 12
"""Offset of the length field in a batch, and offset from which the length counts, in bytes."""
_FIRST_MAGIC_WITH_HEADERS = 2
_MAGIC_AT = 16
PartitionRecords: Any = fetcher.PartitionRecords
"""aiokafka's own class, whatever `read_as_parsed` has put in its place."""


def read_as_parsed(topics: Collection[str], *, batches_of: Collection[str] = ()) -> None:
    """Makes all consumers of this process return the records of these topics uncopied.

    An uncopied record has no topic and no partition. A later call adds its topics to those of earlier calls.

    In all topics, bytes of a header name that are not UTF-8 are written as `\\xff`.

    Args:
        topics: Topics whose records are uncopied.
        batches_of: Topics in which a batch that cannot be decompressed is returned as an `UnreadableBatch`. In all other
            topics it raises `UnreadableBatchError`.
    """
    present = fetcher.PartitionRecords
    former: Sequence[Collection[str]] = present.args if isinstance(present, partial) else ((), ())
    limit_decompression()
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = partial(ParsedRecords, {*former[0], *topics}, {*former[1], *batches_of})


def records_of(raw: bytes) -> Sequence[Any]:
    """Returns the records of a batch, as an `UnreadableBatch` holds it.

    Raises:
        ValueError: the records still cannot be seen; the message says why.
    """
    try:
        return list(LenientBatch(raw))
    except Exception as error:
        # Whatever a decoder raises for bytes that a producer has chosen.
        raise ValueError(
            f"its batch still cannot be read ({printable(f'{type(error).__name__}: {error}', 200)})"
        ) from error


def offsets_of(raw: bytes) -> range:
    """Returns the offsets of a batch, from the bytes of its beginning; none if the bytes are too few."""
    if len(raw) < LenientBatch.HEADER_STRUCT.size:
        return range(0)
    batch = LenientBatch(raw)
    return range(batch.base_offset, batch.next_offset)


class Batches:
    """Iterates over the batches of a fetch, and keeps the position of the current batch for a second read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._inner = MemoryRecords(data)
        self._begin = self._end = 0
        self._first: LenientBatch | None = None
        self._full_at = math.inf

    def size_in_bytes(self) -> int:
        """Returns the size of the fetch in bytes."""
        return len(self._data)

    def has_next(self) -> bool:
        """Returns whether a whole batch is left. Batches that are very large when decompressed come with a later fetch."""
        if self._first is not None:
            return True
        return decompressed_bytes() < self._full_at and bool(self._inner.has_next())

    def next_batch(self) -> Any:
        """Returns the next batch."""
        if self._first is not None:
            batch = self._first
            self._first = None
            return batch
        if self._begin == self._end:
            self._full_at = decompressed_bytes() + MAX_BATCH_BYTES
        self._begin = self._end
        (length,) = struct.unpack_from(">i", self._data, self._begin + _LENGTH_AT)
        self._end += _BODY_AT + length
        return self._inner.next_batch()

    def again(self) -> None:
        """Schedules a second read of the current batch with `LenientBatch`."""
        self._first = LenientBatch(self.current())

    def has_headers(self) -> bool:
        """Returns whether the current batch is in Kafka's format 2 or a later one."""
        return self._data[self._begin + _MAGIC_AT] >= _FIRST_MAGIC_WITH_HEADERS

    def current(self) -> bytes:
        """Returns the current batch as Kafka stores it."""
        return self._data[self._begin : self._end]


class LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # final in name only
    """Reads a batch of Kafka's format 2 in which a header name can be any bytes."""

    _pos: int

    def _read_msg(self, varint: Callable[[bytearray, int], tuple[int, int]] = decode_varint) -> _DefaultRecordPy:
        buffer = self._buffer
        length, begin = varint(buffer, self._pos)
        # After one byte of attributes, which Kafka does not use yet.
        later, at = varint(buffer, begin + 1)
        further, at = varint(buffer, at)
        key, at = _bytes(buffer, at)
        value, at = _bytes(buffer, at)
        count, at = varint(buffer, at)
        headers = []
        for _ in range(count):
            name, at = _bytes(buffer, at)
            content, at = _bytes(buffer, at)
            headers.append(((name or b"").decode(errors="backslashreplace"), content))
        if at - begin != length:
            raise CorruptRecordException(f"a record of {length} bytes has {at - begin}")
        self._pos = at
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        timestamp = self.max_timestamp if appended else self.first_timestamp + later
        return _DefaultRecordPy(self.base_offset + further, timestamp, self.timestamp_type, key, value, headers)


def _bytes(buffer: bytearray, at: int) -> tuple[bytes | None, int]:
    size, at = decode_varint(buffer, at)
    return (None, at) if size < 0 else (bytes(buffer[at : at + size]), at + size)


class ParsedRecords(PartitionRecords):  # type: ignore[misc]  # untyped
    """Returns the records of one partition in a fetch."""

    def __init__(self, topics: Collection[str], batches_of: Collection[str], tp: Any, *parts: Any) -> None:
        self.next_fetch_offset: int
        super().__init__(tp, *parts)
        self._as_parsed = tp.topic in topics
        self._with_batches = tp.topic in batches_of

    def __iter__(self) -> Iterator[Any]:
        records: Iterator[Any] = self._records_iterator
        # The inherited `__next__` costs one more call per record.
        return records

    def _unpack_records(self) -> Iterator[Any]:
        while True:
            try:
                yield from super()._unpack_records()
            except MemoryError:
                # A fault of the machine, and not of the batch.
                raise
            except Exception as error:
                # Whatever a decoder raises for bytes that a producer has chosen.
                if not self._records.has_headers():
                    raise
                if _is_misnamed(error):
                    self._records.again()
                else:
                    yield from self._unreadable(error)
            else:
                return

    def _unreadable(self, error: Exception) -> Iterator[Any]:
        tp = self._tp
        batch = unreadable_batch(tp.topic, tp.partition, self._records.current(), self.next_fetch_offset, error)
        if not self._with_batches:
            raise UnreadableBatchError(
                f"{tp.topic}[{tp.partition}]: {batch.problem}. Nothing is skipped, because there are no dead letters of this "
                "topic; docs/dead-letters.md says what to do (batches that cannot be read)"
            ) from error
        if batch.offset >= self.next_fetch_offset:
            self.next_fetch_offset = batch.offset + 1
            yield batch

    def _consumer_record(self, tp: Any, record: Any) -> Any:
        return record if self._as_parsed else super()._consumer_record(tp, record)


def _is_misnamed(error: Exception) -> bool:
    """Returns whether the parser in C, or the one in Python, has met a header name that is not UTF-8."""
    return isinstance(error, UnicodeDecodeError) or isinstance(error.__cause__, UnicodeDecodeError)

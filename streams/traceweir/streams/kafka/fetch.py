"""Returns fetched records as aiokafka's parser creates them, and reads header names that are not UTF-8.

aiokafka copies every record into a dataclass of eleven fields, which costs a third of the time that assemble spends on
the record. aiokafka also raises an error for a header name that is not UTF-8, at every attempt: one such record would
block its partition without end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

_LENGTH_AT, _BODY_AT = 8, 12
"""Offset of the length field in a batch, and offset from which the length counts, in bytes."""
_FIRST_MAGIC_WITH_HEADERS = 2
_MAGIC_AT = 16
PartitionRecords: Any = fetcher.PartitionRecords
"""aiokafka's own class, whatever `read_as_parsed` has put in its place."""


def read_as_parsed(topics: Collection[str]) -> None:
    """Makes all consumers of this process return the records of these topics uncopied.

    An uncopied record has no topic and no partition. A later call adds its topics to those of earlier calls.

    In all topics, bytes of a header name that are not UTF-8 are written as `\\xff`.
    """
    present = fetcher.PartitionRecords
    former: Collection[str] = present.args[0] if isinstance(present, partial) else ()
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = partial(ParsedRecords, {*former, *topics})


class Batches:
    """Iterates over the batches of a fetch, and keeps the position of the current batch for a second read."""

    def __init__(self, data: bytes) -> None:
        self._data, self._inner = data, MemoryRecords(data)
        self._begin = self._end = 0
        self._first: LenientBatch | None = None

    def size_in_bytes(self) -> int:
        """Returns the size of the fetch in bytes."""
        return len(self._data)

    def has_next(self) -> bool:
        """Returns whether a whole batch is left."""
        return self._first is not None or self._inner.has_next()

    def next_batch(self) -> Any:
        """Returns the next batch."""
        if self._first is not None:
            batch, self._first = self._first, None
            return batch
        self._begin = self._end
        (length,) = struct.unpack_from(">i", self._data, self._begin + _LENGTH_AT)
        self._end += _BODY_AT + length
        return self._inner.next_batch()

    def again(self) -> bool:
        """Schedules a second read of the current batch with `LenientBatch`; returns False if its format has no headers."""
        if self._data[self._begin + _MAGIC_AT] < _FIRST_MAGIC_WITH_HEADERS:
            return False
        self._first = LenientBatch(self._data[self._begin : self._end])
        return True


class LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # final in name only
    """Reads a batch of Kafka's format 2 in which a header name can be any bytes."""

    _pos: int

    def _read_msg(self, varint: Callable[[bytearray, int], tuple[int, int]] = decode_varint) -> _DefaultRecordPy:
        buffer = self._buffer
        length, begin = varint(buffer, self._pos)
        later, at = varint(buffer, begin + 1)  # after one byte of attributes, which Kafka does not use yet
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

    def __init__(self, topics: Collection[str], tp: Any, *parts: Any) -> None:
        super().__init__(tp, *parts)
        self._as_parsed = tp.topic in topics

    def __iter__(self) -> Iterator[Any]:
        records: Iterator[Any] = self._records_iterator
        return records  # the inherited `__next__` costs one more call per record

    def _unpack_records(self) -> Iterator[Any]:
        while True:
            try:
                yield from super()._unpack_records()
            except (
                UnicodeDecodeError,
                CorruptRecordException,
            ) as error:  # raised by the parser in C, and by the parser in Python
                misnamed = isinstance(error, UnicodeDecodeError) or isinstance(error.__cause__, UnicodeDecodeError)
                if not (misnamed and self._records.again()):
                    raise
            else:
                return

    def _consumer_record(self, tp: Any, record: Any) -> Any:
        return record if self._as_parsed else super()._consumer_record(tp, record)

"""What a fetch brings, as aiokafka's parser makes it.

aiokafka copies every record into a dataclass of eleven fields, which takes as long as a third of all that assemble does with it. And it
ends a consumer at a header whose name is not UTF-8, again and again: one such record would stop its partition for ever.
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
"""Where in a batch its length stands, and from where on that counts."""
_FIRST_MAGIC_WITH_HEADERS = 2
_MAGIC_AT = 16


def read_as_parsed(topics: Collection[str]) -> None:
    """From now on the consumers of this process hand out the records of these topics uncopied: such a record does not know where it stands.

    In all topics a header name may hold bytes that are not UTF-8, which are then written as `\\xff`.
    """
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = partial(ParsedRecords, topics)


class Batches:
    """The batches of a fetch. The bytes of the one in hand are known, so that it can be read again."""

    def __init__(self, data: bytes) -> None:
        self._data, self._inner = data, MemoryRecords(data)
        self._begin = self._end = 0
        self._first: PatientBatch | None = None

    def size_in_bytes(self) -> int:
        """How many bytes the fetch has."""
        return len(self._data)

    def has_next(self) -> bool:
        """Whether there is a whole batch left."""
        return self._first is not None or self._inner.has_next()

    def next_batch(self) -> Any:
        """The next batch."""
        if self._first is not None:
            batch, self._first = self._first, None
            return batch
        self._begin = self._end
        (length,) = struct.unpack_from(">i", self._data, self._begin + _LENGTH_AT)
        self._end += _BODY_AT + length
        return self._inner.next_batch()

    def again(self) -> bool:
        """Have the batch in hand read again, patiently. False: it is of a format that has no headers."""
        if self._data[self._begin + _MAGIC_AT] < _FIRST_MAGIC_WITH_HEADERS:
            return False
        self._first = PatientBatch(self._data[self._begin : self._end])
        return True


class PatientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # final in name only
    """A batch of Kafka's format 2 in which a header's name may be any bytes."""

    _pos: int

    def _read_msg(self, varint: Callable[[bytearray, int], tuple[int, int]] = decode_varint) -> _DefaultRecordPy:
        buffer = self._buffer
        length, begin = varint(buffer, self._pos)
        later, at = varint(buffer, begin + 1)  # after a byte of attributes, of which there are none yet
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


class ParsedRecords(fetcher.PartitionRecords):  # type: ignore[misc]  # untyped
    """The records of one partition in a fetch."""

    def __init__(self, topics: Collection[str], tp: Any, *parts: Any) -> None:
        super().__init__(tp, *parts)
        self._as_parsed = tp.topic in topics

    def __iter__(self) -> Iterator[Any]:
        records: Iterator[Any] = self._records_iterator
        return records  # by its own `__next__` each would be one call more

    def _unpack_records(self) -> Iterator[Any]:
        while True:
            try:
                yield from super()._unpack_records()
            except (
                UnicodeDecodeError,
                CorruptRecordException,
            ) as error:  # what the parser in C, and the one in Python says
                misnamed = isinstance(error, UnicodeDecodeError) or isinstance(error.__cause__, UnicodeDecodeError)
                if not (misnamed and self._records.again()):
                    raise
            else:
                return

    def _consumer_record(self, tp: Any, record: Any) -> Any:
        return record if self._as_parsed else super()._consumer_record(tp, record)

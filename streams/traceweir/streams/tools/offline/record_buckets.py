"""Divides the records of an input by session, so that each part fits into memory.

All records of a session are in the same bucket, in their order, wherever they are in the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from traceweir.streams.tools.offline.block_file import BlockFile, Items

KEPT_BYTES = 16 << 20
"""Size of the records of an input that is kept in memory, and above which a bucket is divided again."""
_BUCKET_BITS = 7
_BLOCK_BYTES = 64 << 10
"""Size of the blocks of a bucket; each bucket has one block in memory until it is written."""
_LEVELS = 4
"""How often a bucket is divided. A bucket that is still large then has few sessions, which are large themselves."""
_OVERHEAD = 200
"""Bytes that a record takes in memory beside its value."""


class InputRecord(NamedTuple):
    """A record of the input."""

    offset: int
    """Number of the record in the input, from 0."""
    document: int
    """Number of the document that the record comes from."""
    is_trace: bool
    session: bytes | None
    """Id of the session; None if the document names none, so that assemble refuses it."""
    value: bytes


class RecordBuckets:
    """Holds records, and divides them by session when they are too large for the memory.

    Args:
        file: The file of the records that are not kept in memory.
        kept_bytes: Size of the records that are kept in memory.
    """

    def __init__(self, file: BlockFile, kept_bytes: int = KEPT_BYTES, level: int = 0) -> None:
        self._file = file
        self._kept_bytes = kept_bytes
        self._level = level
        self._kept: list[InputRecord] = []
        self._kept_size = 0
        self._buckets: list[Items[InputRecord]] = []
        self._sizes: list[int] = []

    @property
    def divided(self) -> bool:
        """Whether the records are larger than what is kept in memory."""
        return bool(self._buckets)

    def add(self, record: InputRecord) -> None:
        """Adds a record.

        Raises:
            TemporaryFileError: the file cannot be written.
        """
        if self._buckets:
            self._put(record)
            return
        self._kept.append(record)
        self._kept_size += len(record.value) + _OVERHEAD
        if self._kept_size > self._kept_bytes:
            self._divide()

    def parts(self) -> Iterator[Iterable[InputRecord]]:
        """Yields the records in parts, each with all records of its sessions; a part is read while it is iterated.

        Raises:
            TemporaryFileError: the file cannot be written or read.
        """
        if not self._buckets:
            yield self._kept
            return
        for bucket, size in zip(self._buckets, self._sizes, strict=True):
            bucket.flush()
            if size <= self._kept_bytes or self._level + 1 == _LEVELS:
                if size:
                    yield bucket
                continue
            divided = RecordBuckets(self._file, self._kept_bytes, self._level + 1)
            for record in bucket:
                divided.add(record)
            yield from divided.parts()

    def _divide(self) -> None:
        count = 1 << _BUCKET_BITS
        self._buckets = [Items(self._file, InputRecord, _BLOCK_BYTES) for _ in range(count)]
        self._sizes = [0] * count
        for record in self._kept:
            self._put(record)
        self._kept = []

    def _put(self, record: InputRecord) -> None:
        digest = int.from_bytes(blake2b(record.session or b"", digest_size=8).digest())
        number = digest >> _BUCKET_BITS * self._level & (1 << _BUCKET_BITS) - 1
        self._buckets[number].add(record)
        self._sizes[number] += len(record.value) + _OVERHEAD

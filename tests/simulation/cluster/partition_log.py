"""The log of one partition: batches as Kafka stores them, idempotent producers, transactions, and the last stable offset."""

from __future__ import annotations

import struct
from collections import deque
from typing import Any, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

NO_ERROR, OFFSET_OUT_OF_RANGE, OUT_OF_ORDER_SEQUENCE, INVALID_PRODUCER_EPOCH = 0, 1, 45, 47
_HEADER = struct.Struct(">qiibIhiqqqhii")
"""First offset, length, leader epoch, magic, checksum, attributes, last offset delta, first and last timestamp, producer
id, producer epoch, first sequence number, number of records."""
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_ATTRIBUTES_AT, _CRC_AT, _LAST_DELTA_AT = 21, 17, 23
REMEMBERED = 5
"""Number of batches of a producer that a partition remembers, to recognise repeated ones."""


class Batch(NamedTuple):
    """A stored batch."""

    first: int
    last: int
    raw: bytes
    producer: int
    """Id of the producer; -1 if it is not idempotent."""
    transactional: bool
    control: bool
    timestamp: int
    """The largest timestamp of its records, in milliseconds since 1970."""
    horizon_ms: int | None = None
    """Time from which on compaction removes its tombstones; None: it was not compacted with tombstones yet."""


class _Producer:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last: deque[tuple[int, int, int]] = deque(maxlen=REMEMBERED)
        """First and last sequence number, and first offset, of the last batches."""


class Aborted(NamedTuple):
    """An aborted transaction in a partition."""

    producer: int
    first: int
    last: int
    """Offset of the marker."""


class PartitionLog:
    """A log whose offsets, errors and markers are those of Kafka."""

    def __init__(self) -> None:
        self.delete_retention_ms: int | None = None
        """How long compaction keeps a tombstone that it has seen, in milliseconds; None: for ever."""
        self.batches: list[Batch] = []
        self.begin = 0
        """The first offset that is still there."""
        self.end = 0
        """The offset after the last record or marker: the high watermark, because every node has every record."""
        self.open: dict[int, int] = {}
        """First offset of the open transaction, by producer."""
        self.aborted: list[Aborted] = []
        self._producers: dict[int, _Producer] = {}

    @property
    def stable(self) -> int:
        """The last stable offset: the first offset of the oldest open transaction, or the end."""
        return min(self.open.values(), default=self.end)

    def append(self, raw: bytes) -> tuple[int, int]:
        """Appends the batch of a produce request; returns an error code and the batch's first offset.

        A repeated batch of an idempotent producer is stored once, and gets its first answer again.
        """
        head = _HEADER.unpack_from(raw)
        attributes, delta, timestamp = head[5], head[6], head[8]
        producer, epoch, sequence = head[9:12]
        if producer >= 0:
            error, known = self._check(producer, epoch, sequence, sequence + delta)
            if error or known is not None:
                return error, -1 if known is None else known
        first = self._store(raw, delta, producer, attributes, timestamp)
        if producer >= 0:
            self._producers[producer].last.append((sequence, sequence + delta, first))
        if attributes & _TRANSACTIONAL:
            self.open.setdefault(producer, first)
        return NO_ERROR, first

    def _check(self, producer: int, epoch: int, first: int, last: int) -> tuple[int, int | None]:
        known = self._producers.get(producer)
        if known is None:
            known = self._producers[producer] = _Producer(epoch)
            return NO_ERROR, None  # its former batches may have been deleted
        if epoch < known.epoch:
            return INVALID_PRODUCER_EPOCH, None
        if epoch > known.epoch:
            if first:
                return OUT_OF_ORDER_SEQUENCE, None
            known.epoch = epoch
            known.last.clear()
            return NO_ERROR, None
        for begin, end, offset in known.last:
            if (begin, end) == (first, last):
                return NO_ERROR, offset
        following = known.last[-1][1] + 1 if known.last else 0
        return (NO_ERROR if not known.last or first == following else OUT_OF_ORDER_SEQUENCE), None

    def _store(self, raw: bytes, delta: int, producer: int, attributes: int, timestamp: int) -> int:
        first = self.end
        placed = struct.pack(">q", first) + raw[8:]  # the checksum does not cover the first offset
        transactional, control = bool(attributes & _TRANSACTIONAL), bool(attributes & _CONTROL)
        self.batches.append(Batch(first, first + delta, placed, producer, transactional, control, timestamp))
        self.end = first + delta + 1
        return first

    def mark(self, producer: int, epoch: int, *, commit: bool, now_ms: int) -> None:
        """Ends the transaction of a producer with a marker."""
        raw = _marker(producer, epoch, commit=commit, now_ms=now_ms)
        first = self.open.pop(producer, None)
        known = self._producers.setdefault(producer, _Producer(epoch))
        if epoch > known.epoch:
            known.epoch = epoch
            known.last.clear()
        at = self._store(raw, 0, producer, _TRANSACTIONAL | _CONTROL, now_ms)
        if first is not None and not commit:
            self.aborted.append(Aborted(producer, first, at))

    def read(
        self, offset: int, limit: int, *, committed: bool, whole_first: bool = True
    ) -> tuple[int, bytes, list[tuple[int, int]]]:
        """Returns an error code, the batches from an offset on, and the aborted transactions among them.

        The last batch is cut at the limit.

        Args:
            offset: The first offset; a batch that contains it comes whole.
            limit: Bytes.
            committed: Whether to stop at the last stable offset.
            whole_first: Whether the first batch comes even if it is larger than the limit. Otherwise nothing comes then.
        """
        if not self.begin <= offset <= self.end:
            return OFFSET_OUT_OF_RANGE, b"", []
        until = self.stable if committed else self.end
        found, size, last = list[bytes](), 0, offset
        for batch in self.batches[self._place(offset) :]:
            if batch.first >= until:
                break
            if size + len(batch.raw) > limit and (found or not whole_first):
                if found:
                    found.append(batch.raw[: limit - size])
                break
            found.append(batch.raw)
            size += len(batch.raw)
            last = batch.last
        aborted = [
            (each.producer, each.first)
            for each in self.aborted
            if committed and each.last >= offset and each.first <= last
        ]
        return NO_ERROR, b"".join(found), aborted if found else []

    # What a node does over time

    def delete_before(self, offset: int, *, exactly: bool = False) -> None:
        """Deletes the batches below an offset.

        Args:
            offset: The offset.
            exactly: Whether the log begins at the offset afterwards, as when a client deletes records. Otherwise it
                begins with a whole batch, as after retention.
        """
        del self.batches[: self._place(min(offset, self.stable))]
        begin = offset if exactly else self.batches[0].first if self.batches else self.end
        self.begin = max(self.begin, begin)

    def forget_producers(self) -> None:
        """Forgets the producers without an open transaction, as after `producer.id.expiration.ms`."""
        self._producers = {name: each for name, each in self._producers.items() if name in self.open}

    def compact(self, now_ms: int) -> int:
        """Keeps only the last record of each key, and no record of an aborted transaction; returns how many are gone.

        A tombstone stays for `delete_retention_ms` after the first compaction that has seen it, as since KIP-534. Offsets
        and markers stay. The last batch is not compacted, as the active segment of Kafka.
        """
        until = self._place(self.stable) - 1
        if until <= 0:
            return 0
        found = {place: _records(batch) for place, batch in enumerate(self.batches[:until]) if not batch.control}
        for place in [*found]:
            batch = self.batches[place]
            if any(each.producer == batch.producer and each.first <= batch.first < each.last for each in self.aborted):
                found[place] = []
        last = {record.key: record.offset for records in found.values() for record in records}
        gone = 0
        kept: list[Batch] = []
        for place, batch in enumerate(self.batches):
            if place not in found:
                kept.append(batch)
                continue
            expired = batch.horizon_ms is not None and now_ms >= batch.horizon_ms
            stay = [
                record
                for record in found[place]
                if last[record.key] == record.offset and not (expired and record.value is None)
            ]
            if self.delete_retention_ms is not None and any(record.value is None for record in stay):
                batch = batch._replace(horizon_ms=batch.horizon_ms or now_ms + self.delete_retention_ms)
            count = _count(batch)
            gone += count - len(stay)
            if len(stay) == count:
                kept.append(batch)
            elif stay:
                kept.append(batch._replace(raw=_rebuilt(batch, stay)))
        self.batches = kept
        return gone

    def _place(self, offset: int) -> int:
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].last < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def offset_of_time(self, timestamp: int) -> int:
        """Returns the first offset of the first batch with this timestamp or a later one; -1 if there is none."""
        return next((each.first for each in self.batches if each.timestamp >= timestamp and not each.control), -1)


def _records(batch: Batch) -> list[Any]:
    records = MemoryRecords(batch.raw)
    return list(records.next_batch())


def _count(batch: Batch) -> int:
    count: int = _HEADER.unpack_from(batch.raw)[12]
    return count


def _rebuilt(batch: Batch, records: list[Any]) -> bytes:
    """Returns a batch with some of its records at their offsets; producer, sequence numbers and last offset stay."""
    head = _HEADER.unpack_from(batch.raw)
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=int(batch.transactional),
        producer_id=head[9],
        producer_epoch=head[10],
        base_sequence=head[11],
        batch_size=2_000_000,
    )
    for each in records:
        builder.append(each.offset - batch.first, each.timestamp, each.key, each.value, list(each.headers))
    raw = bytearray(builder.build())
    struct.pack_into(">q", raw, 0, batch.first)
    struct.pack_into(">i", raw, _LAST_DELTA_AT, batch.last - batch.first)
    struct.pack_into(">I", raw, _CRC_AT, calc_crc32c(bytes(raw[_ATTRIBUTES_AT:])))
    return bytes(raw)


def _marker(producer: int, epoch: int, *, commit: bool, now_ms: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=1,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=-1,
        batch_size=1_000,
    )
    builder.append(0, now_ms, struct.pack(">HH", 0, int(commit)), struct.pack(">Hi", 0, 0), [])
    raw = bytearray(builder.build())
    struct.pack_into(">h", raw, _ATTRIBUTES_AT, _TRANSACTIONAL | _CONTROL)
    struct.pack_into(">I", raw, _CRC_AT, calc_crc32c(bytes(raw[_ATTRIBUTES_AT:])))
    return bytes(raw)

"""Defines what a reader gets in place of records that cannot be seen: their batch as Kafka stores it.

A producer compresses a batch as a whole. If the batch cannot be decompressed, its header still says which offsets it has.
"""

from __future__ import annotations

from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import _DefaultRecordBatchPy

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.stages.base import UnreadableBatch

_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_ERROR_CHARS = 200
_CHANGED = (
    "have another checksum than their producer computed: a disk or the network has changed them. No data is lost: start the "
    "process again; if this repeats, make another replica the leader of the partition"
)


class UnreadableBatchError(WorkerError, CorruptRecordException):  # type: ignore[misc]  # aiokafka is untyped
    """Records of a topic that has no dead letters cannot be seen; the message says which ones, and why."""

    def __str__(self) -> str:
        # aiokafka would write its own name and number before.
        return str(self.args[0])


def unreadable_batch(topic: str, partition: int, raw: bytes, begin: int, error: Exception) -> UnreadableBatch:
    """Returns a batch of format 2 as one record.

    Args:
        topic: The topic.
        partition: The partition.
        raw: The batch as Kafka stores it.
        begin: The offset from which records are read; earlier ones of the batch have been read.
        error: What reading the records has raised.

    Raises:
        UnreadableBatchError: the checksum of the batch is wrong, so that the bytes are not those of its producer.
    """
    batch = _DefaultRecordBatchPy(raw)
    first = max(begin, batch.base_offset)
    last = batch.next_offset - 1
    if not batch.validate_crc():
        raise UnreadableBatchError(f"{topic}[{partition}]: offsets {first} to {last} {_CHANGED}") from error
    codec = batch.compression_type
    compression = (
        f"compressed with {_CODECS[codec]}" if codec in _CODECS else f"compressed with the unknown codec {codec}"
    )
    known = not isinstance(error, UnsupportedCodecError)
    why = printable(f"{type(error).__name__}: {error}", _ERROR_CHARS) if known else "Traceweir cannot decompress it"
    problem = (
        f"offsets {first} to {last}, a batch of {counted(batch._num_records, 'record')} {compression if codec else 'without compression'}, "
        f"cannot be read ({why})"
    )
    return UnreadableBatch(topic, partition, last, batch.max_timestamp, raw, problem)

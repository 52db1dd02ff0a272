"""Reads and writes the rows that Faust's table keeps in RocksDB, by partition."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from faust.types import TP
from rocksdict import WriteBatch, WriteOptions

from traceweir.streams.base.errors import WorkerError


def _no_log() -> WriteOptions:
    options = WriteOptions()
    options.disable_wal = True
    return options


class LocalRowsError(WorkerError):
    """The local rows of a partition cannot be opened or written; the message contains the reason and the way out."""


class PartitionTable:
    """Reads and writes Faust's table of one application by partition."""

    _source_key = b"__traceweir\0source__"
    _current_key = b"__traceweir\0current__"

    def __init__(self, table: Any) -> None:
        self._store = table.data
        self.changelog: str = table.changelog_topic_name

    def open(self, partition: int) -> None:
        """Opens a partition without RocksDB's write-ahead log. Call this before the partition is read or written.

        The changelog replaces the write-ahead log. After a crash the rows have a consistent earlier state, and
        `reached` returns the changelog offset of this state.
        """
        with self.translate_errors(partition):
            self._store._db_for_partition(partition).set_write_options(_no_log())

    def rows(self, partition: int) -> dict[bytes, bytes]:
        """Returns all rows of a partition."""
        rows: dict[bytes, bytes] = dict(self._store._db_for_partition(partition).items())
        for hidden in self._hidden:
            rows.pop(hidden, None)
        return rows

    def read(self, partition: int, key: bytes) -> bytes | None:
        """Returns one row, or None."""
        value: bytes | None = self._store._db_for_partition(partition).get(key)
        return value

    @property
    def _hidden(self) -> tuple[bytes, ...]:
        return self._store.offset_key, self._source_key, self._current_key

    def write(
        self,
        partition: int,
        rows: Iterable[tuple[bytes, bytes | None]],
        offset: int,
        current_at: float | None = None,
    ) -> None:
        """Writes committed rows and their last changelog offset (inclusive) in one atomic batch.

        Args:
            partition: The partition.
            rows: The rows; None deletes a row.
            offset: The offset.
            current_at: A time, in seconds since 1970, before which no row was written that is missing here; None: the
                time of the former rows holds.
        """
        batch = WriteBatch(raw_mode=True)
        for key, value in rows:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(self._store.offset_key, str(offset).encode())
        if current_at is not None:
            batch.put(self._current_key, str(current_at).encode())
        # A failed background flush surfaces here: RocksDB then refuses all writes. The rows on disk stay consistent.
        with self.translate_errors(partition):
            self._store._db_for_partition(partition).write(batch, _no_log())

    @contextmanager
    def translate_errors(self, partition: int | None = None) -> Iterator[None]:
        """Translates RocksDB's errors into a message with the way out.

        Raises:
            LocalRowsError: RocksDB raised an error.
        """
        try:
            yield
        except Exception as error:
            whose = "local rows" if partition is None else f"the local rows of partition {partition}"
            raise LocalRowsError(
                f"{whose} in {self._store.path} cannot be opened or written ({error}). No data is lost: free disk space or "
                "repair the disk, and start the worker again; if the rows are damaged, delete that folder, and the worker "
                "rebuilds it from the changelog"
            ) from error

    def reached(self, partition: int) -> int:
        """Returns the changelog offset up to which the rows are written (inclusive); -1 without rows."""
        offset = self._store.persisted_offset(TP(self.changelog, partition))
        return -1 if offset is None else int(offset)

    def reach(self, partition: int, offset: int, current_at: float) -> None:
        """Notes that the rows are written up to this changelog offset (inclusive), where the changelog ended at a time."""
        self.write(partition, (), offset, current_at)

    def current_at(self, partition: int) -> float | None:
        """Returns a time, in seconds since 1970, before which no row was written that is missing here; None: unknown."""
        noted = self.read(partition, self._current_key)
        return None if noted is None else float(noted)

    def source(self, partition: int) -> str | None:
        """Returns the id of the changelog from which the rows were read; None if the id is unknown."""
        noted = self.read(partition, self._source_key)
        return None if noted is None else noted.decode()

    def discard_all_but(self, partitions: Collection[int]) -> list[int]:
        """Deletes the local rows of all other partitions; returns their numbers."""
        found: list[int] = []
        for file in self._store.path.glob(f"{self._store.basename}-*.db"):
            number = file.stem.rpartition("-")[2]
            if number.isdecimal() and int(number) not in partitions:
                self._store._dbs.pop(int(number), None)
                shutil.rmtree(file, ignore_errors=True)
                found.append(int(number))
        return sorted(found)

    def start_over(self, partition: int, source: str, now: float) -> int:
        """Deletes all rows, notes the changelog of the following rows and the time; returns the number of deleted rows."""
        db = self._store._db_for_partition(partition)
        keys = set(db.keys())
        count = len(keys.difference(self._hidden))
        with self.translate_errors(partition):
            db.delete(
                self._source_key
                # Deleted first: after a crash in this function the remaining rows must not look complete.
            )
            for key in keys:
                db.delete(key)
            db.put(self._current_key, str(now).encode())
            db.put(self._source_key, source.encode())
        return count

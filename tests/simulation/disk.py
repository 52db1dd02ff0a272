"""A simulated disk for RocksDB without a write-ahead log: a crash loses what was not flushed, and a full disk refuses writes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Operations = list[tuple[bytes, bytes | None]]


class Batch:
    """Stands for RocksDB's `WriteBatch`."""

    def __init__(self, **options: Any) -> None:
        self.operations: Operations = []

    def put(self, key: bytes, value: bytes) -> None:
        """Adds a row."""
        self.operations.append((key, value))

    def delete(self, key: bytes) -> None:
        """Adds a deletion."""
        self.operations.append((key, None))


class Disk:
    """The databases of one simulated process by path. They survive the process.

    Args:
        rnd: Draws when a database flushes.
    """

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.full = False
        """Whether writes fail."""
        self.fails_in: int | None = None
        """How many writes still succeed before one fails; None: none fails."""
        self.failed: Callable[[], object] = lambda: None
        """Called when that write fails."""
        self.ends_in: int | None = None
        """How many writes still come before one at which the process ends; None: it ends at none."""
        self.end: Callable[[], bool] = lambda: False
        """Called at that write; ends the process, and returns whether it did."""
        self.gone = False
        """Whether the process has ended at a write: what the rest of its step writes is lost."""
        self.wrote: Callable[[], object] = lambda: None
        """Called after each write."""
        self.databases: dict[str, Database] = {}

    def refuses(self) -> bool:
        """Returns whether the write that comes now fails."""
        if self.fails_in is None or self.full:
            return self.full
        self.fails_in -= 1
        if self.fails_in >= 0:
            return False
        self.fails_in = None
        self.failed()
        return True

    def loses(self) -> bool:
        """Returns whether the write that comes now is lost because the process has ended at it, or at one before."""
        if self.ends_in is not None:
            self.ends_in -= 1
            if self.ends_in < 0:
                self.ends_in, self.gone = None, self.end()
        return self.gone

    def open(self, path: Path) -> Database:
        """Opens or creates a database.

        Raises:
            OSError: the disk is full.
        """
        if self.full:
            raise OSError(28, "No space left on device", str(path))
        if str(path) not in self.databases:
            self.databases[str(path)] = Database(self)
        return self.databases[str(path)]

    def crash(self) -> None:
        """Loses what was not flushed: each database falls back to an earlier state of its own."""
        for database in self.databases.values():
            database.crash()

    def flush(self) -> None:
        """Makes all writes safe."""
        for database in self.databases.values():
            database.flush()

    def wipe(self) -> None:
        """Loses everything."""
        self.databases.clear()


class Database:
    """Stands for one RocksDB database that is opened by `rocksdict`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._flushed: dict[bytes, bytes] = {}
        self._unflushed: list[Operations] = []
        self._rows: dict[bytes, bytes] = {}

    def crash(self) -> None:
        """Falls back to what was flushed, and a drawn part of the writes after it."""
        rnd, count = self._disk.rnd, len(self._unflushed)
        kept = rnd.choice((0, count, count, rnd.randint(0, count)))
        for operations in self._unflushed[:kept]:
            _apply(self._flushed, operations)
        self._rows, self._unflushed = dict(self._flushed), []

    def _write(self, operations: Operations) -> None:
        if self._disk.loses():
            return
        if self._disk.refuses():
            raise OSError(28, "No space left on device")
        _apply(self._rows, operations)
        self._unflushed.append(operations)
        self._disk.wrote()
        if self._disk.rnd.random() < 0.02:
            self.flush()

    def flush(self) -> None:
        """Makes all writes safe."""
        self._flushed, self._unflushed = dict(self._rows), []

    # What Faust and Traceweir ask of a database

    def set_write_options(self, options: Any) -> None:
        """Does nothing."""

    def write(self, batch: Batch, options: Any = None) -> None:
        """Writes a batch."""
        self._write(batch.operations)

    def put(self, key: bytes, value: bytes) -> None:
        """Writes a row."""
        self._write([(key, value)])

    def delete(self, key: bytes) -> None:
        """Deletes a row."""
        self._write([(key, None)])

    def get(self, key: bytes) -> bytes | None:
        """Returns a row."""
        return self._rows.get(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Returns all rows in the order of their keys."""
        return iter(sorted(self._rows.items()))

    def keys(self) -> Iterator[bytes]:
        """Returns all keys in order."""
        return iter(sorted(self._rows))

    def close(self) -> None:
        """Flushes, as RocksDB does when it is closed."""
        self.flush()


def _apply(rows: dict[bytes, bytes], operations: Operations) -> None:
    for key, value in operations:
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value

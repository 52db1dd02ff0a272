"""Passes rows of the table to stages, each of which sees its own rows without its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Protocol

from traceweir.streams.base.stages.base import Read
from traceweir.streams.worker.runtime.suspects import describe


class StateTable(Protocol):
    """Protocol of the rows of an application, by partition, as of the last finished checkpoint."""

    @property
    def changelog(self) -> str:
        """Name of the topic from which the rows can be rebuilt."""

    def rows(self, partition: int) -> Mapping[bytes, bytes]:
        """Returns all rows of a partition."""

    def read(self, partition: int, key: bytes) -> bytes | None:
        """Returns one row, or None."""


class TableFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """The table could not be read: a fault of the disk, and not of a record."""


def rows_by_stage(rows: Mapping[bytes, bytes]) -> dict[bytes, dict[bytes, bytes]]:
    """Returns the rows of each stage by its name, under their keys without the name."""
    shares: dict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    for key, row in rows.items():
        name, _, own = key.partition(b"/")
        shares[name][own] = row
    return shares


def row_reader(table: StateTable, partition: int, prefix: bytes, unwritten: Mapping[bytes, bytes | None]) -> Read:
    """Returns a function that reads a row of a stage.

    Args:
        table: The table, as of the last finished checkpoint.
        partition: The partition.
        prefix: What the key of each row of the stage begins with in the table.
        unwritten: Rows of checkpoints that are not finished; they count.
    """

    def read(key: bytes) -> bytes | None:
        if unwritten and (whole := prefix + key) in unwritten:
            return unwritten[whole]
        try:
            return table.read(partition, prefix + key)
        except Exception as error:
            raise TableFailed(f"the state of partition {partition} cannot be read: {describe(error)}") from error

    return read

"""The formats of rows, on disk and in the changelog: which ones this version reads, and which one it writes.

Raise `FORMAT` for a change that an older worker would misread, and give `ROW_FORMATS` the function that turns rows of the
new format into rows of the one before. Stages write rows of the newest format. They also accept older ones from `OLDEST`
on, in `load` and when they read a row: the rows of a partition can be of different formats until each was written again.
A lane writes the newest format that all members of its group read, so that workers of the version before go on while a
group is upgraded.

If `OLDEST` is raised to the new format too, the format needs no function: this version then refuses the state of an
earlier one, and an earlier one that of this version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from traceweir.streams.base.stages.base import Rows
from traceweir.streams.worker.runtime.state_directory import StateDirectoryError

FORMAT = 4
"""The newest format of rows."""
OLDEST = 4
"""Oldest format that this version reads."""
FORMAT_ROW = b"checkpoint/format"
"""Row with the newest format of the rows of a partition. Without this row the format of committed rows is 1."""


class RowFormats(NamedTuple):
    """The formats of a version, and what its group has agreed on."""

    newest: int = FORMAT
    """The newest format that this version reads and writes."""
    older: Mapping[int, Callable[[Rows], Rows]] = {}
    """By format, what turns its rows into rows of the format before; the keys of these rows begin with their stage."""
    agreed: int = FORMAT
    """The newest format that all members of the group read."""

    @property
    def default(self) -> int:
        """The format in which to write a partition that has no newer rows."""
        oldest_written = min(self.older, default=self.newest + 1) - 1
        return max(min(self.agreed, self.newest), oldest_written)

    def to_write(self, row: bytes | None, number: int, changelog: str, *, is_new: bool) -> int:
        """Returns the format in which to write a partition. It never goes back.

        Args:
            row: The partition's row `FORMAT_ROW`.
            number: The partition.
            changelog: The changelog, for the message.
            is_new: Whether no checkpoint of the partition has been committed.

        Raises:
            StateDirectoryError: this version cannot read the rows of the partition.
        """
        found = int(row or (b"%d" % OLDEST if is_new else b"1"))
        whose = f"the state of partition {number}, in {changelog},"
        if found > self.newest:
            raise StateDirectoryError(
                f"{whose} was written by a newer Traceweir (format {found}; this version reads up to {self.newest}): run "
                "the newer version, or start with new topics under another TRACEWEIR_TOPIC_PREFIX"
            )
        if found < OLDEST:
            raise StateDirectoryError(
                f"{whose} was written by an older Traceweir (format {found}; this version reads from {OLDEST} on): run "
                "that version, or start with new topics under another TRACEWEIR_TOPIC_PREFIX"
            )
        return max(found, self.default)

    def rows_in(self, row_format: int, rows: Rows) -> Rows:
        """Returns rows of the newest format in an older one, which `to_write` has returned."""
        for each in range(self.newest, row_format, -1):
            rows = self.older[each](rows)
        return rows


ROW_FORMATS = RowFormats()
"""The formats of this version."""

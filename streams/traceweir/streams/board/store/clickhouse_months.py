"""Finds the months of a table in ClickHouse that are old as a whole: retention drops partitions, and deletes no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from traceweir.streams.board.store.clickhouse_types import UNDATED

Rows = Callable[[str], Sequence[Sequence[Any]]]
"""Gives the rows of a query."""


def old_months(rows: Rows, name: str, until: datetime, time: str) -> list[str]:
    """Returns the partitions of months that ended at a time or before.

    The partition of rows without a time is old if the newest of its rows is.

    Args:
        rows: Asks the database.
        name: The table.
        until: The time, in UTC without a zone.
        time: The column that says how old a row without a time is.
    """
    old = []
    for (found,) in rows(f"SELECT DISTINCT _partition_id FROM {name} ORDER BY _partition_id"):
        month = str(found)
        if month == UNDATED:
            ((last,),) = rows(f"SELECT max({time}) FROM {name} WHERE _partition_id = '{UNDATED}'")
            is_old = last < until.replace(tzinfo=last.tzinfo)
        else:
            is_old = _end_of(month) <= until
        if is_old:
            old.append(month)
    return old


def _end_of(month: str) -> datetime:
    """Returns the end of a month that is written as the name of a partition.

    >>> str(_end_of("202512"))
    '2026-01-01 00:00:00'
    """
    year, number = divmod(int(month[:4]) * 12 + int(month[4:]), 12)
    return datetime(year, number + 1, 1)  # noqa: DTZ001  # columns have times in UTC without a zone

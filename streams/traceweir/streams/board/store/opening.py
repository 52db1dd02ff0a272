"""Opens the store that a setting names: a file of DuckDB, or the address of a database of ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from traceweir.schemas.text import printable
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.rows import Batch, SourcePartition
from traceweir.streams.board.store.tables import TableName

SCHEMES = ("clickhouse", "clickhouses", "chdb")
"""The beginnings of addresses; everything else is a file."""


class Store(Protocol):
    """Keeps rows, and answers queries in DuckDB's SQL. Its methods block; they raise what `StoreError` documents."""

    def offsets(self) -> dict[SourcePartition, int]:
        """Returns the offset at which each partition has to be read next; a partition that is new is left out."""

    def topic_ids(self) -> dict[str, str]:
        """Returns the ids of the topics to which the offsets belong, by their names."""

    def current_at(self) -> dict[str, datetime]:
        """Returns, by topic, the time at which the store lacked nothing, as `Batch` says."""

    def start_over(self, table: TableName, topic: str, at: datetime) -> int:
        """Removes the rows and the offsets of a topic, which is then read from its beginning; returns the number of rows.

        The table is one without figures and history. The time becomes that of `current_at`.
        """

    def write(self, batch: Batch) -> None:
        """Stores the rows of a batch and its offsets, so that each row counts once."""

    def remove_old(self, before: Mapping[TableName, datetime]) -> dict[TableName, int]:
        """Removes the rows of a table that are older than its time, and returns their numbers."""

    def remove_old_figures(self, minutes_before: datetime, figures_before: datetime) -> None:
        """Adds up old figures per minute by hour, and removes those that are older still."""

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of a query, each by the names of its columns."""

    def close(self) -> None:
        """Closes the store."""


def open_store(name: str, holder: str, opened_at: datetime) -> Store:
    """Opens a store, and creates its tables in an empty one.

    Args:
        name: A file, or an address that begins with one of `SCHEMES`.
        holder: Who opens the store; another process that lost the store names it.
        opened_at: When.

    Raises:
        StoreError: the store cannot be used, or its packages are not installed.
    """
    scheme, _, _ = name.partition(":")
    if scheme not in SCHEMES:
        if "://" in name:
            raise StoreError(
                f"TRACEWEIR_STORE begins with {printable(scheme, 40)}://, which is no kind of store: name a file, or an address that "
                "begins with clickhouse:// or, for TLS, clickhouses://"
            )
        from traceweir.streams.board.store.duckdb_store import DuckDBStore

        return DuckDBStore(Path(name), holder, opened_at)
    try:
        from traceweir.streams.board.store.clickhouse_store import ClickHouseStore
    except ModuleNotFoundError as error:
        raise StoreError(
            f"a store in ClickHouse needs the package {error.name}: pip install 'traceweir[clickhouse]'"
        ) from None
    return ClickHouseStore(name, holder, opened_at)

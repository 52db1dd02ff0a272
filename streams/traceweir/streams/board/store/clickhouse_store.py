"""Keeps rows in ClickHouse. Rows are written first and offsets last, and a row that is written again counts once."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ClickHouseError

from traceweir.schemas.text import printable
from traceweir.streams.board.store import clickhouse_figures
from traceweir.streams.board.store.clickhouse_months import old_months
from traceweir.streams.board.store.clickhouse_sql import EARLIEST, LATEST, TIME, stored_time, time_parameter, translated
from traceweir.streams.board.store.clickhouse_tables import SCHEMA_VERSION, migration, statements
from traceweir.streams.board.store.clickhouse_types import NEW_RESULTS, OPENED_AT, RECORDS, type_of
from traceweir.streams.board.store.errors import StoreError, StoreLostError, StoreUnavailableError
from traceweir.streams.board.store.rows import Batch, SourcePartition
from traceweir.streams.board.store.tables import KEPT_SCORES, LABELS, RESULTS, TABLES, Table, TableName

SETTINGS = {
    # A record that was written twice, or replaced, is read once.
    "final": 1,
    "prefer_column_name_to_alias": 1,
    "aggregate_functions_null_for_empty": 1,
    "join_use_nulls": 1,
    "max_execution_time": 30,
    # All versions of a row are in one partition, because a table is divided by what no revision changes.
    "do_not_merge_across_partitions_select_final": 1,
}
"""What makes ClickHouse answer a query as other databases do."""
_INSERTING = {
    # Rows of one insert are one block, whose sums are computed together.
    "min_insert_block_size_bytes": 0,
    # Records can have any time; a partition more costs less than a batch that is refused for ever.
    "throw_on_max_partitions_per_insert_block": 0,
}
_INSERTED_AT_ONCE = 100_000
"""Maximum number of rows of an insert, less than those of a block."""
_UNTIL = f"{{until: {TIME}}}"
_STATE = ("kind", "topic", "partition", "number", "text", "version")


class ClickHouseStore:
    """A results store in a database of ClickHouse. Its methods may be called from any thread.

    Args:
        url: `clickhouse://user:password@host:8123/database`, `clickhouses://` for TLS, or `chdb:` and a folder for the
            engine in this process.
        holder: Who opens the store; another process that lost the store names it.
        opened_at: When.

    Raises:
        StoreError: the database cannot be reached, is not empty and no store, or is of a newer version.
    """

    def __init__(self, url: str, holder: str, opened_at: datetime) -> None:
        self.name, self._secret = _shown(url)
        self._writing = threading.Lock()
        self._token = secrets.token_hex(8)
        try:
            self._client = _connect(url)
            migrating = self._prepare()
            # A process of the former version that still runs must not add rows behind the migration.
            self.epoch = self._own(holder, opened_at)
            for statement in migrating:
                self._client.command(statement)
        except (ClickHouseError, OSError) as error:
            raise StoreError(
                f"{self.name} cannot be opened: {self._message_of(error)}. Check the address, the user and the database; the database "
                "must exist"
            ) from None

    def close(self) -> None:
        """Closes the connections."""
        with self._writing:
            self._client.close()

    def offsets(self) -> dict[SourcePartition, int]:
        """Returns the offset at which each partition has to be read next; a partition that is new is left out.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot answer now.
        """
        with self._asking():
            self._require_ownership()
            found = self._rows("SELECT topic, partition, number FROM feed_state WHERE kind = 'offset'")
        return {SourcePartition(topic, partition): number for topic, partition, number in found}

    def topic_ids(self) -> dict[str, str]:
        """Returns the ids of the topics to which the offsets belong, by their names; a topic without a known id is left out.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot answer now.
        """
        with self._asking():
            self._require_ownership()
            found = self._rows("SELECT topic, text FROM feed_state WHERE kind = 'topic'")
        return {str(row[0]): str(row[1]) for row in found}

    def current_at(self) -> dict[str, datetime]:
        """Returns, by topic, the time at which the store lacked nothing, as `Batch` says.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot answer now.
        """
        with self._asking():
            self._require_ownership()
            found = self._rows("SELECT topic, number FROM feed_state WHERE kind = 'time'")
        return {str(topic): datetime.fromtimestamp(number / 1000, UTC) for topic, number in found}

    def start_over(self, table: TableName, topic: str, at: datetime) -> int:
        """Removes the rows, then the offsets of a topic, and returns the number of rows.

        After a failure the offsets can be there while rows are not. `current_at` changes last, so that the caller sees that
        it has to start over again.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now.
        """
        with self._asking():
            self._require_ownership()
            ((removed,),) = self._rows(f"SELECT count(*) FROM {table}")
            self._client.command(f"DELETE FROM {table} WHERE true")
            for kind in ("offset", "time"):
                self._client.command(
                    f"DELETE FROM feed_state WHERE kind = '{kind}' AND topic = {{topic: String}}",
                    parameters={"topic": topic},
                )
            self._insert_state(Batch(current_at={topic: at}), {})
        return int(removed)

    def write(self, batch: Batch) -> None:
        """Stores the rows of a batch, then its offsets.

        After a failure, some rows can be stored while the offsets are not. The same records then come again, and their
        rows count once.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now; `offsets` tells what has to be read again.
        """
        with self._asking():
            self._require_ownership()
            unreadable = dict(batch.unreadable)
            for table in TABLES:
                rows = batch.rows.get(table.name, ())
                fitting = [row for row in rows if _fits(row)]
                if len(fitting) < len(rows):
                    unreadable[table.name] = unreadable.get(table.name, 0) + len(rows) - len(fitting)
                for at in range(0, len(fitting), _INSERTED_AT_ONCE):
                    self._insert(table, fitting[at : at + _INSERTED_AT_ONCE])
            self._insert_state(batch, unreadable)

    def remove_old(self, before: Mapping[TableName, datetime]) -> dict[TableName, int]:
        """Removes old rows, and returns their numbers: whole months, of tables that are divided by them.

        A month is old if it ended at the time of the table or before. The figures of removed results stay, and so do open
        alerts, however old they are.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now.
        """
        removed: dict[TableName, int] = {}
        with self._asking():
            self._require_ownership()
            for table in TABLES:
                if (moment := before.get(table.name)) is None:
                    continue
                until = stored_time(moment.astimezone(UTC).replace(tzinfo=None))
                if table is RESULTS:
                    self._keep_labelled(until)
                    self._drop_months(f"replaced_{table.name}", until, "written_at")
                    self._drop_months(clickhouse_figures.COSTS, until, "evaluated_at")
                if table.name in OPENED_AT:
                    removed[table.name] = self._drop_months(table.name, until, "written_at")
                    continue
                only = f" AND {table.removed_if}" if table.removed_if else ""
                old = f"{table.time} < $until{only}"
                ((removed[table.name],),) = self._rows(
                    f"SELECT count(*) FROM {table.name} WHERE {old}", {"until": until}
                )
                if removed[table.name]:
                    self._command(f"DELETE FROM {table.name} WHERE {_old(table)}", until)
            self._forget_replaced_labels()
        return removed

    def remove_old_figures(self, minutes_before: datetime, figures_before: datetime) -> None:
        """Removes the figures of old months. Those of removed results are kept by the minute too.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now.
        """
        del minutes_before
        with self._asking():
            self._require_ownership()
            until = stored_time(figures_before.astimezone(UTC).replace(tzinfo=None))
            for name, time in clickhouse_figures.BY_MONTH.items():
                self._drop_months(name, until, time)
            self._drop_months(RECORDS, until, "minute")

    def _drop_months(self, name: str, until: datetime, time: str) -> int:
        """Drops the partitions of months that ended at a time or before, and returns the number of their rows."""
        removed = 0
        for month in old_months(self._rows, name, until, time):
            ((number,),) = self._rows(f"SELECT count(*) FROM {name} WHERE _partition_id = '{month}'")
            self._client.command(f"ALTER TABLE {name} DROP PARTITION ID '{month}'")
            removed += int(number)
        return removed

    def _keep_labelled(self, until: datetime) -> None:
        """Keeps what labels are compared with of the results that are removed next, in each of their versions."""
        names = ", ".join(f"`{name}`" for name in KEPT_SCORES.column_names)
        labelled = f"SELECT session_id, criterion FROM {LABELS.name} FINAL WHERE NOT withdrawn"
        for name in (RESULTS.name, f"replaced_{RESULTS.name}"):
            for month in old_months(self._rows, name, until, "written_at"):
                self._client.command(
                    f"INSERT INTO {KEPT_SCORES.name} ({names}) SELECT {names} FROM {name} FINAL "
                    f"WHERE _partition_id = '{month}' AND (session_id, metric) IN ({labelled})"
                )

    def _forget_replaced_labels(self) -> None:
        """Removes the former rows of labels from the disk: a note that was erased must not stay there."""
        ((former,),) = self._client.query(f"SELECT count() - uniqExact(label_id) FROM {LABELS.name}").result_rows
        if former:
            self._client.command(f"OPTIMIZE TABLE {LABELS.name} FINAL")

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of a query in DuckDB's SQL, each by the names of its columns.

        Raises:
            StoreError: the database cannot answer.
        """
        try:
            text, values = translated(sql, parameters or {})
            found = self._client.query(text, parameters=values, settings=SETTINGS)
        except (ClickHouseError, OSError) as error:
            raise StoreError(f"{self.name} cannot be read: {self._message_of(error)}") from None
        return [dict(zip(found.column_names, row, strict=True)) for row in found.result_rows]

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._writing:
            try:
                yield
            except (ClickHouseError, OSError) as error:
                raise StoreUnavailableError(f"{self.name} cannot be used now: {self._message_of(error)}") from None

    def _prepare(self) -> Sequence[str]:
        """Creates the tables in an empty database, and returns the statements that bring former tables up to date."""
        tables = {name for (name,) in self._client.query("SHOW TABLES").result_rows}
        if tables and "store_version" not in tables:
            raise StoreError(f"{self.name} is a database that Traceweir did not write; name an empty database")
        if tables:
            ((version,),) = self._client.query("SELECT max(version) FROM store_version").result_rows
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"{self.name} has tables of version {version}, and this version of Traceweir reads up to {SCHEMA_VERSION}: "
                    "upgrade Traceweir, or name another database"
                )
            if version == SCHEMA_VERSION:
                return ()
            if migrating := list(migration(version)):
                return migrating
            if version:
                raise StoreError(
                    f"{self.name} has tables of version {version}, and this version of Traceweir needs version {SCHEMA_VERSION}: "
                    "name an empty database, which is filled from the topics as far as their retention reaches"
                )
        # Also completes what a process that was killed has begun.
        for statement in statements():
            self._client.command(statement)
        return ()

    def _own(self, holder: str, opened_at: datetime) -> int:
        (epoch,) = self._owner()[:1]
        since = stored_time(opened_at.astimezone(UTC).replace(tzinfo=None)).replace(tzinfo=UTC)
        self._client.insert(
            "owner", [[epoch + 1, self._token, holder, since]], column_names=["epoch", "token", "holder", "since"]
        )
        return int(epoch) + 1

    def _owner(self) -> tuple[int, str, str]:
        # Two processes that open the store at the same time have the same epoch; then the token decides.
        rows = self._rows("SELECT epoch, token, holder FROM owner ORDER BY epoch DESC, token DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1]), str(rows[0][2])) if rows else (0, "", "")

    def _require_ownership(self) -> None:
        _, token, holder = self._owner()
        if token != self._token:
            raise StoreLostError(
                f"{self.name} was opened by {printable(holder)} after this process opened it; only the last process that opens a "
                "store may write to it, so this one stops"
            )

    def _insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        self._client.insert(
            NEW_RESULTS if table is RESULTS else table.name,
            list(zip(*rows, strict=True)),
            column_names=table.column_names,
            column_type_names=[type_of(column) for column in table.columns],
            column_oriented=True,
            settings=_INSERTING,
        )

    def _insert_state(self, batch: Batch, unreadable: Mapping[str, int]) -> None:
        """Stores the offsets, the ids, the times and the numbers of unreadable records in one insert."""
        counted: dict[str, int] = {}
        if unreadable:
            found = self._rows("SELECT topic, number FROM feed_state WHERE kind = 'unreadable'")
            counted = {str(row[0]): int(row[1]) for row in found}
        rows: list[tuple[str, str, int, int, str, int]] = []
        for source, offset in batch.offsets.items():
            rows.append(("offset", source.topic, source.partition, offset, "", offset))
        for topic, identity in batch.topic_ids.items():
            rows.append(("topic", topic, 0, 0, identity, self.epoch))
        for topic, moment in batch.current_at.items():
            milliseconds = int(moment.timestamp() * 1000)
            rows.append(("time", topic, 0, milliseconds, "", milliseconds))
        for topic, number in unreadable.items():
            total = counted.get(topic, 0) + number
            rows.append(("unreadable", topic, 0, total, "", total))
        if rows:
            self._client.insert("feed_state", rows, column_names=_STATE)

    def _command(self, sql: str, until: datetime) -> None:
        self._client.command(sql, parameters={"until": time_parameter(until)})

    def _rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        text, values = translated(sql, parameters or {})
        found: Sequence[Sequence[Any]] = self._client.query(text, parameters=values, settings=SETTINGS).result_rows
        return found

    def _message_of(self, error: BaseException) -> str:
        """Returns the first line of a message of ClickHouse, without the password of the store."""
        text = str(error).splitlines()[0] if str(error) else repr(error)
        return printable(text.replace(self._secret, "***") if self._secret else text, 300)


def _connect(url: str) -> Any:
    if url.startswith("chdb:"):
        return clickhouse_connect.get_client(dsn=url)
    parts = urlsplit(url)
    return clickhouse_connect.get_client(
        host=parts.hostname or "localhost",
        port=parts.port or (8443 if parts.scheme == "clickhouses" else 8123),
        username=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        database=unquote(parts.path.strip("/")) or "default",
        secure=parts.scheme == "clickhouses",
        # ClickHouse refuses two queries of one session at the same time.
        autogenerate_session_id=False,
        connect_timeout=5,
        send_receive_timeout=60,
    )


def _shown(url: str) -> tuple[str, str]:
    """Returns the address without its user and password, and the password."""
    if url.startswith("chdb:"):
        return url, ""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}", unquote(parts.password or "")


def _old(table: Table) -> str:
    """Returns the condition of the rows that are removed because they are older than the parameter `until`."""
    old = f"{table.time} < {_UNTIL}"
    if not table.removed_if:
        return old
    # A statement that deletes also reads rows that others have replaced: without its last row, an earlier one would count.
    key = ", ".join(table.key)
    return f"({key}) IN (SELECT {key} FROM {table.name} FINAL WHERE {old} AND {table.removed_if})"


def _fits(row: tuple[Any, ...]) -> bool:
    """Returns whether ClickHouse can represent the times of a row; it would store other times without a word."""
    return all(EARLIEST <= cell.replace(tzinfo=None) <= LATEST for cell in row if isinstance(cell, datetime))

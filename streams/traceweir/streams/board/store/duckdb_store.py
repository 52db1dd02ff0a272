"""Keeps rows in a DuckDB file: each batch with its figures and its offsets in one transaction."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from traceweir.schemas.text import printable
from traceweir.streams.board.store import remains, rollups
from traceweir.streams.board.store.duckdb_tables import prepare
from traceweir.streams.board.store.errors import StoreError, StoreLostError, StoreUnavailableError
from traceweir.streams.board.store.rows import Batch, SourcePartition
from traceweir.streams.board.store.tables import KEPT_SCORES, LABELS, RESULTS, TABLES, Table, TableName, newest_of
from traceweir.streams.tools.results.table import ColumnType

OPTIONS = {
    # The limit of DuckDB's buffers; the rest of the process comes on top.
    "memory_limit": "200MB",
    # Nothing that a query contains can load code, read a file or connect to an address.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}
MERGED_AFTER_CHANGES = 20_000
"""Rows of `rollup_changes` after which they are added up into `rollups`."""
_LISTED = 20_000
"""Rows that a query names one by one."""
_NEW = "new_rows"
_KEY = "md5_number_lower({})"
_HOLDER = re.compile(r"PID (\d+)")

_ARROW: dict[ColumnType, Any] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us"),
}
_TOPIC_COLUMNS: dict[str, ColumnType] = {"topic": "text", "topic_id": "text"}
_TIME_COLUMNS: dict[str, ColumnType] = {"topic": "text", "current_at": "time"}
_OFFSET_COLUMNS: dict[str, ColumnType] = {"topic": "text", "partition": "integer", "next_offset": "integer"}


class DuckDBStore:
    """A results store in one file. One thread at a time may call `write` and `remove_old`; any thread may call `query`.

    Raises:
        StoreError: the file is in use, is not a store, or is of a newer version.
    """

    def __init__(self, file: Path, holder: str, opened_at: datetime) -> None:
        self._file = file
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._open()
        try:
            prepare(self._connection, str(file))
            (self.epoch,) = self._one(
                "UPDATE owner SET epoch = epoch + 1, holder = ?, since = ? RETURNING epoch",
                [holder, _in_utc(opened_at)],
            )
        except duckdb.Error as error:
            self._database.close()
            raise _cannot_open(file, error) from error
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Closes the file; another process can open it then."""
        with self._writing, self._opening:
            self._connection.close()
            self._database.close()

    def offsets(self) -> dict[SourcePartition, int]:
        """Returns the offset at which each partition has to be read next; a partition that is new is left out.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot answer now.
        """
        with self._transaction():
            self._require_ownership()
            found = self._connection.execute("SELECT topic, partition, next_offset FROM next_offsets").fetchall()
        return {SourcePartition(topic, partition): offset for topic, partition, offset in found}

    def topic_ids(self) -> dict[str, str]:
        """Returns the ids of the topics to which the offsets belong, by their names; a topic without a known id is left out.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot answer now.
        """
        with self._transaction():
            self._require_ownership()
            return dict(self._connection.execute("SELECT topic, topic_id FROM topic_ids").fetchall())

    def current_at(self) -> dict[str, datetime]:
        """Returns, by topic, the time at which the store lacked nothing, as `Batch` says.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot answer now.
        """
        with self._transaction():
            self._require_ownership()
            found = self._connection.execute("SELECT topic, current_at FROM topic_times").fetchall()
        return {topic: moment.replace(tzinfo=UTC) for topic, moment in found}

    def start_over(self, table: TableName, topic: str, at: datetime) -> int:
        """Removes the rows and the offsets of a topic, all or nothing, and returns the number of rows.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now; nothing is removed.
        """
        with self._transaction():
            self._require_ownership()
            (removed,) = self._one(f"DELETE FROM {table}", [])
            self._connection.execute("DELETE FROM next_offsets WHERE topic = ?", [topic])
            self._replace("topic_times", _TIME_COLUMNS, [(topic, _in_utc(at))], key=("topic",))
        return int(removed)

    def write(self, batch: Batch) -> None:
        """Stores the rows of a batch, their figures and its offsets, all or nothing.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now. `offsets` tells whether the batch is stored: DuckDB
                can fail after the commit, while it moves what its log contains to the file.
        """
        with self._transaction():
            self._require_ownership()
            for table in TABLES:
                if rows := batch.rows.get(table.name):
                    self._store(table, rows)
            offsets = [(*source, offset) for source, offset in batch.offsets.items()]
            self._replace("next_offsets", _OFFSET_COLUMNS, offsets, key=("topic", "partition"))
            if batch.topic_ids:
                self._replace("topic_ids", _TOPIC_COLUMNS, list(batch.topic_ids.items()), key=("topic",))
            if batch.current_at:
                times = [(topic, _in_utc(moment)) for topic, moment in batch.current_at.items()]
                self._replace("topic_times", _TIME_COLUMNS, times, key=("topic",))
            for topic, number in batch.unreadable.items():
                self._connection.execute("INSERT INTO unreadable_records VALUES (?, ?)", [topic, number])
            self._merge_changes()

    def remove_old(self, before: Mapping[TableName, datetime]) -> dict[TableName, int]:
        """Removes the rows of a table that are older than its time, and returns their numbers.

        Figures stay: they are small, and say what the removed rows were. `remove_old_figures` removes them. Open alerts
        stay however old they are.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now; nothing is removed.
        """
        removed: dict[TableName, int] = {}
        with self._transaction():
            self._require_ownership()
            for table in TABLES:
                if (moment := before.get(table.name)) is None:
                    continue
                old = [_in_utc(moment)]
                if table is RESULTS:
                    self._connection.execute(
                        f"INSERT INTO {remains.TABLE} BY NAME SELECT key, {remains.KEPT} FROM results WHERE {table.time} < ?",
                        old,
                    )
                    self._keep_labelled(old)
                only = f" AND {table.removed_if}" if table.removed_if else ""
                (removed[table.name],) = self._one(f"DELETE FROM {table.name} WHERE {table.time} < ?{only}", old)
                if table.keeps_history:
                    self._connection.execute(f"DELETE FROM replaced_{table.name} WHERE {table.time} < ?", old)
        return removed

    def remove_old_figures(self, minutes_before: datetime, figures_before: datetime) -> None:
        """Adds up figures per minute by hour, and removes figures that are older still. Hours are those of UTC.

        A sum per hour has the first minute of its hour, so that questions read it as figures of this minute.

        Args:
            minutes_before: Hours that end at this time or before it have no figures per minute any more.
            figures_before: Hours that end at this time or before it have no figures any more. No result of them may be
                left, because a revision would subtract the figures of the result.

        Raises:
            StoreLostError: another process opened the store after this one.
            StoreUnavailableError: the database cannot write now; nothing is changed.
        """
        minutes_end, figures_end = (
            _in_utc(moment).replace(minute=0, second=0, microsecond=0) for moment in (minutes_before, figures_before)
        )
        with self._transaction():
            self._require_ownership()
            for table in rollups.FIGURE_TABLES:
                for name in (table.name, table.changes):
                    self._connection.execute(f"DELETE FROM {name} WHERE minute < ?", [figures_end])
                self._merge_minutes(table, minutes_end)
            self._connection.execute("DELETE FROM rollup_hours WHERE hour < ?", [figures_end])
            self._connection.execute(f"DELETE FROM {remains.TABLE} WHERE occurred_at < ?", [figures_end])

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of a query in DuckDB's SQL, each by the names of its columns.

        Raises:
            StoreError: the database cannot answer.
        """
        try:
            with self._cursor() as cursor:
                found = cursor.execute(sql, dict(parameters or {}))
                names = [column[0] for column in found.description]
                return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        except duckdb.Error as error:
            raise StoreError(f"{self._file} cannot be read: {_message_of(error)}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._writing:
            try:
                self._begin()
                try:
                    yield
                    self._connection.commit()
                except BaseException:
                    # Then the next transaction opens the file again.
                    with suppress(duckdb.Error):
                        self._connection.rollback()
                    raise
            except duckdb.Error as error:
                raise StoreUnavailableError(f"{self._file} cannot be written: {_message_of(error)}") from error
            except OSError as error:
                raise StoreUnavailableError(f"{self._file} cannot be written: {error}") from error

    def _begin(self) -> None:
        try:
            self._connection.begin()
        except duckdb.Error:
            # After some failures of the disk DuckDB refuses everything until the file is opened again, which finds the
            # last transaction that was committed.
            with self._opening:
                self._connection.close()
                self._database.close()
                try:
                    self._open()
                except StoreError as error:
                    raise StoreUnavailableError(str(error)) from error
            self._connection.begin()

    def _open(self) -> None:
        # A connection refuses a second call while it works, and also refuses to open another connection. So the first
        # one only opens others.
        self._database = _connect(self._file)
        self._connection = self._database.cursor()

    def _cursor(self) -> Any:
        with self._opening:
            return self._database.cursor()

    def _require_ownership(self) -> None:
        epoch, holder = self._one("SELECT epoch, holder FROM owner", [])
        if epoch != self.epoch:
            raise StoreLostError(
                f"{self._file} was opened by {printable(holder)} after this process opened it; only the last process "
                "that opens a store may write to it, so this one stops"
            )

    def _replace(
        self, name: str, columns: Mapping[str, ColumnType], rows: Sequence[tuple[Any, ...]], *, key: Sequence[str]
    ) -> None:
        with self._registered(columns, rows) as new:
            same = " AND ".join(f"old.{column} = {new}.{column}" for column in key)
            self._connection.execute(f"DELETE FROM {name} old USING {new} WHERE {same}")
            self._connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM {new}")

    def _store(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        counted, superseded = newest_of(table, rows)
        removed = []
        for row in self._present(table, counted):
            identity = table.identity_of(row)
            if table.version_of(row) <= table.version_of(counted[identity]):
                removed.append(row)
            else:
                # A lower version that arrives late.
                superseded.append(counted.pop(identity))
        if removed:
            with self._registered(table.key_columns, map(table.identity_of, removed)) as old:
                self._connection.execute(f"DELETE FROM {table.name} USING {old} WHERE {_same(table, table.name, old)}")
        uncounted = []
        not_stored: list[tuple[Any, ...]] = []
        if table is RESULTS:
            before = dict(counted)
            uncounted = self._take_remains(counted, {table.identity_of(row) for row in removed})
            not_stored = [row for identity, row in before.items() if identity not in counted]
        added = list(counted.values())
        self._append(table.name, table, added)
        if table.keeps_history:
            self._append(f"replaced_{table.name}", table, [*removed, *superseded])
        if table is RESULTS:
            changes = rollups.FigureChanges()
            changes.add(added, 1)
            changes.add(removed, -1)
            changes.add(uncounted, -1)
            changes.add_cost([*superseded, *not_stored])
            for figures, found in changes.rows():
                with self._registered(figures.columns, found) as new:
                    self._connection.execute(f"INSERT INTO {figures.changes} BY NAME SELECT * FROM {new}")

    def _present(self, table: Table, wanted: Mapping[tuple[Any, ...], object]) -> list[tuple[Any, ...]]:
        """Returns the rows of a table with these identities.

        The table is searched for all of them at once. The number `key` makes this a scan of eight bytes a row; an index
        would make every batch slower, and more so the larger the table is. A join alone reads every column of every row.
        """
        names = ", ".join(f'old."{name}"' for name in table.column_names)
        with self._registered(table.key_columns, wanted) as new:
            places = self._connection.execute(
                f"SELECT rowid FROM {table.name} WHERE key IN (SELECT {_KEY.format(table.key[0])} FROM {new})"
            ).fetchall()
            # DuckDB reads the rows of a list alone, also of none; one that is too long for that would be a join again.
            listed = ", ".join(str(at) for (at,) in places) or "NULL"
            among = f"WHERE old.rowid IN ({listed})" if len(places) <= _LISTED else ""
            found: list[tuple[Any, ...]] = self._connection.execute(
                f"SELECT {names} FROM {table.name} old JOIN {new} ON {_same(table, 'old', new)} {among}"
            ).fetchall()
        return found

    def _take_remains(
        self, counted: dict[tuple[Any, ...], tuple[Any, ...]], replacing: Set[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        """Returns what was kept of removed results that these rows replace, and forgets it.

        A row whose removed result has a higher version is taken out of `counted`: it was replaced before it arrived.
        """
        wanted = [at for at, row in counted.items() if at not in replacing and remains.can_have_remains(row)]
        if not wanted:
            return []
        taken = []
        with self._registered(RESULTS.key_columns, wanted) as new:
            same = f"old.key = {_KEY.format(f'{new}.session_id')} AND old.result_id = {new}.result_id"
            for row in self._connection.execute(
                f"SELECT {remains.AS_RESULTS} FROM {remains.TABLE} old JOIN {new} ON {same}"
            ).fetchall():
                if RESULTS.version_of(row) <= RESULTS.version_of(counted[RESULTS.identity_of(row)]):
                    taken.append(row)
                else:
                    del counted[RESULTS.identity_of(row)]
        if taken:
            with self._registered(RESULTS.key_columns, map(RESULTS.identity_of, taken)) as new:
                same = f"old.key = {_KEY.format(f'{new}.session_id')} AND old.result_id = {new}.result_id"
                self._connection.execute(f"DELETE FROM {remains.TABLE} old USING {new} WHERE {same}")
        return taken

    def _keep_labelled(self, until: Sequence[datetime]) -> None:
        """Keeps what labels are compared with of the results that are removed next."""
        names = ", ".join(f'"{name}"' for name in KEPT_SCORES.column_names)
        for name in ("results", "replaced_results"):
            self._connection.execute(
                f"INSERT INTO {KEPT_SCORES.name} BY NAME SELECT key, {names} FROM {name} WHERE occurred_at < ? AND "
                f"(session_id, metric) IN (SELECT (session_id, criterion) FROM {LABELS.name} WHERE NOT withdrawn)",
                until,
            )

    def _append(self, name: str, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            with self._registered(table.column_types, rows) as new:
                self._connection.execute(
                    f"INSERT INTO {name} BY NAME SELECT {_KEY.format(table.key[0])} AS key, * FROM {new}"
                )

    @contextmanager
    def _registered(self, columns: Mapping[str, ColumnType], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        """Yields the name under which SQL reads these rows, in columns of Arrow, within the block."""
        cells = list(zip(*rows, strict=True)) or [()] * len(columns)
        arrays = [pa.array(column, _ARROW[kind]) for column, kind in zip(cells, columns.values(), strict=True)]
        self._connection.register(_NEW, pa.table(arrays, list(columns)))
        try:
            yield _NEW
        finally:
            # After a failed statement DuckDB refuses this too, with an error that does not tell the cause. The next
            # rows take the name over.
            with suppress(duckdb.Error):
                self._connection.unregister(_NEW)

    def _merge_changes(self) -> None:
        for table in rollups.FIGURE_TABLES:
            (number,) = self._one(f"SELECT count(*) FROM {table.changes}", [])
            if number < MERGED_AFTER_CHANGES:
                continue
            sums = ", ".join((*table.groups, *(f"sum({name})" for name in table.sums)))
            self._connection.execute(f"INSERT INTO {table.name} SELECT {sums} FROM {table.changes} GROUP BY ALL")
            if table is rollups.ROLLUPS:
                self._connection.execute(f"INSERT INTO rollup_hours {rollups.by_hour(table.changes)}")
            self._connection.execute(f"DELETE FROM {table.changes}")

    def _merge_minutes(self, table: rollups.FigureTable, end: datetime) -> None:
        # Hours that were added up before, and got no change since, are left as they are.
        name = table.name
        found = self._connection.execute(
            f"SELECT DISTINCT date_trunc('hour', minute) FROM {name} "
            "WHERE minute < ? AND minute <> date_trunc('hour', minute)",
            [end],
        ).fetchall()
        if not found:
            return
        with self._registered({"hour": "time"}, found) as hours:
            chosen = f"{name} WHERE date_trunc('hour', minute) IN (SELECT hour FROM {hours})"
            self._connection.execute(f"CREATE TEMP TABLE merged_minutes AS SELECT * FROM {name} LIMIT 0")
            self._connection.execute(f"INSERT INTO merged_minutes {rollups.merged_by_hour(chosen, table)}")
            self._connection.execute(f"DELETE FROM {chosen}")
        self._connection.execute(f"INSERT INTO {name} SELECT * FROM merged_minutes")
        self._connection.execute("DROP TABLE merged_minutes")

    def _one(self, sql: str, parameters: Sequence[Any]) -> tuple[Any, ...]:
        # `fetchone` would leave the result open.
        (found,) = self._connection.execute(sql, parameters).fetchall()
        return tuple(found)


def _connect(file: Path) -> Any:
    """Opens a file, and creates it if it is missing.

    Raises:
        StoreError: the file is in use, or is not a database.
    """
    # A file of agents' texts is readable for its owner only, like the texts in a mailbox.
    umask = os.umask(0o077)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(str(file), config=dict(OPTIONS))
    except duckdb.Error as error:
        if (holder := _HOLDER.search(str(error))) is not None:
            raise StoreError(
                f"{file} is in use by the process {holder[1]}: end that process, or name another file"
            ) from error
        raise _cannot_open(file, error) from error
    except OSError as error:
        raise StoreError(f"{file} cannot be opened: {error}") from error
    finally:
        os.umask(umask)
    return connection


def _cannot_open(file: Path, error: duckdb.Error) -> StoreError:
    return StoreError(
        f"{file} cannot be opened: {_message_of(error)}. Make space if its disk is full; otherwise name another file, which is filled "
        "again from the topics"
    )


def _in_utc(moment: datetime) -> datetime:
    """Returns a time as the columns have it; with a time zone, DuckDB would compare it in the zone of the machine."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def _message_of(error: duckdb.Error) -> str:
    """Returns the first line of a message of DuckDB; the lines after it show its own SQL."""
    return printable(str(error).splitlines()[0], 300)


def _same(table: Table, old: str, new: str) -> str:
    """Returns the condition that a row of a table has the identity of a registered row."""
    conditions = [f"{old}.key = {_KEY.format(f'{new}.{table.key[0]}')}"]
    return " AND ".join([*conditions, *(f"{old}.{name} = {new}.{name}" for name in table.key)])

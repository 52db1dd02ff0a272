"""The version of the store's tables changes with the tables, so that no store keeps the columns of an earlier version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import duckdb
import pytest

from traceweir.streams.board.store import clickhouse_tables, duckdb_tables

DUCKDB = {
    5: "e75b0360601f1489",
    6: "7787b992afdc1200",
    7: "e6aee5641a7b8166",
    8: "d93835d4a8360214",
    9: "f55f6d9d30f284c0",
    10: "f55f6d9d30f284c0",
    11: "cf57ce1814f9713d",
    12: "2244db39738108de",
    13: "f1a0601ba27f3e0b",
    14: "e42cd697db5d2471",
    15: "fcf968cd81726325",
    16: "1c248ce13c3578e0",
}
"""By version, a digest of the columns of a new file. A new version is a new line; a former one keeps its digest.

A version that changes the cells and no columns has the digest of the one before."""
CLICKHOUSE = {
    2: "9d9e4377456ded0e",
    3: "d698e141490512c6",
    4: "69d70135f95a67d3",
    5: "b08a7476aa526e80",
    6: "6886fdfa2710561d",
    7: "49c9cdf2b9094d1b",
    8: "49c9cdf2b9094d1b",
    9: "91a4d4d632cbc634",
    10: "7dc9060b4eb2dc8f",
    11: "1c9d9cda0b1f1d6e",
    12: "ef6c78b344084095",
}
"""The same for ClickHouse, of the statements that create the tables and views of an empty database."""


def digest(parts: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def test_the_version_of_a_duckdb_file_changes_with_its_columns() -> None:
    with duckdb.connect(":memory:") as connection:
        duckdb_tables.prepare(connection, ":memory:")
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "ORDER BY table_name, ordinal_position"
        ).fetchall()
    found = digest(columns)
    assert DUCKDB.get(duckdb_tables.SCHEMA_VERSION) == found, (
        "columns changed: raise SCHEMA_VERSION and add a migration, both in duckdb_tables.py, "
        f'and add the digest of the new version here: "{found}"'
    )


def test_every_former_version_of_a_duckdb_file_has_its_migration() -> None:
    former = list(range(1, duckdb_tables.SCHEMA_VERSION))
    assert sorted(duckdb_tables.MIGRATIONS) == former, "add a migration from each former version to MIGRATIONS"


def test_each_version_of_a_clickhouse_database_from_the_first_that_can_be_migrated_has_its_migration() -> None:
    former = list(range(min(clickhouse_tables.MIGRATIONS), clickhouse_tables.SCHEMA_VERSION))
    assert sorted(clickhouse_tables.MIGRATIONS) == former, "add the statements from each former version to MIGRATIONS"
    assert list(clickhouse_tables.migration(former[0] - 1)) == []


def test_a_clickhouse_database_passes_through_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clickhouse_tables, "SCHEMA_VERSION", 14)
    monkeypatch.setattr(clickhouse_tables, "MIGRATIONS", {12: ["first", "second"], 13: ["third"]})
    written = "INSERT INTO store_version VALUES"
    assert list(clickhouse_tables.migration(12)) == ["first", "second", f"{written} (13)", "third", f"{written} (14)"]
    assert list(clickhouse_tables.migration(13)) == ["third", f"{written} (14)"]
    assert list(clickhouse_tables.migration(14)) == []


def test_the_version_of_a_clickhouse_database_changes_with_its_tables() -> None:
    # A view that exists is not created anew either. The last statement contains the version itself.
    *creating, version = clickhouse_tables.statements()
    assert str(clickhouse_tables.SCHEMA_VERSION) in version
    found = digest(creating)
    assert CLICKHOUSE.get(clickhouse_tables.SCHEMA_VERSION) == found, (
        "columns changed: raise SCHEMA_VERSION and add the statements to MIGRATIONS, both in clickhouse_tables.py, "
        f'and add the digest of the new version here: "{found}"'
    )

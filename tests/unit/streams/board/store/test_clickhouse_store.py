"""What only a store in ClickHouse claims: rows that are written again count once, and its SQL files do what the feed does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from tests.support.judge_retries import session as session_document
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import (
    FakeRecord,
    batch_of,
    chdb_database,
    every_change,
    figures,
    scores_batch,
    without_a_threshold,
)

from traceweir.streams.board.store.clickhouse_tables import SCHEMA_VERSION
from traceweir.streams.board.store.errors import StoreError, StoreLostError, StoreUnavailableError
from traceweir.streams.board.store.opening import Store, open_store
from traceweir.streams.board.store.overview import changes_in, judge_spending
from traceweir.streams.board.store.rows import SourcePartition
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.tables import CHANGES, RESULTS, SESSIONS

pytestmark = pytest.mark.clickhouse
pytest.importorskip("chdb", reason="chdb is not installed; `make test-clickhouse` installs it")

SECRET = "sw0rd-of-the-store"


@pytest.fixture
def database() -> Iterator[str]:
    with chdb_database() as address:
        yield address


@pytest.fixture
def client(database: str) -> Iterator[Any]:
    import clickhouse_connect

    client = clickhouse_connect.get_client(dsn=database)
    yield client
    client.close()


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    store = open_store(database, "this test", NOW)
    yield store
    store.close()


def test_rows_whose_offsets_were_not_stored_come_again_and_count_once(store: Store, client: Any) -> None:
    store.write(scores_batch(make_score("a", value=0.2)))
    client.command("RENAME TABLE feed_state TO hidden")
    again = scores_batch(make_score("a", value=0.9, revision=1), make_score("b", value=1.0), offset=1)
    with pytest.raises(StoreUnavailableError):
        store.write(again)
    client.command("RENAME TABLE hidden TO feed_state")
    assert store.offsets() == {SourcePartition("results", 0): 1}

    store.write(again)

    assert store.offsets() == {SourcePartition("results", 0): 3}
    assert [row["n"] for row in store.query("SELECT count(*) AS n FROM results")] == [2]
    assert [row["value"] for row in store.query("SELECT value FROM replaced_results")] == [0.2]
    assert sum(row["n"] for row in figures(store)) == 2


def test_an_unreadable_record_that_comes_again_is_counted_once(store: Store, client: Any) -> None:
    batch = batch_of("results", FakeRecord(b"{"))
    client.command("RENAME TABLE feed_state TO hidden")
    with pytest.raises(StoreUnavailableError):
        store.write(batch)
    client.command("RENAME TABLE hidden TO feed_state")
    store.write(batch)
    store.write(batch_of("results", FakeRecord(b"[", 1)))

    assert store.query("SELECT topic, n FROM unreadable_records") == [{"topic": "results", "n": 2}]


def test_a_time_that_clickhouse_cannot_represent_costs_its_own_row_only(store: Store) -> None:
    store.write(scores_batch(make_score("far", occurred_at=datetime(9000, 1, 1, tzinfo=UTC)), make_score("near")))

    assert store.query("SELECT session_id FROM results") == [{"session_id": "near"}]
    assert store.query("SELECT topic, n FROM unreadable_records") == [{"topic": "results", "n": 1}]


def test_old_results_are_removed_with_their_history_and_their_figures_stay(store: Store) -> None:
    old = NOW - timedelta(days=3)
    store.write(scores_batch(make_score("old", value=0.1, occurred_at=old)))
    store.write(scores_batch(make_score("old", value=0.2, revision=1, occurred_at=old), make_score("new"), offset=1))

    assert store.remove_old({"results": NOW - timedelta(days=2)}) == {"results": 1}

    assert store.query("SELECT session_id FROM results") == [{"session_id": "new"}]
    assert store.query("SELECT session_id FROM replaced_results") == []
    assert [row["value_sum"] for row in figures(store)] == [0.2, make_score("new").value]


def test_a_version_of_a_removed_result_does_not_count_again(store: Store) -> None:
    old = NOW - timedelta(days=3)
    store.write(scores_batch(make_score("a", value=0.1, occurred_at=NOW)))
    store.write(scores_batch(make_score("a", value=0.2, revision=1, occurred_at=old), offset=1))

    assert store.remove_old({"results": NOW - timedelta(days=2)}) == {"results": 1}

    assert store.query("SELECT session_id FROM results") == []
    assert store.query("SELECT session_id FROM replaced_results") == []


def test_a_database_of_something_else_is_refused(database: str, client: Any) -> None:
    client.command("CREATE TABLE mine (n UInt8) ENGINE = MergeTree ORDER BY n")

    with pytest.raises(StoreError, match="a database that Traceweir did not write; name an empty database"):
        open_store(database, "this test", NOW)
    assert client.query("SHOW TABLES").result_rows == [("mine",)]


def test_a_store_of_a_newer_version_is_refused(store: Store, database: str, client: Any) -> None:
    client.command("INSERT INTO store_version VALUES (99)")

    with pytest.raises(StoreError, match="has tables of version 99, and this version of Traceweir reads up to"):
        open_store(database, "this test", NOW)


def test_values_without_a_threshold_that_a_former_version_counted_as_passed_are_no_verdicts_any_more(
    store: Store, database: str, client: Any
) -> None:
    store.write(scores_batch(*without_a_threshold(), make_score("e", value=0.9), make_score("f", value=0.1)))
    store.remove_old({"results": NOW - timedelta(minutes=1)})
    expected = figures(store)
    assert sum(row["passed"] for row in expected) == 1
    for table in ("results", "results_versions", "figure_records"):
        client.command(
            f"ALTER TABLE {table} UPDATE status = 'PASSED' WHERE status = 'INFORMATIONAL' SETTINGS mutations_sync = 2"
        )
    assert figures(store) != expected
    client.command("TRUNCATE TABLE store_version")
    client.command("INSERT INTO store_version VALUES (7)")

    for _ in range(2):
        migrated = open_store(database, "this test", NOW)
        assert figures(migrated) == expected
        assert len(migrated.query("SELECT * FROM results WHERE status = 'INFORMATIONAL'")) == 2
        migrated.close()


@pytest.mark.parametrize("version", [7, 8])
def test_spending_and_first_results_of_a_former_version_are_known_after_its_migration(
    version: int, store: Store, database: str, client: Any
) -> None:
    paid = {"input_tokens": 100, "output_tokens": 10, "usd": 0.25}
    first = make_score("a", cost=paid, evaluated_at=NOW, **every_change())
    store.write(scores_batch(first, make_score("b", cost=paid | {"cached": True}, evaluated_at=NOW)))
    store.write(scores_batch(first.model_copy(update={"revision": 1}), offset=2))
    span = Selection(NOW - timedelta(days=1), NOW + timedelta(minutes=1))

    def known(asked: Store) -> tuple[Any, ...]:
        return judge_spending(asked, NOW, None).usd, changes_in(asked, span)

    expected = known(store)
    assert expected[0] == 0.5
    assert {(each.kind, each.value) for each in expected[1]} >= set(every_change().items())
    for view in ("results_to_costs", *(f"results_to_first_{kind}s" for kind in CHANGES)):
        client.command(f"DROP VIEW {view}")
    for table in ("judge_costs", "first_results"):
        client.command(f"DROP TABLE {table}")
    client.command("TRUNCATE TABLE store_version")
    client.command(f"INSERT INTO store_version VALUES ({version})")

    for _ in range(2):
        migrated = open_store(database, "this test", NOW)
        assert known(migrated) == expected
        migrated.close()


def test_a_process_of_a_former_version_loses_the_store_before_its_rows_are_changed(
    store: Store, database: str, client: Any
) -> None:
    client.command("TRUNCATE TABLE store_version")
    client.command("INSERT INTO store_version VALUES (7)")
    client.command("RENAME TABLE results_versions TO hidden")
    with pytest.raises(StoreError):
        open_store(database, "this test", NOW)

    with pytest.raises(StoreLostError):
        store.write(scores_batch(make_score("a", value=0.2)))

    client.command("RENAME TABLE hidden TO results_versions")
    open_store(database, "this test", NOW).close()
    assert client.query("SELECT max(version) FROM store_version").result_rows == [(SCHEMA_VERSION,)]


def test_a_store_of_a_former_version_without_a_migration_is_refused(store: Store, database: str, client: Any) -> None:
    client.command("TRUNCATE TABLE store_version")
    client.command("INSERT INTO store_version VALUES (6)")

    with pytest.raises(StoreError, match="has tables of version 6, and this version of Traceweir needs version"):
        open_store(database, "this test", NOW)


def test_a_store_whose_creation_was_interrupted_is_completed(database: str, client: Any) -> None:
    client.command("CREATE TABLE store_version (version UInt64) ENGINE = ReplacingMergeTree ORDER BY version")

    store = open_store(database, "this test", NOW)

    store.write(scores_batch(make_score("a")))
    assert len(store.query("SELECT * FROM results")) == 1
    store.close()


def test_a_server_that_cannot_be_reached_is_told_without_the_password() -> None:
    with pytest.raises(StoreError) as caught:
        open_store(f"clickhouse://me:{SECRET}@127.0.0.1:1/scores", "this test", NOW)

    assert "clickhouse://127.0.0.1:1/scores cannot be opened" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_address_of_another_kind_is_refused_without_its_password() -> None:
    with pytest.raises(StoreError, match="begins with postgres://, which is no kind of store") as caught:
        open_store(f"postgres://me:{SECRET}@127.0.0.1/scores", "this test", NOW)
    assert SECRET not in str(caught.value)


def test_the_sql_file_creates_the_tables_that_a_dashboard_creates(database: str, client: Any) -> None:
    from traceweir.streams.board.store.clickhouse_tables import file_text

    for statement in statements_of(file_text()):
        client.command(statement)
    applied = tables_of(client)
    with chdb_database() as other:
        open_store(other, "this test", NOW).close()
        import clickhouse_connect

        created = clickhouse_connect.get_client(dsn=other)
        assert tables_of(created) == applied
        created.close()


def test_clickhouse_reads_from_kafka_what_the_feed_reads(store: Store, client: Any) -> None:
    from traceweir.streams.board.store.clickhouse_ingestion import QUEUE_COLUMNS, reader

    scores = [
        make_score(
            "a", value=0.5, app_name="shop", model="m", cost={"usd": 0.25, "input_tokens": 7}, labels={"a": "b"}
        ),
        make_score("b", value=None, rationale="no \x1b answer"),
        make_score("c", "token_usage_v1", 900.0, threshold=None),
        make_score("d", "gate", 1.0, threshold=None),
        make_score("e", value=None, threshold=None),
    ]
    records = [FakeRecord(score.wire(), offset) for offset, score in enumerate(scores)]
    sessions = [FakeRecord(orjson.dumps(session_document("a", app_name="shop", model="m"))), FakeRecord(b"{", 1)]
    for topic, found in (("results", records), ("sessions", sessions)):
        store.write(batch_of(topic, *found))
    fed = [store.query(f"SELECT * FROM {table.name} ORDER BY session_id") for table in (RESULTS, SESSIONS)]

    for table, found in ((RESULTS, [*records, FakeRecord(b"forged", len(scores))]), (SESSIONS, sessions)):
        client.command(f"TRUNCATE TABLE {table.name}")
        # The embedded engine has no reader of Kafka; this table has the columns of one.
        place = "_partition UInt64, _offset UInt64, _timestamp_ms Nullable(DateTime64(3))"
        client.command(f"CREATE TABLE {table.name}_queue ({QUEUE_COLUMNS}, {place}) ENGINE = Null")
        client.command(reader(table))
        rows = [
            [each.value, each.partition, each.offset, datetime.fromtimestamp(each.timestamp / 1000, UTC)]
            for each in found
        ]
        columns = ["record", "_partition", "_offset", "_timestamp_ms"]
        client.insert(f"{table.name}_queue", rows, column_names=columns)

    assert [store.query(f"SELECT * FROM {table.name} ORDER BY session_id") for table in (RESULTS, SESSIONS)] == fed
    assert [len(rows) for rows in fed] == [len(scores), 1]


def test_clickhouse_subtracts_the_figures_of_replaced_results_by_itself(store: Store, client: Any) -> None:
    from traceweir.streams.board.store.clickhouse_figures import subtraction_view

    rows = [
        scores_batch(make_score("a", value=value, revision=revision), offset=offset).rows["results"][0]
        for offset, (value, revision) in enumerate([(0.1, 0), (0.4, 1), (0.2, 0)])
    ]
    for _ in range(2):  # ClickHouse reads a record at least once
        for row in rows:
            client.insert(RESULTS.name, [row], column_names=RESULTS.column_names)
    client.command(subtraction_view())
    for _ in range(2):
        client.command("SYSTEM REFRESH VIEW replaced_to_figures")
        client.command("SYSTEM WAIT VIEW replaced_to_figures")

    assert [(row["n"], row["value_sum"]) for row in figures(store)] == [(1, 0.4)]


def statements_of(text: str) -> list[str]:
    """Returns the statements of an SQL file."""
    return [part.strip() for part in re.sub(r"(?m)^--.*$", "", text).split(";\n") if part.strip()]


def tables_of(client: Any) -> list[tuple[str, str]]:
    """Returns the tables of a database with the statements that create them."""
    rows = client.query(
        "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name"
    ).result_rows
    return [(name, re.sub(r"\btest_\w+\.", "", statement)) for name, statement in rows]

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
    figures,
    scores_batch,
)

from traceweir.streams.board.store.errors import StoreError, StoreUnavailableError
from traceweir.streams.board.store.opening import Store, open_store
from traceweir.streams.board.store.rows import SourcePartition
from traceweir.streams.board.store.tables import RESULTS, SESSIONS

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


def test_a_month_of_results_goes_as_a_whole_when_it_is_over_and_its_figures_stay(store: Store) -> None:
    opened: dict[str, Any] = {
        "occurred_at": NOW - timedelta(days=50),
        "segment_opened_at": NOW - timedelta(days=50),
    }
    old = make_score("old", value=0.2, revision=1, **opened)
    store.write(scores_batch(make_score("old", value=0.1, **opened), old))
    store.write(scores_batch(make_score("new", segment_opened_at=NOW), offset=2))
    before = figures(store)

    # The month of 12 December ends on 1 January.
    assert store.remove_old({"results": datetime(2025, 12, 31, 23, tzinfo=UTC)}) == {"results": 0}
    assert store.remove_old({"results": datetime(2026, 1, 1, tzinfo=UTC)})["results"] > 0

    assert store.query("SELECT session_id FROM results") == [{"session_id": "new"}]
    assert store.query("SELECT session_id FROM replaced_results") == []
    assert figures(store) == before
    store.remove_old_figures(NOW, datetime(2026, 1, 1, tzinfo=UTC))
    assert [row["value_sum"] for row in figures(store)] == [make_score("new").value]


def test_rows_without_a_time_that_no_revision_moves_go_when_the_newest_of_them_is_old(store: Store) -> None:
    forged = make_score("b", segment_opened_at=datetime(2250, 1, 1, tzinfo=UTC))
    store.write(scores_batch(make_score("a"), forged))

    assert store.remove_old({"results": NOW}) == {"results": 0}
    assert store.remove_old({"results": NOW + timedelta(seconds=1)}) == {"results": 2}


def test_a_revision_of_a_result_whose_time_moved_replaces_it_across_months(store: Store) -> None:
    opened = datetime(2025, 12, 31, 23, tzinfo=UTC)
    store.write(scores_batch(make_score("a", value=0.1, segment_opened_at=opened, occurred_at=opened)))
    store.write(
        scores_batch(make_score("a", value=0.9, revision=1, segment_opened_at=opened, occurred_at=NOW), offset=1)
    )

    assert [row["value"] for row in store.query("SELECT value FROM results")] == [0.9]
    assert [row["value"] for row in store.query("SELECT value FROM replaced_results")] == [0.1]
    assert [(row["n"], row["value_sum"]) for row in figures(store)] == [(1, 0.9)]


@pytest.mark.parametrize(
    "target", ["results", "result_records", "figure_records", "figure_minutes", "figure_hours", "feed_state"]
)
def test_a_kill_at_any_seam_of_a_batch_changes_no_figure(target: str, store: Store, client: Any, database: str) -> None:
    first = scores_batch(make_score("a", value=0.2), make_score("b", "gate", 0.0, details={"reasons": ["duplicate"]}))
    second = scores_batch(
        make_score("a", value=0.9, revision=1, cost={"usd": 0.5}),
        make_score("b", "gate", 1.0, revision=1),
        make_score("c", value=0.4),
        make_score("c", value=0.6, attempt=1),
        offset=2,
    )
    with chdb_database() as other:
        whole = open_store(other, "this test", NOW)
        whole.write(first)
        whole.write(second)
        expected = every_figure(whole)
        whole.close()
    store.write(first)
    # The insert ends at this table: what was written before stays, and the offsets are not stored.
    client.command(f"RENAME TABLE {target} TO hidden")
    with pytest.raises(StoreUnavailableError):
        store.write(second)
    client.command(f"RENAME TABLE hidden TO {target}")

    restarted = open_store(database, "the next process", NOW)
    assert restarted.offsets() == {SourcePartition("results", 0): 2}
    for _ in range(2):
        restarted.write(second)
        assert every_figure(restarted) == expected
    restarted.close()


def every_figure(store: Store) -> list[list[dict[str, Any]]]:
    """Returns the figures per minute and per hour, the rejections, the costs and what counts."""
    hours = store.query("SELECT * FROM rollup_hours WHERE n <> 0 OR usd <> 0 ORDER BY hour, metric")
    return [
        figures(store),
        hours,
        store.query("SELECT minute, reason, sum(n) AS n FROM rejections GROUP BY minute, reason"),
        store.query("SELECT sum(usd) AS usd, sum(tokens) AS tokens FROM judge_costs"),
        store.query("SELECT session_id, value FROM results ORDER BY session_id"),
        store.query("SELECT session_id, value FROM replaced_results ORDER BY session_id, value"),
    ]


def test_a_database_of_something_else_is_refused(database: str, client: Any) -> None:
    client.command("CREATE TABLE mine (n UInt8) ENGINE = MergeTree ORDER BY n")

    with pytest.raises(StoreError, match="a database that Traceweir did not write; name an empty database"):
        open_store(database, "this test", NOW)
    assert client.query("SHOW TABLES").result_rows == [("mine",)]


def test_a_store_of_a_newer_version_is_refused(store: Store, database: str, client: Any) -> None:
    client.command("INSERT INTO store_version VALUES (99)")

    with pytest.raises(StoreError, match="has tables of version 99, and this version of Traceweir reads up to"):
        open_store(database, "this test", NOW)


def test_a_store_of_a_former_version_without_a_migration_is_refused(store: Store, database: str, client: Any) -> None:
    client.command("TRUNCATE TABLE store_version")
    client.command("INSERT INTO store_version VALUES (9)")

    with pytest.raises(StoreError, match="has tables of version 9, and this version of Traceweir needs version"):
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
    from traceweir.streams.board.store.clickhouse_ingestion import ERRORS, QUEUE_COLUMNS, error_reader, errors, reader

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

    client.command(errors())
    for table, found in ((RESULTS, [*records, FakeRecord(b"forged", len(scores))]), (SESSIONS, sessions)):
        client.command(f"TRUNCATE TABLE {table.name}")
        # The embedded engine has no reader of Kafka; this table has the columns of one.
        place = "_partition UInt64, _offset UInt64, _timestamp_ms Nullable(DateTime64(3)), _error String, _raw_message String"
        client.command(f"CREATE TABLE {table.name}_queue ({QUEUE_COLUMNS}, {place}) ENGINE = Null")
        client.command(error_reader(table))
        client.command(reader(table))
        rows = [
            [each.value, each.partition, each.offset, datetime.fromtimestamp(each.timestamp / 1000, UTC)]
            for each in found
        ]
        columns = ["record", "_partition", "_offset", "_timestamp_ms"]
        client.insert(f"{table.name}_queue", rows, column_names=columns)

    assert [store.query(f"SELECT * FROM {table.name} ORDER BY session_id") for table in (RESULTS, SESSIONS)] == fed
    assert [len(rows) for rows in fed] == [len(scores), 1]
    unread = client.query(f"SELECT topic, `offset`, record FROM {ERRORS} ORDER BY topic").result_rows
    assert unread == [("results", len(scores), "forged"), ("sessions", 1, "{")]


def test_clickhouse_can_parse_every_statement_of_the_file_for_kafka(client: Any) -> None:
    from traceweir.streams.board.store.clickhouse_ingestion import file_text

    found = statements_of(file_text())

    assert sum("ENGINE = Kafka" in statement for statement in found) == 2
    for statement in found:
        assert client.query(f"EXPLAIN AST {statement}").result_rows


def test_an_insert_alone_replaces_the_figures_of_a_result(store: Store, client: Any) -> None:
    rows = [
        scores_batch(make_score("a", value=value, revision=revision), offset=offset).rows["results"][0]
        for offset, (value, revision) in enumerate([(0.1, 0), (0.4, 1), (0.2, 0)])
    ]
    for _ in range(2):  # ClickHouse reads a record at least once
        for row in rows:
            client.insert("new_results", [row], column_names=RESULTS.column_names)

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

"""The DuckDB store keeps of each result what counts, its figures and its offsets, all or nothing."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import (
    every_change,
    figures,
    open_store,
    recomputed_figures,
    scores_batch,
    without_a_threshold,
)

from traceweir.streams.board.store import duckdb_store
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.duckdb_tables import SCHEMA_VERSION
from traceweir.streams.board.store.errors import StoreError, StoreUnavailableError
from traceweir.streams.board.store.overview import changes_in, judge_spending
from traceweir.streams.board.store.rows import Batch, SourcePartition
from traceweir.streams.board.store.selection import Selection

pytestmark = pytest.mark.slow


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "store.duckdb"


def values(file: Path, table: str = "results") -> list[tuple[object, ...]]:
    store = open_store(file)
    try:
        found = store.query(f"SELECT session_id, revision, attempt, value FROM {table} ORDER BY ALL")
        return [tuple(row.values()) for row in found]
    finally:
        store.close()


def write(file: Path, *batches: Batch) -> None:
    store = open_store(file)
    try:
        for batch in batches:
            store.write(batch)
    finally:
        store.close()


def test_rows_of_a_batch_and_its_offsets_are_stored_together_or_not_at_all(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(file)
    store.write(scores_batch(make_score("a")))
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", "no number")

    with pytest.raises(TypeError):
        store.write(scores_batch(make_score("b"), offset=1))

    assert store.query("SELECT session_id FROM results") == [{"session_id": "a"}]
    assert store.offsets() == {SourcePartition("results", 0): 1}
    monkeypatch.undo()
    store.write(scores_batch(make_score("b"), offset=1))
    assert store.offsets() == {SourcePartition("results", 0): 2}


def test_the_message_names_the_process_that_has_the_file(file: Path) -> None:
    file.parent.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", f"import duckdb; c = duckdb.connect({str(file)!r}); print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreError, match=f"is in use by the process {other.pid}: end that process"):
            open_store(file)
        other.communicate(b"\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no database" * 1000, "not a valid DuckDB database file"), (None, "a DuckDB file that Traceweir did not write")],
)
def test_a_file_of_something_else_is_refused(content: bytes | None, message: str, file: Path) -> None:
    file.parent.mkdir()
    if content is None:
        with duckdb.connect(str(file)) as connection:
            connection.execute("CREATE TABLE other (n INTEGER)")
    else:
        file.write_bytes(content)

    with pytest.raises(StoreError, match=message):
        open_store(file)


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(file: Path) -> None:
    write(file, scores_batch(make_score("a")))
    with duckdb.connect(str(file)) as connection:
        connection.execute("UPDATE store_version SET version = 99")

    with pytest.raises(
        StoreError, match=f"tables of version 99, and this version of Traceweir reads up to {SCHEMA_VERSION}"
    ):
        open_store(file)
    with duckdb.connect(str(file)) as connection:
        assert connection.execute("SELECT count(*) FROM results").fetchall() == [(1,)]


def forget_segments(connection: Any) -> None:
    """Makes the tables those of a version before scores had `segment_opened_at`."""
    for name in ("results", "replaced_results"):
        connection.execute(f"ALTER TABLE {name} DROP COLUMN segment_opened_at")
        connection.execute(f"ALTER TABLE {name} DROP COLUMN metric_digest")
    for name in ("freshness", "freshness_changes"):
        connection.execute(f"CREATE TABLE {name} (minute TIMESTAMP, metric VARCHAR, bucket BIGINT, n BIGINT)")


def test_a_store_of_the_first_version_is_brought_up_to_date_with_its_rows(file: Path) -> None:
    rejected = make_score("a", "gate", 0.0, level="trace", trace_id="t", details={"reasons": ["duplicate"]})
    write(file, scores_batch(rejected))
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "DROP TABLE topic_ids; DROP TABLE topic_times; DROP TABLE rollup_hours; DROP TABLE removed_results; DROP TABLE rejections; "
            "DROP TABLE rejection_changes; INSERT INTO rollups FROM rollup_changes; ALTER TABLE results DROP COLUMN cause; "
            "ALTER TABLE replaced_results DROP COLUMN cause; ALTER TABLE results DROP COLUMN judge; "
            "ALTER TABLE replaced_results DROP COLUMN judge; ALTER TABLE rollups DROP COLUMN judge; "
            "ALTER TABLE rollup_changes DROP COLUMN judge; ALTER TABLE results DROP COLUMN category; "
            "ALTER TABLE replaced_results DROP COLUMN category; ALTER TABLE results DROP COLUMN inclusion_probability; "
            "ALTER TABLE replaced_results DROP COLUMN inclusion_probability"
        )
        connection.execute("UPDATE store_version SET version = 1")
        forget_segments(connection)

    store = open_store(file)
    store.write(Batch(topic_ids={"results": "former"}))
    store.write(Batch(topic_ids={"results": "new"}))
    assert store.current_at() == {}
    store.write(Batch(current_at={"network": NOW}))

    assert store.current_at() == {"network": NOW}
    assert store.topic_ids() == {"results": "new"}
    assert store.query("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'freshness%'") == []
    assert store.offsets() == {SourcePartition("results", 0): 1}
    assert store.query("SELECT session_id FROM results") == [{"session_id": "a"}]
    assert store.query("SELECT minute, n FROM rollup_hours") == store.query("SELECT minute, n FROM rollups") != []
    assert store.query("SELECT reason, n FROM rejections") == [{"reason": "duplicate", "n": 1}]
    missing: dict[str, Any] = {"value": None, "not_evaluated_because": "error"}
    store.write(scores_batch(make_score("b", cause="judge_refused", **missing), offset=1))
    assert store.query("SELECT session_id, cause FROM results ORDER BY session_id") == [
        {"session_id": "a", "cause": None},
        {"session_id": "b", "cause": "judge_refused"},
    ]
    store.write(scores_batch(make_score("b", cause="too_long", revision=1, **missing), offset=2))
    assert store.query("SELECT cause FROM replaced_results") == [{"cause": "judge_refused"}]


def test_figures_of_a_version_that_does_not_know_judges_move_to_the_judges_of_the_results(file: Path) -> None:
    scores = [
        make_score("a", value=0.2, judge="first"),
        make_score("b", value=0.9, judge="second"),
        make_score("c", value=1.0),
        make_score("d", value=None, not_evaluated_because="budget", judge="first"),
    ]
    write(file, scores_batch(*scores))
    with duckdb.connect(str(file)) as connection:
        for table in ("rollups", "rollup_changes", "rollup_hours", "removed_results"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN judge")
        for table in ("results", "replaced_results"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN category")
            connection.execute(f"ALTER TABLE {table} DROP COLUMN inclusion_probability")
        connection.execute("UPDATE store_version SET version = 7")
        forget_segments(connection)

    store = open_store(file)

    assert len(figures(store)) == 3
    assert figures(store) == recomputed_figures(store)
    store.write(scores_batch(make_score("a", value=1.0, revision=1, judge="second"), offset=4))
    assert figures(store) == recomputed_figures(store)


def test_values_without_a_threshold_that_a_former_version_counted_as_passed_are_no_verdicts_any_more(
    file: Path,
) -> None:
    scores = [*without_a_threshold(), make_score("e", value=0.9, config_digest="strict"), make_score("f", value=0.1)]
    write(file, scores_batch(*scores))
    store = open_store(file)
    # Of these results only the figures are left, and what a revision of them would replace.
    store.remove_old({"results": NOW - timedelta(minutes=1)})
    expected = figures(store)
    assert sum(row["passed"] for row in expected) == 1
    store.close()
    with duckdb.connect(str(file)) as connection:
        for table in ("results", "replaced_results", "removed_results"):
            connection.execute(f"UPDATE {table} SET status = 'PASSED' WHERE status = 'INFORMATIONAL'")
        connection.execute("UPDATE rollup_changes SET passed = evaluated - failed")
        connection.execute("INSERT INTO rollups FROM rollup_changes; DELETE FROM rollup_changes")
        connection.execute("UPDATE store_version SET version = 9")
        forget_segments(connection)

    store = open_store(file)

    assert figures(store) == expected
    store.write(scores_batch(*(score.model_copy(update={"revision": 1}) for score in scores), offset=len(scores)))
    assert figures(store) == recomputed_figures(store)
    store.close()


@pytest.mark.parametrize("version", [9, 10])
def test_spending_and_first_results_of_a_former_version_are_known_after_its_migration(version: int, file: Path) -> None:
    paid = {"input_tokens": 100, "output_tokens": 10, "usd": 0.25}
    first = make_score("a", cost=paid, evaluated_at=NOW, **every_change())
    write(file, scores_batch(first, make_score("b", cost=paid | {"cached": True}, evaluated_at=NOW)))
    write(file, scores_batch(first.model_copy(update={"revision": 1}), offset=2))
    span = Selection(NOW - timedelta(days=1), NOW + timedelta(minutes=1))

    def known() -> tuple[Any, ...]:
        store = open_store(file)
        found = judge_spending(store, NOW, None).usd, changes_in(store, span)
        store.close()
        return found

    expected = known()
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            f"DROP VIEW judge_costs; DROP VIEW first_results; UPDATE store_version SET version = {version}"
        )
        forget_segments(connection)

    assert known() == expected
    assert expected[0] == 0.5
    assert {(each.kind, each.value) for each in expected[1]} >= set(every_change().items())


def test_a_store_without_a_version_is_refused_with_the_way_out(file: Path) -> None:
    write(file)
    with duckdb.connect(str(file)) as connection:
        connection.execute("DELETE FROM store_version")

    with pytest.raises(StoreError, match="does not say the version of its tables; name another file"):
        open_store(file)


def test_only_the_owner_of_the_file_can_read_it(file: Path) -> None:
    write(file, scores_batch(make_score("a")))

    assert file.stat().st_mode & 0o077 == 0


def test_the_message_of_a_failed_write_names_its_cause(file: Path) -> None:
    write(file)
    with duckdb.connect(str(file)) as connection:
        connection.execute("ALTER TABLE results DROP COLUMN source")
    store = open_store(file)

    with pytest.raises(StoreUnavailableError, match='does not have a column named "source"'):
        store.write(scores_batch(make_score("a")))


def test_a_query_cannot_reach_files_or_change_the_configuration(file: Path) -> None:
    store = open_store(file)
    with pytest.raises(StoreError, match="disabled"):
        store.query("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(StoreError, match="locked"):
        store.query("SET enable_external_access = true")


def test_a_revision_that_is_lower_than_the_removed_one_changes_nothing(file: Path) -> None:
    store = open_store(file)
    store.write(scores_batch(make_score("a", value=0.9, revision=2)))
    store.remove_old({"results": NOW + timedelta(days=2)})
    before = figures(store)
    store.write(scores_batch(make_score("a", value=0.1, revision=1), offset=1))

    assert figures(store) == before
    assert store.query("SELECT count(*) AS n FROM results") == [{"n": 0}]


def sums(store: DuckDBStore) -> list[dict[str, object]]:
    """Returns the figures by hour, from the figures per minute and from those per hour."""
    found = (
        "SELECT date_trunc('hour', minute) AS hour, agent_version, sum(n) AS n, round(sum(value_sum), 6) AS value_sum"
    )
    ending = "GROUP BY ALL HAVING sum(n) <> 0 ORDER BY ALL"
    by_minute = store.query(f"{found} FROM (FROM rollups UNION ALL FROM rollup_changes) {ending}")
    by_hour = store.query(
        f"{found} FROM (SELECT * EXCLUDE (hour) FROM rollup_hours UNION ALL FROM rollup_changes) {ending}"
    )
    assert by_minute == by_hour
    return by_minute


def test_old_figures_per_minute_become_sums_per_hour_and_revisions_still_replace_their_part(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", 1)
    store, chance = open_store(file), random.Random(2)
    scores = [
        make_score(
            f"s{n}",
            value=chance.random(),
            occurred_at=NOW - timedelta(minutes=chance.randrange(600)),
            agent_version=str(n % 2),
        )
        for n in range(200)
    ]
    store.write(scores_batch(*scores))
    before, minutes = sums(store), store.query("SELECT minute, n FROM rollups WHERE minute >= '2026-01-31 09:00'")
    for _ in range(2):
        store.remove_old_figures(NOW - timedelta(hours=2, minutes=30), NOW - timedelta(days=9))

    assert sums(store) == before
    old = "minute < '2026-01-31 09:00'"
    (found,) = store.query(f"SELECT count(*) AS n, bool_and(minute(minute) = 0) AS whole FROM rollups WHERE {old}")
    assert found == {"n": len([each for each in before if str(each["hour"]) < "2026-01-31 09"]), "whole": True}
    assert store.query(f"SELECT minute, n FROM rollups WHERE NOT {old}") == minutes

    oldest = min(scores, key=lambda score: score.occurred_at)
    store.write(scores_batch(oldest.model_copy(update={"revision": 1, "value": 0.0, "status": "FAILED"}), offset=200))
    store.remove_old_figures(NOW - timedelta(hours=2, minutes=30), NOW - timedelta(days=9))
    after = sums(store)
    assert [each["n"] for each in after] == [each["n"] for each in before]
    lost = sum(float(str(each["value_sum"])) for each in before) - sum(float(str(each["value_sum"])) for each in after)
    assert lost == pytest.approx(oldest.value, abs=1e-4)


def test_figures_and_what_is_left_of_results_go_after_their_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", 4)
    store = open_store(file)
    at = [NOW - timedelta(days=days) for days in (9, 5, 0)]
    store.write(scores_batch(*(make_score(f"s{n}", value=0.5, occurred_at=each) for n, each in enumerate(at))))
    store.write(scores_batch(make_score("late", value=0.5, occurred_at=at[0]), offset=3))
    store.remove_old({"results": NOW - timedelta(days=3)})
    store.remove_old_figures(NOW - timedelta(days=3), NOW - timedelta(days=7))

    assert [each["hour"].replace(tzinfo=NOW.tzinfo) for each in sums(store)] == at[1:]  # type: ignore[attr-defined]
    assert store.query("SELECT result_id FROM removed_results") == [{"result_id": make_score("s1").result_id}]


def test_what_the_database_cannot_write_is_told_in_one_line(file: Path) -> None:
    store = open_store(file)
    with duckdb.connect(str(file), config=dict(duckdb_store.OPTIONS)) as connection:
        connection.execute("DROP TABLE results")

    with pytest.raises(StoreUnavailableError) as caught:
        store.write(scores_batch(make_score("a")))

    assert "\n" not in str(caught.value)
    assert store.offsets() == {}

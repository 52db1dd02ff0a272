"""The store knows of each alert the last record, says which are open, and forgets the others with the results."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest
from tests.support.alerts import make_alert, resolved, send_alerts
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import CLICKHOUSE, FakeRecord, OpenStore, batch_of, chdb_database, scores_batch

from traceweir.streams.board.store import clickhouse_tables, duckdb_tables
from traceweir.streams.board.store.alerts import AlertPlace, alert_page, alerts_in
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.opening import open_store as open_named
from traceweir.streams.board.store.rows import MOST_ALERT_BYTES
from traceweir.streams.board.store.selection import Selection

DAY = Selection(NOW - timedelta(hours=24), NOW)
HOSTILE = "'; DROP TABLE alerts; -- <script>\u202e"


def ids(store: Store, **wanted: Any) -> list[str]:
    return [each.alert_id for each in alert_page(store, **wanted).alerts]


def spoilt(**changes: str) -> bytes:
    return orjson.dumps({**orjson.loads(make_alert(alert_id="a").wire()), **changes})


def test_an_alert_is_read_as_it_was_written(store: Store) -> None:
    alert = make_alert(by={"app_name": HOSTILE, "environment": None}, alert_id=HOSTILE)
    send_alerts(store, alert)
    assert alert_page(store).alerts == [alert]
    assert alert_page(store, alert_id=HOSTILE).total == 1


def test_the_last_record_of_an_alert_counts(store: Store) -> None:
    first, second = make_alert("a"), make_alert("b")
    send_alerts(store, first, second)
    assert set(ids(store, state="raised")) == {first.alert_id, second.alert_id}
    send_alerts(store, resolved(first), offset=2)
    assert ids(store, state="raised") == [second.alert_id]
    (ended,) = alert_page(store, state="resolved").alerts
    assert ended == resolved(first)
    # Records that come again change nothing.
    send_alerts(store, first, second, resolved(first))
    assert ids(store, state="raised") == [second.alert_id]
    assert alert_page(store).total == 2


def test_a_tombstone_removes_an_alert(store: Store) -> None:
    alert = make_alert()
    send_alerts(store, alert)
    store.write(batch_of("alerts", FakeRecord(None, 1, alert.alert_id.encode())))
    assert ids(store) == []
    assert alerts_in(store, DAY) == []
    assert "response_match_score" not in str(store.query("SELECT metric, document FROM alerts"))


def test_alerts_are_selected_and_a_list_goes_on_where_it_ended(store: Store) -> None:
    made = [make_alert(f"m{number % 2}", by={"app_name": str(number)}, hours=number // 2) for number in range(7)]
    send_alerts(store, *made)
    assert len(ids(store, metric="m0")) == 4
    found: list[str] = []
    after = None
    while True:
        page = alert_page(store, limit=2, after=after)
        assert page.total == 7
        found += [each.alert_id for each in page.alerts]
        if page.next is None:
            break
        after = AlertPlace.parse(str(page.next))
    assert found == ids(store)
    assert len(set(found)) == 7
    newest = alert_page(store, limit=1).alerts[0]
    assert newest.occurred_at == max(each.occurred_at for each in made)


@pytest.mark.parametrize(
    "text", ["", "x", "2026-01-31T12:00:00Z,", "2026-01-31T12:00:00,a", "0001-01-01T00:00:00+14:00,a"]
)
def test_a_text_that_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a place in the list; take it from the link to older alerts"):
        AlertPlace.parse(text)


def test_alerts_of_a_time_range_are_those_whose_change_can_be_in_it(store: Store) -> None:
    early, late = make_alert("a", hours=30), make_alert("b")
    send_alerts(store, late, early)
    assert alerts_in(store, DAY) == [late]
    assert alerts_in(store, replace(DAY, since=early.onset.latest)) == [early, late]
    assert alerts_in(store, replace(DAY, until=late.onset.earliest)) == []
    assert alerts_in(store, replace(DAY, metric="a", since=early.onset.latest)) == [early]


def test_a_selection_excludes_alerts_of_other_slices(store: Store) -> None:
    of_all, rail, nobody = (
        make_alert(),
        make_alert(by={"app_name": "rail", "user_id": "kim"}),
        make_alert(by={"app_name": None}),
    )
    send_alerts(store, of_all, rail, nobody)
    wanted = {"rail": {of_all.alert_id, rail.alert_id}, "shop": {of_all.alert_id}}
    for app, expected in wanted.items():
        assert {each.alert_id for each in alerts_in(store, replace(DAY, dimensions={"app_name": app}))} == expected
    assert len(alerts_in(store, DAY)) == 3


@pytest.mark.parametrize(
    "record",
    [
        FakeRecord(b"{", 0, b"a"),
        FakeRecord(make_alert(alert_id="a").wire(), 0, b"b"),
        FakeRecord(None, 0, None),
        FakeRecord(spoilt(state="forgotten"), 0, b"a"),
        FakeRecord(spoilt(x="x" * MOST_ALERT_BYTES), 0, b"a"),
    ],
)
def test_a_record_that_is_no_alert_costs_itself(record: FakeRecord, store: Store) -> None:
    good = make_alert()
    batch = batch_of("alerts", record, FakeRecord(good.wire(), 1, good.alert_id.encode()))
    assert batch.unreadable == {"alerts": 1}
    store.write(batch)
    assert alert_page(store).alerts == [good]


def test_alerts_that_have_ended_are_removed_with_the_results_and_open_ones_stay(open_store: OpenStore) -> None:
    store = open_store()
    ended, still_open = make_alert("a"), make_alert("b")
    send_alerts(store, ended, still_open)
    # In ClickHouse, both records of the first alert have a row until the parts of the table are merged.
    send_alerts(store, resolved(ended), offset=2)
    assert store.remove_old({"alerts": NOW})["alerts"] == 0
    assert store.remove_old({"alerts": NOW + timedelta(minutes=1)})["alerts"] == 1
    assert ids(store) == [still_open.alert_id]
    send_alerts(store, resolved(still_open), offset=3)
    assert store.remove_old({"alerts": NOW + timedelta(minutes=1)})["alerts"] == 1
    assert ids(store) == []


@pytest.mark.parametrize(("kind", "former"), [("duckdb", 15), pytest.param("clickhouse", 11, marks=CLICKHOUSE)])
@pytest.mark.slow
def test_a_store_of_the_version_before_alerts_is_brought_up_to_date(kind: str, former: int, tmp_path: Path) -> None:
    newest = duckdb_tables.SCHEMA_VERSION if kind == "duckdb" else clickhouse_tables.SCHEMA_VERSION
    with ExitStack() as stack:
        name = str(tmp_path / "store.duckdb") if kind == "duckdb" else stack.enter_context(chdb_database())
        store = open_named(name, "this test", NOW)
        store.write(scores_batch(make_score("a")))
        store.close()
        make_former(name, former)
        # The second time, nothing is left to do.
        for _ in range(2):
            store = open_named(name, "this test", NOW)
            stack.callback(store.close)
            send_alerts(store, make_alert())
            assert len(ids(store)) == 1
            assert store.query("SELECT session_id FROM results") == [{"session_id": "a"}]
            assert store.query("SELECT max(version) AS n FROM store_version") == [{"n": newest}]
            store.close()


def make_former(name: str, version: int) -> None:
    """Makes a store that of a version before alerts."""
    statements = [
        "DROP TABLE alerts",
        "DELETE FROM store_version WHERE true",
        f"INSERT INTO store_version VALUES ({version})",
    ]
    if name.startswith("chdb"):
        import clickhouse_connect

        client = clickhouse_connect.get_client(dsn=name)
        for each in statements:
            client.command(each)
        client.close()
        return
    with duckdb.connect(name) as connection:
        for each in statements:
            connection.execute(each)


def test_the_largest_alert_that_a_rule_can_make_is_stored(store: Store) -> None:
    longest = "\U0001f642" * 1024
    alert = make_alert(sessions=tuple(f"{number}{longest[1:]}" for number in range(10)), by={"user_id": longest[:200]})
    assert len(alert.wire()) <= MOST_ALERT_BYTES
    send_alerts(store, alert)
    assert alert_page(store).alerts == [alert]

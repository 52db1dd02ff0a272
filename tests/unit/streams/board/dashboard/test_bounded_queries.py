"""No page and no answer of the API reads all history: each query has a bound of time, names sessions, or reads small tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlglot
from sqlglot import exp
from tests.support.alerts import make_alert, send_alerts
from tests.support.dashboard_site import Site, session_id_of
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, send_labels

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.labels import Label, LabelSubject

pytestmark = pytest.mark.slow

SMALL = {"first_results", "replays", "rollup_changes", "rejection_changes", "unreadable_records", "alerts"}
"""Tables that do not grow with the number of results: changes are added up, few letters are replayed, and rules promise few
alerts."""
ALERT = make_alert()
TIMES = {"occurred_at", "last_record_at", "written_at", "evaluated_at", "minute", "hour"}
NAMES = {"key", "session_id", "trace_id"}
"""Columns of which an equation, or a list, selects the rows of some sessions."""
PAGES = (
    "/",
    "/alerts",
    "/api/v1/alerts",
    f"/api/v1/alert-slices?alert_id={ALERT.alert_id}",
    "/sessions",
    "/sessions?text=answer",
    "/sessions?status=FAILED&rationale=words",
    f"/session?session_id={session_id_of(0)}",
    "/metrics",
    "/metric?metric=tool_trajectory_avg_score",
    "/not-scored",
    "/dead-letters",
    "/trust?metric=hallucinations_v1",
    "/api/v1/trust?metric=hallucinations_v1",
    "/feedback",
    "/review?metric=hallucinations_v1&share=1",
    "/review?metric=hallucinations_v1&stratum=flagged",
    "/compare?first_agent_version=2.3.1&second_agent_version=2.4.0",
    "/api/v1/overview",
    "/api/v1/sessions?order=lowest&metric=tool_trajectory_avg_score",
    "/api/v1/facets?status=FAILED",
    f"/api/v1/session?session_id={session_id_of(0)}",
    "/api/v1/metric?metric=tool_trajectory_avg_score",
    "/api/v1/values",
    "/api/v1/query?group_by=metric",
    "/api/v1/judge-spending",
    "/api/v1/not-scored",
    "/api/v1/dead-letters",
    "/api/v1/comparison?first_agent_version=2.3.1&second_agent_version=2.4.0",
)


class Listening:
    """A store that keeps the text of each query."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.asked: list[str] = []

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        self.asked.append(sql)
        found: list[dict[str, Any]] = self._store.query(sql, parameters)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def unbounded(sql: str) -> Iterator[str]:
    """Yields the tables of a query that it reads as a whole."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    made = {each.alias for each in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name in SMALL | made:
            continue
        above = table.parent_select
        while above is not None and not is_bounded(above):
            above = above.parent_select
        if above is None:
            yield table.name


def is_bounded(select: exp.Expression) -> bool:
    where = select.args.get("where")
    if where is None:
        return False
    # A list can be a query of its own, whose columns say nothing about this one.
    found = set()
    for each in where.find_all(exp.GTE, exp.LT, exp.EQ, exp.In):
        if each.parent_select is select and isinstance(each.this, exp.Column):
            found.add((each.this.name, type(each)))
    times = {name for name, kind in found if kind in (exp.GTE, exp.LT) and name in TIMES}
    later = {name for name, kind in found if kind is exp.GTE and name in TIMES}
    names = {name for name, kind in found if kind in (exp.EQ, exp.In) and name in NAMES}
    return bool(later or names or (times and select.args.get("limit") is not None))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    site.add_sessions(30)
    letter = DeadLetter("not_json", "a detail", "assemble", "traceweir.traces", 1, 7, None, b"{")
    site.store.write(batch_of("dead-letters", FakeRecord(b"{", headers=letter.wire_headers())))
    send_alerts(site.store, ALERT)
    said: dict[str, Any] = {"criterion": "thumbs", "annotator": "user", "kind": "user", "occurred_at": NOW}
    about = LabelSubject(session_id=session_id_of(0), level="session")
    send_labels(site.store, Label(label_id="thumb", subject=about, verdict="pass", **said))
    site.now += timedelta(minutes=1)
    return site


@pytest.mark.parametrize("address", PAGES)
async def test_no_query_of_an_answer_reads_all_history(address: str, site: Site, tmp_path: Path) -> None:
    listening = Listening(site.store)
    site.store = listening
    try:
        transport = httpx.ASGITransport(site.application())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.get(address, headers={"accept": "text/html"})
    finally:
        site.store = listening._store  # noqa: SLF001

    assert answer.status_code == 200, answer.text[:300]
    assert listening.asked
    found = [(table, sql) for sql in listening.asked for table in unbounded(sql)]
    assert found == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM results",
        "SELECT max(n) FROM (SELECT * FROM rollups UNION ALL SELECT * FROM rollup_changes) AS found WHERE metric = 'gate'",
        "SELECT 1 FROM results WHERE occurred_at < $until",
        "SELECT 1 FROM results WHERE value >= 1 AND metric IN (SELECT metric FROM results WHERE occurred_at >= $since)",
    ],
)
def test_a_query_of_all_history_is_found(sql: str) -> None:
    assert list(unbounded(sql))

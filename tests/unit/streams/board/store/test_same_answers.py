"""DuckDB and ClickHouse give the same answer to every question of the dashboard."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from pydantic import BaseModel
from tests.support.judge_retries import session as session_document
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, chdb_database, scores_batch

from traceweir.schemas.dead_letter import REPLAYED, DeadLetter
from traceweir.schemas.score import result_id
from traceweir.streams.board.store.comparison import compare
from traceweir.streams.board.store.conditions import Conditions
from traceweir.streams.board.store.counts import dead_letters_over_time, not_scored_over_time
from traceweir.streams.board.store.facets import facets
from traceweir.streams.board.store.metric import dimension_values, metric
from traceweir.streams.board.store.opening import Store, open_store
from traceweir.streams.board.store.overview import overview
from traceweir.streams.board.store.rows import Batch
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.session_list import session_page, sessions
from traceweir.streams.board.store.sessions import dead_letters, not_scored, session, trace
from traceweir.streams.board.store.standing import standing
from traceweir.streams.board.store.tables import REASONS

pytestmark = pytest.mark.clickhouse
pytest.importorskip("chdb", reason="chdb is not installed; `make test-clickhouse` installs it")

WEEK = Selection(NOW - timedelta(days=7), NOW + timedelta(minutes=7))
HOURS = Selection(NOW - timedelta(hours=9, minutes=20), NOW, {"app_name": "shop"})
MATCH = Selection(WEEK.since, WEEK.until, metric="match")
NONE = Selection(NOW + timedelta(days=1), NOW + timedelta(days=2))

QUESTIONS: dict[str, Callable[[Store], object]] = {
    "overview of a week": lambda store: overview(store, WEEK),
    "overview of hours of one app": lambda store: overview(store, HOURS),
    "overview of a span without results": lambda store: overview(store, NONE),
    "metric": lambda store: metric(store, MATCH),
    "metric without results": lambda store: metric(store, Selection(NONE.since, NONE.until, metric="match")),
    "comparison": lambda store: compare(store, HOURS, Selection(WEEK.since, WEEK.until, {"agent_version": "2"})),
    "results of a judge": lambda store: overview(store, Selection(WEEK.since, WEEK.until, {"judge": "first"})),
    "values of dimensions": lambda store: dimension_values(store, WEEK),
    "sessions": lambda store: sessions(store, WEEK),
    "sessions of a metric in a range": lambda store: sessions(store, MATCH, least=0.2, most=0.7),
    "failed sessions": lambda store: sessions(store, WEEK, status="FAILED", limit=7),
    "sessions without a value": lambda store: sessions(store, HOURS, reason="budget"),
    "sessions with a text": lambda store: sessions(store, WEEK, text="S1"),
    "failed sessions with a text": lambda store: sessions(store, WEEK, text="s1", status="FAILED"),
    "sessions with a rationale": lambda store: sessions(store, WEEK, rationale="WORD", status="FAILED"),
    "sessions by the gate's reason": lambda store: sessions(store, WEEK, gate_reason="duplicate"),
    "sessions of a config": lambda store: sessions(store, WEEK, config_digest="digest", user_id="nobody"),
    "sessions by value": lambda store: session_page(store, MATCH, order="lowest", limit=9).sessions,
    "number of sessions": lambda store: session_page(store, MATCH, Conditions(least=0.5), limit=3).total,
    "facets": lambda store: facets(store, WEEK, Conditions(status="FAILED")),
    "session": lambda store: session(store, "s1"),
    "unknown session": lambda store: session(store, "s'; DROP TABLE results --"),
    "trace": lambda store: trace(store, "t3"),
    "what is wrong now": lambda store: standing(store, NOW),
    "what was not scored": lambda store: not_scored(store, WEEK),
    "what was not scored over time": lambda store: not_scored_over_time(store, WEEK, 21_600),
    "dead letters over time": lambda store: dead_letters_over_time(store, WEEK, 21_600),
    "dead letters": lambda store: dead_letters(store, WEEK),
}


def batches() -> list[Batch]:
    """Returns results with revisions, decisions of the gate, sessions and dead letters; the same ones at each call."""
    chance, scores = random.Random(3), []
    for number in range(300):
        name, value = f"s{number % 60}", chance.choice([None, 0.0, 0.25, 0.5, 0.75, 1.0])
        scores.append(
            make_score(
                name,
                chance.choice(["match", "hallucinations"]),
                value,
                **({"not_evaluated_because": chance.choice(REASONS)} if value is None else {}),
                revision=chance.randrange(3),
                attempt=chance.randrange(2),
                occurred_at=NOW - timedelta(minutes=number % 60 * 137, microseconds=number),
                app_name=(None, "shop", "bank")[number % 3],
                agent_name="bot",
                agent_version="12"[number % 2],
                judge=(None, "first", "second")[number % 5 % 3],
                cost={"usd": chance.randrange(8) / 8, "input_tokens": chance.randrange(90)},
            )
        )
        if number % 9 == 0:
            reasons = chance.sample(["threshold", "duplicate", "required"], chance.randrange(3))
            scores.append(
                make_score(
                    name,
                    "gate",
                    0.0 if reasons else 1.0,
                    status="FAILED" if reasons else "PASSED",
                    result_id=result_id(name, 0, "trace", f"t{number % 60}", "gate", "digest"),
                    level="trace",
                    trace_id=f"t{number % 60}",
                    threshold=None,
                    details={"reasons": reasons},
                    occurred_at=NOW - timedelta(hours=number % 50),
                )
            )
    documents = [FakeRecord(orjson.dumps(session_document(f"s{n}", app_name="shop")), n) for n in range(40)]
    letter = DeadLetter("late", "too late", "assemble", "traceweir.traces", 2, 17, b"k", b"v")
    letters = [FakeRecord(letter.wire_value(), n, letter.key, letter.wire_headers()) for n in range(3)]
    mark = FakeRecord(None, 3, None, [(REPLAYED, b"0:1")])
    return [
        scores_batch(*scores[:150]),
        scores_batch(*scores[150:], offset=150),
        batch_of("sessions", *documents),
        batch_of("dead-letters", *letters, mark),
    ]


def rounded(found: object) -> object:
    """Returns an answer as JSON, with numbers to 9 digits: the databases add up in another order."""
    if isinstance(found, BaseModel):
        return rounded(found.model_dump(mode="json"))
    if isinstance(found, dict):
        return {name: rounded(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [rounded(each) for each in found]
    return round(found, 9) if isinstance(found, float) else found


def test_both_databases_give_the_same_answers(tmp_path: Path) -> None:
    with chdb_database() as address:
        stores = [open_store(name, "this test", NOW) for name in (str(tmp_path / "store.duckdb"), address)]
        for store in stores:
            for batch in batches():
                store.write(batch)
        for question, answer in QUESTIONS.items():
            embedded, clickhouse = (rounded(answer(store)) for store in stores)
            assert clickhouse == embedded, question
        assert rounded(overview(stores[0], WEEK)) != rounded(overview(stores[0], NONE))
        for store in stores:
            store.close()

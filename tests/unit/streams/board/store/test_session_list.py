"""A list of sessions is narrowed, ordered and counted by what its results and records say."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, scores_batch

from traceweir.schemas.score import Score
from traceweir.streams.board.store import session_list
from traceweir.streams.board.store.conditions import Conditions
from traceweir.streams.board.store.facets import facets
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.paging import Order, Place, place_of
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.session_list import session_page, sessions

pytestmark = pytest.mark.slow

DAY = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12))
OF_MATCH = Selection(DAY.since, DAY.until, metric="match")


def record(name: str, *tools: tuple[str, str | None], question: str = "Where?", **changes: Any) -> FakeRecord:
    """Returns the record of a session whose agent called these tools, each with its error."""
    about = {"session_id": name, "invocation_id": "1", "app_name": "shop"}
    events: list[dict[str, Any]] = [
        {"type": "invocation.started", "user_content": {"parts": [{"text": question}]}, "occurred_at": NOW.isoformat()}
    ]
    for at, (tool, error) in enumerate(tools):
        moment = (NOW + timedelta(seconds=at)).isoformat()
        common = {"name": tool, "call_id": str(at), "occurred_at": moment}
        outcome = {"error": error} if error else {"response": "fine"}
        events += [{"type": "tool.called", "args": {}, **common}, {"type": "tool.returned", **common, **outcome}]
    answer = {"parts": [{"text": f"answer of {name}"}]}
    ended = (NOW + timedelta(seconds=8)).isoformat()
    events.append({"type": "invocation.completed", "final_response": answer, "occurred_at": ended})
    return FakeRecord(
        orjson.dumps(
            {
                "session_id": name,
                "segment": 0,
                "revision": 0,
                "closed_because": "session.ended",
                "first_record_at": NOW.isoformat(),
                "last_record_at": NOW.isoformat(),
                "events": [{**about, **event} for event in events],
                "traces": [],
                **changes,
            }
        )
    )


def rejected(name: str, *reasons: str) -> Score:
    details = {"decision": "rejected", "reasons": list(reasons)}
    gate: dict[str, Any] = {"status": "FAILED", "threshold": None, "details": details, "result_id": f"{name}-gate"}
    return make_score(name, "gate", 0.0, level="trace", trace_id=f"kp:trace:{name}", **gate)


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with three sessions that differ in everything by which a list can be narrowed."""
    store.write(
        scores_batch(
            make_score("a", "match", 0.1, user_id="u1", labels={"tier": "gold"}, rationale="A flight is MISSING."),
            make_score("a", "safety", 0.2, user_id="u1", judge="j", config_digest="d2", cost={"usd": 0.25}),
            make_score("b", "match", 0.9, user_id="u2", labels={"tier": "gold", "x": 'a","tier":"no'}),
            make_score("c", "match", None, not_evaluated_because="error", cause="judge_refused", agent_version="2"),
            rejected("a", "below_threshold"),
            rejected("b", "below_threshold", "duplicate"),
        )
    )
    records = (record("a", ("find", None), ("book", "sold out")), record("b", ("find", None)), record("c"))
    store.write(batch_of("sessions", *records))
    return store


def found(store: Store, selection: Selection = DAY, **conditions: Any) -> list[str]:
    return sorted(each.session_id for each in sessions(store, selection, **conditions))


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        ({"user_id": "u1"}, ["a"]),
        ({"config_digest": "d2"}, ["a"]),
        ({"label": "tier=gold"}, ["a", "b"]),
        ({"label": "tier=no"}, []),
        ({"gate_reason": "below_threshold"}, ["a", "b"]),
        ({"gate_reason": "duplicate"}, ["b"]),
        ({"gate_reason": "rejected"}, []),
        ({"gate_reason": "below_threshold", "status": "FAILED"}, ["a"]),
        ({"rationale": "flight is missing"}, ["a"]),
        ({"rationale": "flight", "status": "PASSED"}, []),
        ({"tool": "find"}, ["a", "b"]),
        ({"tool": "Find"}, []),
        ({"tool_error": "find"}, []),
        ({"tool_error": "book", "user_id": "u1"}, ["a"]),
        ({"tool": "book", "user_id": "u2"}, []),
        ({"cause": "judge_refused"}, ["c"]),
        ({"text": "answer of b", "tool": "find"}, ["b"]),
    ],
)
def test_a_list_has_the_sessions_that_meet_all_conditions(
    conditions: dict[str, Any], names: list[str], filled: Store
) -> None:
    assert found(filled, **conditions) == names


def test_each_facet_counts_the_sessions_that_its_value_selects(filled: Store) -> None:
    lists: list[dict[str, Any]] = [
        {},
        {"status": "FAILED"},
        {"user_id": "u1"},
        {"tool": "find"},
        {"rationale": "words"},
    ]
    for given in lists:
        counted = facets(filled, DAY, Conditions(**given))
        assert counted.are_all
        for facet in counted.facets:
            for each in facet.values:
                narrower: dict[str, Any] = {**given, facet.name: each.value}
                selection = DAY
                if facet.name in ("app_name", "agent_version", "judge"):
                    selection = Selection(DAY.since, DAY.until, {facet.name: narrower.pop(facet.name)})
                elif facet.name == "metric":
                    selection = Selection(DAY.since, DAY.until, metric=narrower.pop("metric"))
                assert len(found(filled, selection, **narrower)) == each.sessions, (given, facet.name, each)


def test_the_facets_of_a_list_are_those_of_its_sessions(filled: Store) -> None:
    counted = {
        each.name: {value.value: value.sessions for value in each.values}
        for each in facets(filled, DAY, Conditions(status="FAILED")).facets
    }

    assert counted["tool"] == {"book": 1, "find": 1}
    assert counted["tool_error"] == {"book": 1}
    assert counted["user_id"] == {"u1": 1}
    assert counted["label"] == {"tier=gold": 1}
    assert counted["gate_reason"] == {"below_threshold": 1}
    assert counted["config_digest"] == {"d2": 1, "digest": 1}
    assert counted["judge"] == {"j": 1}


def test_a_summary_has_the_beginning_of_what_was_said_the_failed_metrics_the_tools_and_the_cost(filled: Store) -> None:
    (summary,) = session_page(filled, DAY, Conditions(user_id="u1"), readable=str).sessions

    assert (summary.question, summary.answer) == ("Where?", "answer of a")
    assert (summary.failed_metrics, summary.status) == (["match", "safety"], "FAILED")
    assert (summary.tools, summary.failed_tools) == (["find", "book"], ["book"])
    assert (summary.duration_s, summary.judge_usd) == (8.0, 0.25)


def test_a_summary_has_no_text_that_the_asker_may_not_read(store: Store) -> None:
    secret = "kim@example.com " * 40
    store.write(batch_of("sessions", record("a", question=secret)))

    (unseen,) = sessions(store, DAY)
    (hidden,) = sessions(store, DAY, readable=lambda text: "")
    (cut,) = sessions(store, DAY, readable=lambda text: text.replace("kim@example.com", "X"))

    assert (unseen.question, hidden.question) == (None, None)
    assert cut.question == ("X " * 40)


def test_a_search_in_rationales_finds_only_what_the_asker_may_read(store: Store) -> None:
    store.write(scores_batch(make_score("a", rationale="the key is sk-1234")))

    def readable(text: str) -> str:
        return text.replace("sk-1234", "[REDACTED]")

    assert [each.session_id for each in sessions(store, DAY, readable=readable, rationale="KEY is")] == ["a"]
    page = session_page(store, DAY, Conditions(rationale="sk-12"), readable=readable)
    assert (page.sessions, page.total) == ([], 0)


@pytest.mark.parametrize("order", ["lowest", "highest"])
@pytest.mark.parametrize("limit", [1, 4, 50])
@pytest.mark.parametrize("conditions", [{}, {"rationale": "words"}])
def test_a_list_by_the_value_of_a_metric_has_each_session_once_in_this_order(
    order: Order, limit: int, conditions: dict[str, Any], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_list, "MAX_SEARCHED", 4)
    chance = random.Random(5)
    values = {f"s{number}": chance.choice([0.1, 0.25, 1 / 3, 0.75]) for number in range(12)}
    store.write(
        scores_batch(
            *(make_score(name, "match", value) for name, value in values.items()),
            make_score("none", "match", None),
            make_score("other", "safety", 0.0),
        )
    )

    names: list[str] = []
    after: Place | None = None
    while True:
        page = session_page(store, OF_MATCH, Conditions(**conditions), order=order, limit=limit, after=after)
        assert conditions or page.total == 12
        names += [each.session_id for each in page.sessions]
        assert [each.metric_value for each in page.sessions] == [values[each.session_id] for each in page.sessions]
        if page.next is None:
            break
        after = place_of(str(page.next), order)

    sign = 1 if order == "lowest" else -1
    assert names == sorted(values, key=lambda name: (sign * values[name], name))


def test_the_sessions_with_most_failed_criteria_are_first_and_those_without_are_not_listed(store: Store) -> None:
    failed = {"a": 1, "b": 3, "c": 0, "d": 3}
    gate = [make_score("c", "gate", 0.0, level="trace", status="FAILED")]
    scores = [
        make_score(name, f"metric-{n}", float(n >= number), result_id=f"{name}-{n}", labels={"tenant": name})
        for name, number in failed.items()
        for n in range(4)
    ]
    store.write(scores_batch(*scores, *gate))

    first = session_page(store, DAY, order="failures", limit=2)
    rest = session_page(store, DAY, order="failures", limit=2, after=place_of(str(first.next), "failures"))
    of_tenant = session_page(store, DAY, Conditions(label="tenant=a"), order="failures")

    listed = [(each.session_id, each.failed) for each in [*first.sessions, *rest.sessions]]
    assert listed == [("b", 3), ("d", 3), ("a", 1)]
    assert (first.total, rest.next, [each.session_id for each in of_tenant.sessions]) == (3, None, ["a"])


def test_a_search_by_value_has_the_sessions_with_the_text_in_this_order(filled: Store) -> None:
    page = session_page(filled, OF_MATCH, Conditions(text="answer of"), order="highest")

    assert [each.session_id for each in page.sessions] == ["b", "a"]
    assert (page.total, page.next) == (2, None)


def test_the_total_is_that_of_all_pages(filled: Store) -> None:
    assert session_page(filled, DAY, limit=1).total == 3
    assert session_page(filled, DAY, Conditions(status="FAILED"), limit=1).total == 1
    assert session_page(filled, OF_MATCH, limit=1).total == 3
    assert session_page(filled, DAY, Conditions(text="answer"), limit=1).total == 3


def test_the_total_of_a_search_that_does_not_read_all_is_unknown(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_list, "MAX_SEARCHED", 1)

    assert session_page(filled, DAY, Conditions(text="answer")).total is None


def test_an_order_by_value_needs_a_metric_and_a_place_of_its_own(filled: Store) -> None:
    with pytest.raises(ValueError, match="select a metric"):
        session_page(filled, DAY, order="lowest")
    with pytest.raises(ValueError, match="another order"):
        session_page(filled, OF_MATCH, order="lowest", after=place_of("2026-01-31T12:00:00Z,0,a", "newest"))


@pytest.mark.parametrize("text", ["", "x,0,a", "nan,0,a", "0.5,-1,a", "0.5,0,", "2026-01-31T12:00:00Z,0,a"])
def test_a_text_that_is_no_place_by_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a place in the list"):
        place_of(text, "lowest")

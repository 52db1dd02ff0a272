"""The questions of the dashboard are answered from the rows that count."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import orjson
import pytest
from tests.support.judge_retries import session as session_document
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, scores_batch

from traceweir.schemas.dead_letter import REPLAYED, DeadLetter
from traceweir.schemas.judge_config import Budget
from traceweir.schemas.score import Cause, Score, result_id
from traceweir.streams.base.statistics.rounded_values import MEDIAN, P95, RoundedValues
from traceweir.streams.board.store import duckdb_store, session_list
from traceweir.streams.board.store import sessions as sessions_module
from traceweir.streams.board.store.comparison import compare
from traceweir.streams.board.store.conditions import Conditions
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.metric import dimension_values, metric
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.overview import judge_spending, overview
from traceweir.streams.board.store.paging import Position
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.session_list import session_page, sessions
from traceweir.streams.board.store.sessions import AFTER_A_CAUSE, WHAT_TO_DO, dead_letters, not_scored, session
from traceweir.streams.board.store.standing import Standing, standing
from traceweir.streams.board.store.tables import REASONS

pytestmark = pytest.mark.slow

DAY = Selection(NOW - timedelta(hours=12), NOW + timedelta(hours=12))


def gate(session_id: str, *reasons: str, **changes: Any) -> Score:
    return make_score(
        session_id,
        "gate",
        0.0 if reasons else 1.0,
        result_id=result_id(session_id, 0, "trace", "t", "gate", "digest"),
        status="FAILED" if reasons else "PASSED",
        level="trace",
        trace_id="t",
        threshold=None,
        details={"reasons": list(reasons)},
        **changes,
    )


def test_an_overview_has_the_figures_of_each_metric_with_the_interval_of_its_pass_rate(store: Store) -> None:
    store.write(
        scores_batch(
            *(make_score(f"s{number}", value=value) for number, value in enumerate([1.0, 1.0, 1.0, 0.0, None])),
            make_score("s0", "completeness", 0.8, cost={"usd": 0.5, "input_tokens": 7}),
        )
    )

    found = {each.metric: each for each in overview(store, DAY).metrics}

    match = found["response_match_score"]
    assert (match.results, match.evaluated, match.passed, match.failed) == (5, 4, 3, 1)
    assert (match.not_evaluated, match.mean, match.pass_rate) == ({"missing_input": 1}, 0.75, 0.75)
    # Wilson's interval of 3 of 4, as the usual tables have it.
    assert (round(match.pass_rate_low or 0, 4), round(match.pass_rate_high or 0, 4)) == (0.3006, 0.9544)
    assert (found["completeness"].usd, found["completeness"].input_tokens) == (0.5, 7)


def test_an_overview_has_the_cost_of_replaced_results_whoever_judged_them(store: Store) -> None:
    first, second = (make_score("a", "safety_v1", 0.2, judge=judge, cost={"usd": 0.25}) for judge in ("m", "n"))
    store.write(scores_batch(first, second.model_copy(update={"revision": 1})))

    (found,) = overview(store, DAY).metrics

    assert (found.results, found.usd, [each.judge for each in found.by_judge]) == (1, 0.5, ["n"])


def judged(judge: str | None, *values: float | None, **changes: Any) -> list[Score]:
    """Returns scores of sessions that are named after their judge."""
    return [
        make_score(f"{judge}{number}", "safety_v1", value, judge=judge, **changes)
        for number, value in enumerate(values)
    ]


def test_figures_are_split_by_the_judge_where_results_name_one(store: Store) -> None:
    store.write(scores_batch(*judged("first", 1.0, 1.0, 0.0, None), *judged("second", 0.0), *judged(None, 1.0)))

    (found,) = overview(store, DAY).metrics

    assert (found.results, found.passed, found.failed) == (6, 3, 2)
    assert [(each.judge, each.passed, each.failed, each.results) for each in found.by_judge] == [
        ("first", 2, 1, 4),
        ("second", 0, 1, 1),
        (None, 1, 0, 1),
    ]
    assert found.judges == ["first", "second"]


def test_results_that_name_no_judge_are_not_split(store: Store) -> None:
    store.write(scores_batch(*judged(None, 1.0, 0.0)))

    assert [each.by_judge for each in overview(store, DAY).metrics] == [[]]


def test_a_judge_selects_its_results_and_their_sessions_and_no_other_records(store: Store) -> None:
    store.write(scores_batch(*judged("first", 1.0, 0.0), *judged("second", 0.0), gate("g")))
    store.write(
        batch_of("sessions", FakeRecord(orjson.dumps(session_document("first0", last_record_at=NOW.isoformat()))))
    )
    of_first = Selection(DAY.since, DAY.until, {"judge": "first"})

    found = overview(store, of_first)

    assert [(each.metric, each.passed, each.failed) for each in found.metrics] == [("safety_v1", 1, 1)]
    assert (found.coverage.sessions, found.coverage.accepted) == (1, 1)
    assert {each.session_id for each in sessions(store, of_first)} == {"first0", "first1"}
    assert dimension_values(store, DAY).dimensions["judge"] == ["first", "second"]


def test_a_comparison_names_the_judges_of_each_side(store: Store) -> None:
    versions = [{"agent_version": version} for version in ("1", "2")]
    store.write(
        scores_batch(
            *judged("first", 1.0, 0.0, **versions[0]), *judged("second", 0.0, **versions[1]), gate("g", **versions[0])
        )
    )
    sides = [Selection(DAY.since, DAY.until, version) for version in versions]

    other = next(each for each in compare(store, *sides).metrics if each.metric == "safety_v1")
    same = next(each for each in compare(store, sides[0], DAY).metrics if each.metric == "gate")

    assert (other.first and other.first.judges, other.second and other.second.judges) == (["first"], ["second"])
    assert (other.has_several_judges, same.has_several_judges) == (True, False)


def informational(session_id: str, value: float | None = 900.0, **changes: Any) -> Score:
    fields: dict[str, Any] = {"threshold": None, "status": "PASSED" if value is not None else "NOT_EVALUATED"}
    return make_score(session_id, "token_usage_v1", value, **fields | changes)


def test_a_value_without_a_threshold_is_in_no_pass_rate_and_is_counted(store: Store) -> None:
    store.write(
        scores_batch(*map(informational, "abc"), informational("d", None), make_score("a", value=1.0), gate("a"))
    )

    found = {each.metric: each for each in overview(store, DAY).metrics}

    tokens = found["token_usage_v1"]
    assert (tokens.results, tokens.evaluated, tokens.passed, tokens.failed, tokens.informational) == (4, 3, 0, 0, 3)
    assert (tokens.pass_rate, tokens.pass_rate_low, tokens.pass_rate_high, tokens.mean) == (None, None, None, 900.0)
    others = [found[name] for name in ("response_match_score", "gate")]
    assert [(each.passed, each.informational, each.pass_rate) for each in others] == [(1, 0, 1.0), (1, 0, 1.0)]
    points = {each.metric: (each.evaluated, each.passed, each.failed) for each in overview(store, DAY).series}
    assert points["token_usage_v1"] == (3, 0, 0)
    (one, *_) = sessions(store, DAY, status="PASSED")
    assert (one.session_id, one.passed, one.failed, one.informational) == ("a", 1, 0, 1)
    assert {each.session_id for each in sessions(store, DAY, status="INFORMATIONAL")} == set("abc")


@pytest.mark.parametrize(
    ("name", "direction", "worst"),
    [
        ("completeness", "higher", [0.25, 0.5, 0.75]),
        ("latency", "lower", [0.75, 0.5, 0.25]),
        ("tool_call_count_v1", "neutral", []),
        ("our_tone", None, []),
    ],
)
def test_the_worst_results_are_those_of_the_metric_s_direction(
    name: str, direction: str | None, worst: list[float], store: Store
) -> None:
    store.write(scores_batch(*(make_score(f"s{number}", name, number / 4, threshold=None) for number in range(1, 4))))

    found = metric(store, replace(DAY, metric=name))

    assert (found.direction, [each.value for each in found.worst]) == (direction, worst)


def test_the_answers_of_a_categorical_criterion_are_counted_at_each_level(store: Store) -> None:
    answers = {"a": ("refund", 1.0), "b": ("other", 0.0), "c": ("other", 0.0), "d": (None, None)}
    session = [make_score(name, "topic", value, category=answer) for name, (answer, value) in answers.items()]
    turn = make_score("a", "topic", 1.0, level="invocation", invocation_id="i", result_id="turn", category="refund")
    store.write(scores_batch(*session, turn))
    later = make_score("c", "topic", 1.0, category="refund", revision=1)
    store.write(scores_batch(later))

    found = metric(store, replace(DAY, metric="topic")).categories

    assert [(each.level, each.category, each.value, each.results) for each in found] == [
        ("invocation", "refund", 1.0, 1),
        ("session", "refund", 1.0, 2),
        ("session", "other", 0.0, 1),
    ]
    assert [round(each.share, 3) for each in found] == [1.0, 0.667, 0.333]
    assert all(each.share_low < each.share < each.share_high or each.share == 1 for each in found)
    assert metric(store, replace(DAY, metric="response_match_score")).categories == []


@pytest.mark.parametrize(
    ("passed", "failed", "direction"), [(0.9, 0.2, "higher"), (0.2, 0.9, "lower"), (0.9, 0.9, None), (0.5, 0.5, None)]
)
def test_verdicts_say_which_values_are_better_where_no_scorer_does(
    passed: float, failed: float, direction: str | None, store: Store
) -> None:
    statuses = {"PASSED": passed, "FAILED": failed}
    store.write(
        scores_batch(
            *(make_score(status, "our_tone", value, threshold=0.5, status=status) for status, value in statuses.items())
        )
    )

    assert metric(store, replace(DAY, metric="our_tone")).direction == direction


@pytest.mark.parametrize(
    ("values", "median", "p95"),
    [
        ([3.0], 3.0, 3.0),
        ([float(number) for number in range(1, 101)], 50.0, 95.0),
        ([0.0, 0.0, 2.5e-9, -2.5], 0.0, 2.5e-9),
        ([0.1, 1 / 3, 1000.0], 0.3333, 1000.0),
        ([1234567.0] * 3, 1235000.0, 1235000.0),
        ([1.7976e308, -1e300], -1e300, 1.797e308),
    ],
)
def test_values_without_a_threshold_have_a_median_and_a_p95_with_their_unit(
    values: list[float], median: float, p95: float, store: Store
) -> None:
    store.write(
        scores_batch(
            *(
                make_score(f"s{number}", "latency", value, threshold=None, status="PASSED")
                for number, value in enumerate(values)
            ),
            make_score("judged", value=0.5),
        )
    )

    found = {each.metric: each for each in overview(store, DAY).metrics}

    latency = found["latency"]
    assert (latency.median, latency.p95, latency.unit, latency.direction) == (median, p95, "s", "lower")
    of_values = RoundedValues()
    for value in values:
        of_values.add(value)
    assert (of_values.quantile(MEDIAN), of_values.quantile(P95)) == (median, p95)
    judged = found["response_match_score"]
    assert (judged.median, judged.p95, judged.unit, judged.direction) == (None, None, None, "higher")


def test_a_comparison_has_no_pass_rate_where_a_side_has_no_threshold(store: Store) -> None:
    scores = [informational(f"{version}{number}", agent_version=version) for version in "12" for number in range(12)]
    judged = make_score("10", "token_usage_v1", 1.0, result_id="other", agent_version="1")
    store.write(scores_batch(*scores, judged))
    first, second = (Selection(DAY.since, DAY.until, {"agent_version": version}) for version in "12")

    (found,) = compare(store, first, second).metrics

    assert found.first is not None
    assert (found.first.pass_rate, found.pass_rate_difference, found.differs) == (1.0, None, False)
    assert found.mean_difference is not None


def test_a_series_has_a_point_for_each_step_with_results(store: Store) -> None:
    times = [NOW, NOW + timedelta(minutes=14), NOW + timedelta(minutes=15)]
    store.write(scores_batch(*(make_score(f"s{n}", value=1.0, occurred_at=at) for n, at in enumerate(times))))

    points = overview(store, DAY).series

    assert [(point.begins_at, point.results) for point in points] == [(NOW, 2), (NOW + timedelta(minutes=15), 1)]


@pytest.mark.parametrize("zone_minutes", [0, 330])
def test_figures_of_days_are_those_of_the_minutes_of_the_span(
    zone_minutes: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_store, "MERGED_AFTER_CHANGES", 60)
    chance = random.Random(5)
    moments = [NOW - timedelta(minutes=chance.randrange(20 * 24 * 60)) for _ in range(120)]
    scores = [
        make_score(f"s{n}", value=1.0, occurred_at=at, agent_version=str(n % 7), agent_name="bot")
        for n, at in enumerate(moments)
    ]
    failed = {"revision": 1, "value": 0.0, "status": "FAILED"}
    for at in range(0, 120, 24):
        store.write(scores_batch(*scores[at : at + 24], offset=at))
    store.write(scores_batch(*(score.model_copy(update=failed) for score in scores[:10]), offset=120))
    if isinstance(store, DuckDBStore):  # the figures are in all three tables
        assert 0 < store.query("SELECT count(*) AS n FROM rollup_changes")[0]["n"] < 60
    zone = timezone(timedelta(minutes=zone_minutes))
    selection = Selection(
        (NOW - timedelta(days=17, minutes=43)).astimezone(zone), (NOW - timedelta(minutes=17)).astimezone(zone)
    )

    found = overview(store, selection)

    inside = [n for n, at in enumerate(moments) if selection.since <= at < selection.until]
    (figures,) = found.metrics
    assert (figures.results, figures.failed) == (len(inside), sum(n < 10 for n in inside))
    assert found.step_s >= 3_600
    assert sum(point.results for point in found.series) == len(inside)
    first = {str(n % 7): min(at for m, at in enumerate(moments) if m % 7 == n % 7) for n in range(7)}
    changed = {change.value: change.first_seen_at for change in found.changes if change.kind == "agent_version"}
    assert changed == {version: at for version, at in first.items() if selection.since <= at < selection.until}


def test_a_selection_leaves_out_other_times_dimensions_and_metrics(store: Store) -> None:
    store.write(
        scores_batch(
            make_score("in", value=1.0, app_name="shop"),
            make_score("other app", value=1.0, app_name="bank"),
            make_score("no app", value=1.0),
            make_score("in", "completeness", 1.0, app_name="shop"),
            make_score("old", value=1.0, app_name="shop", occurred_at=NOW - timedelta(days=1)),
        )
    )
    shop = Selection(DAY.since, DAY.until, {"app_name": "shop"}, metric="response_match_score")

    (found,) = overview(store, shop).metrics

    assert (found.metric, found.results) == ("response_match_score", 1)
    assert [each.session_id for each in sessions(store, shop)] == ["in"]


def test_a_hostile_value_of_a_filter_is_a_value(store: Store) -> None:
    store.write(scores_batch(make_score("a")))

    assert sessions(store, Selection(DAY.since, DAY.until, {"model": "' OR 1=1 --"}, metric="x' OR 'a'='a")) == []
    with pytest.raises(ValueError, match="is not a dimension; choose from app_name, agent_name"):
        Selection(DAY.since, DAY.until, {"1=1 --": "x"})
    with pytest.raises(ValueError, match="the time range leaves the years 1 to 9999"):
        Selection(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), NOW)
    with pytest.raises(ValueError, match="the time range ends at"):
        Selection(NOW, NOW)


def test_changes_are_versions_and_configs_whose_first_results_are_in_the_span(store: Store) -> None:
    old, new = NOW - timedelta(days=2), NOW + timedelta(minutes=3)
    store.write(
        scores_batch(
            make_score("a", agent_name="bot", agent_version="1", occurred_at=old),
            make_score("b", agent_name="bot", agent_version="1"),
            make_score("c", agent_name="bot", agent_version="2", occurred_at=new, config_digest="other"),
        )
    )

    found = [(change.kind, change.value, change.first_seen_at) for change in overview(store, DAY).changes]

    assert found == [("agent_version", "2", new), ("config_digest", "other", new)]


def test_coverage_counts_sessions_decisions_and_dead_letters(store: Store) -> None:
    closed = [orjson.dumps(session_document(name, last_record_at=NOW.isoformat())) for name in "ab"]
    store.write(batch_of("sessions", *map(FakeRecord, closed)))
    store.write(scores_batch(gate("a", "below_threshold", "private"), gate("b", "private"), gate("c")))
    letter = DeadLetter("late", "too late", "assemble", "traceweir.traces", 0, 1, None, b"x")
    store.write(batch_of("dead-letters", FakeRecord(b"x", 0, None, letter.wire_headers())))

    found = overview(store, DAY).coverage

    assert (found.sessions, found.accepted, found.rejected) == (2, 1, 2)
    assert found.rejected_because == {"private": 2, "below_threshold": 1}
    assert found.dead_letters == {"late": 1}


@pytest.mark.parametrize(
    "details",
    [
        b'{"reasons": "private"}',
        b'{"reasons": {"private": 1}}',
        b'{"reasons": [null]}',
        b'{"reasons": NaN}',
        b'{"number": ' + b"9" * 400 + b"}",
        b'{"list": ' + b"[" * 190 + b"]" * 190 + b"}",
    ],
)
def test_forged_details_cost_no_answer(details: bytes, store: Store) -> None:
    forged = gate("forged", "x").wire().replace(b'{"reasons":["x"]}', details)
    store.write(batch_of("results", FakeRecord(forged)))
    store.write(scores_batch(gate("good", "private")))

    assert overview(store, DAY).coverage.rejected_because == {"private": 1}
    found = session(store, "forged")
    assert found is not None
    assert len(found.results) == 1


def test_a_session_with_a_document_of_great_depth_is_shown_with_its_text(store: Store) -> None:
    deep = b"[" * 900 + b"]" * 900
    document = orjson.dumps(session_document("deep") | {"traces": [0]}).replace(
        b'"traces":[0]', b'"traces":[' + deep + b"]"
    )
    store.write(batch_of("sessions", FakeRecord(document)))

    found = session(store, "deep")

    assert found is not None
    assert found.segments[0]["document"] == document.decode()


def test_freshness_is_the_time_from_the_last_event_to_the_score(store: Store) -> None:
    lags_s = [*[0.1] * 98, 2.0, 60.0]
    store.write(
        scores_batch(*(make_score(f"s{n}", evaluated_at=NOW + timedelta(seconds=lag)) for n, lag in enumerate(lags_s)))
    )

    found = overview(store, DAY).freshness

    assert 0.1 <= (found.p50_s or 0) < 0.11
    assert 0.1 <= (found.p95_s or 0) < 0.11
    assert 2.0 <= (found.p99_s or 0) < 2.2


def test_freshness_is_that_of_the_selected_results_without_late_revisions_and_retries(store: Store) -> None:
    late = NOW + timedelta(hours=3)
    store.write(
        scores_batch(
            *(make_score(f"s{n}", evaluated_at=NOW + timedelta(seconds=1.234), app_name="shop") for n in range(20)),
            *(make_score(f"o{n}", evaluated_at=NOW + timedelta(seconds=9), app_name="other") for n in range(20)),
            make_score("late", revision=1, evaluated_at=late, app_name="shop"),
            make_score("again", attempt=1, evaluated_at=late, app_name="shop"),
        )
    )

    found = overview(store, Selection(DAY.since, DAY.until, {"app_name": "shop"})).freshness

    assert (found.p50_s, found.p95_s, found.p99_s) == (1.234, 1.234, 1.234)
    assert overview(store, Selection(DAY.since, DAY.until, {"app_name": "none"})).freshness.p50_s is None


def test_the_canary_is_left_out_unless_it_is_asked_for(store: Store) -> None:
    store.write(scores_batch(make_score("agent"), make_score("canary", app_name="traceweir-canary")))
    document = session_document("canary", last_record_at=NOW.isoformat(), events=[
        {"type": "invocation.started", "invocation_id": "i", "session_id": "canary", "event_id": "e", "app_name": "traceweir-canary"}
    ])  # fmt: skip
    store.write(batch_of("sessions", FakeRecord(orjson.dumps(document))))

    found = overview(store, DAY)
    asked = overview(store, Selection(DAY.since, DAY.until, {"app_name": "traceweir-canary"}))

    assert ([each.results for each in found.metrics], found.coverage.sessions) == ([1], 0)
    assert ([each.results for each in asked.metrics], asked.coverage.sessions) == ([1], 1)
    assert dimension_values(store, DAY).dimensions["app_name"] == []


def test_a_value_is_offered_if_results_with_the_other_filters_have_it(store: Store) -> None:
    pairs = (("shop", "clerk", "safety_v1"), ("rail", "driver", "gate"))
    store.write(
        scores_batch(
            *(make_score(agent, app_name=app, agent_name=agent, metric=metric) for app, agent, metric in pairs)
        )
    )

    of_shop = dimension_values(store, Selection(DAY.since, DAY.until, {"app_name": "shop"}))
    of_gate = dimension_values(store, Selection(DAY.since, DAY.until, metric="gate"))

    assert (of_shop.dimensions["app_name"], of_shop.dimensions["agent_name"]) == (["rail", "shop"], ["clerk"])
    assert of_shop.metrics == ["safety_v1"]
    assert (of_gate.dimensions["app_name"], of_gate.metrics) == (["rail"], ["gate", "safety_v1"])


def test_the_cost_of_judges_is_there_by_day_and_metric_with_replaced_results(store: Store) -> None:
    week = Selection(NOW - timedelta(days=3), NOW + timedelta(hours=1))
    first = make_score("a", "safety_v1", cost={"usd": 0.25, "input_tokens": 10}, occurred_at=NOW - timedelta(days=1))
    second = make_score("b", "safety_v1", cost={"usd": 0.5, "output_tokens": 4})
    store.write(scores_batch(first, second, make_score("free")))
    store.write(scores_batch(first.model_copy(update={"revision": 1}), offset=3))

    found = [(each.begins_at.day, each.metric, each.usd, each.input_tokens) for each in overview(store, week).costs]

    assert found == [(30, "safety_v1", 0.5, 20), (31, "safety_v1", 0.5, 0)]


def test_sessions_are_listed_newest_first_with_a_summary_of_their_scores(store: Store) -> None:
    for number, name in enumerate("ab"):
        closed_at = (NOW + timedelta(minutes=number)).isoformat()
        document = orjson.dumps(session_document(name, last_record_at=closed_at))
        store.write(batch_of("sessions", FakeRecord(document)))
    store.write(
        scores_batch(
            make_score("a", value=1.0),
            make_score("a", "completeness", 0.1),
            make_score("a", "safety_v1", None),
            make_score("a", "trace_value", 0.4, level="trace", trace_id="t"),
            gate("a", "below_threshold"),
        )
    )

    newest, oldest = sessions(store, DAY)

    assert (newest.session_id, oldest.session_id) == ("b", "a")
    assert (oldest.passed, oldest.failed, oldest.not_evaluated) == (1, 1, 1)
    assert (oldest.trace_value, oldest.gate, newest.gate) == (0.4, "rejected", None)
    assert [each.session_id for each in sessions(store, DAY, limit=1)] == ["b"]


def test_sessions_are_filtered_by_the_status_and_the_reason_of_a_result(store: Store) -> None:
    store.write(
        scores_batch(make_score("failed", value=0.1), make_score("none", value=None), gate("rejected", "private"))
    )

    assert [each.session_id for each in sessions(store, DAY, status="FAILED")] == ["failed"]
    assert [each.session_id for each in sessions(store, DAY, reason="missing_input")] == ["none"]
    gates = Selection(DAY.since, DAY.until, metric="gate")
    assert [each.session_id for each in sessions(store, gates, status="FAILED")] == ["rejected"]


def test_a_session_with_many_results_hides_no_other_session_of_a_filter(store: Store) -> None:
    store.write(scores_batch(make_score("early", value=0.1, occurred_at=NOW - timedelta(hours=11))))
    store.write(scores_batch(*(make_score("many", f"metric_{n}", 0.1) for n in range(50))))

    assert [each.session_id for each in sessions(store, DAY, status="FAILED", limit=2)] == ["many", "early"]
    assert [each.failed for each in sessions(store, DAY, status="FAILED", limit=2)] == [50, 1]


def test_a_session_has_its_document_its_results_and_those_that_were_replaced(store: Store) -> None:
    store.write(batch_of("sessions", FakeRecord(orjson.dumps(session_document("a")))))
    store.write(scores_batch(make_score("a", value=0.1, details={"part": 1}), make_score("a", value=0.9, revision=1)))

    found = session(store, "a")

    assert found is not None
    assert [(each["value"], each["revision"]) for each in found.results] == [(0.9, 1)]
    assert [(each["value"], each["details"]) for each in found.replaced_results] == [(0.1, {"part": 1})]
    (segment,) = found.segments
    assert segment["document"]["session_id"] == "a"  # type: ignore[index, call-overload]
    assert found.results[0]["occurred_at"] == NOW.isoformat()
    assert session(store, "b") is None


def test_what_was_not_scored_has_the_latest_example_and_what_to_do(store: Store) -> None:
    later = NOW + timedelta(minutes=1)
    store.write(
        scores_batch(
            make_score("a", value=None),
            make_score("b", value=None, occurred_at=later, rationale="no reference"),
            make_score("c", value=None, not_evaluated_because="budget"),
        )
    )

    most, least = not_scored(store, DAY)

    assert (most.reason, most.results, most.session_id, most.rationale) == ("missing_input", 2, "b", "no reference")
    assert (least.reason, least.what_to_do) == ("budget", WHAT_TO_DO["budget"])
    assert set(WHAT_TO_DO) == set(REASONS)


def test_what_was_not_scored_is_counted_by_the_cause_where_there_is_one(store: Store) -> None:
    truncated: dict[str, Any] = {"value": None, "not_evaluated_because": "error", "cause": "judge_truncated"}
    store.write(
        scores_batch(
            make_score("a", **truncated),
            make_score("b", **truncated),
            make_score("c", **truncated | {"cause": "judge_refused"}),
            make_score("d", **truncated | {"cause": None}),
        )
    )

    found = not_scored(store, DAY)

    assert [(each.reason, each.cause, each.results) for each in found if each.cause == "judge_truncated"] == [
        ("error", "judge_truncated", 2)
    ]
    assert {(each.cause, each.results) for each in found[1:]} == {("judge_refused", 1), (None, 1)}
    assert found[0].what_to_do == AFTER_A_CAUSE["judge_truncated"]
    assert {each.what_to_do for each in found if each.cause is None} == {WHAT_TO_DO["error"]}
    assert set(AFTER_A_CAUSE) == set(get_args(Cause))


def test_dead_letters_are_counted_and_listed_with_the_command_that_replays_them(store: Store) -> None:
    letters = [
        DeadLetter(reason, "detail", "assemble", "traceweir.traces", 0, 1, None, b"x")
        for reason in ("late", "late", "empty")
    ]
    records = [FakeRecord(b"x", n, None, letter.wire_headers()) for n, letter in enumerate(letters)]
    store.write(batch_of("dead-letters", *records, FakeRecord(None, 3, None, [(REPLAYED, b"0:1")])))

    found = dead_letters(store, DAY)

    assert found.by_reason == {"late": 2, "empty": 1}
    assert {each.letter_id: each.replayed for each in found.latest} == {"0:0": False, "0:1": True, "0:2": False}
    assert (
        found.replay_command == "traceweir dlq replay --since 2026-01-31T00:00:00.000Z --until 2026-02-01T00:00:00.000Z"
    )


def test_the_command_that_replays_dead_letters_selects_those_that_are_listed(store: Store) -> None:
    since, until = NOW + timedelta(microseconds=1), datetime.max.replace(tzinfo=UTC)

    assert dead_letters(store, Selection(since, until)).replay_command == (
        "traceweir dlq replay --since 2026-01-31T12:00:00.001Z --until 9999-12-31T23:59:59.999Z"
    )


def test_a_long_session_is_answered_with_its_last_part_and_says_how_much_is_left_out(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_SEGMENTS", 2)
    monkeypatch.setattr(sessions_module, "MAX_RESULTS", 3)
    scores = [make_score("long", value=0.1, segment=n, result_id=f"result-{n}") for n in range(5)]
    store.write(scores_batch(*scores))
    store.write(scores_batch(*(score.model_copy(update={"revision": 1}) for score in scores[:4]), offset=5))
    documents = [session_document("long", segment=n) for n in range(3)]
    store.write(batch_of("sessions", *(FakeRecord(orjson.dumps(each), n) for n, each in enumerate(documents))))

    found = session(store, "long")

    assert found is not None
    assert ([each["segment"] for each in found.segments], found.segments_left_out) == ([1, 2], 1)
    assert ([each["segment"] for each in found.results], found.results_left_out) == ([2, 3, 4], 2)
    assert ([each["segment"] for each in found.replaced_results], found.replaced_results_left_out) == ([1, 2, 3], 1)


def test_a_session_at_the_limit_leaves_nothing_out(store: DuckDBStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "MAX_RESULTS", 2)
    store.write(scores_batch(*(make_score("s", value=0.1, segment=n, result_id=f"result-{n}") for n in range(2))))

    found = session(store, "s")

    assert found is not None
    assert (len(found.results), found.results_left_out) == (2, 0)


def listed(store: DuckDBStore, limit: int, **conditions: Any) -> list[tuple[str, int]]:
    """Returns the sessions of all pages, in their order."""
    found: list[tuple[str, int]] = []
    after: Position | None = None
    while True:
        part = session_page(store, DAY, Conditions(**conditions), limit=limit, after=after)
        found += [(each.session_id, each.segment) for each in part.sessions]
        if part.next is None:
            return found
        after = Position.parse(str(part.next))


PAGED_BY: list[dict[str, Any]] = [
    {},
    {"status": "FAILED"},
    {"text": "s"},
    {"text": "s", "status": "FAILED"},
    {"rationale": "WORD"},
    {"rationale": "word", "text": "s"},
]
"""Conditions of which each is met by all sessions of the next test."""


# Pages of one session end at every place; there are thirty of them, so two conditions stand for all.
@pytest.mark.parametrize(
    ("limit", "conditions"),
    [(1, PAGED_BY[0]), (1, PAGED_BY[-1]), *((limit, each) for limit in (7, 40) for each in PAGED_BY)],
)
def test_pages_of_sessions_have_each_session_once_whatever_their_length(
    limit: int, conditions: dict[str, Any], store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_list, "MAX_SEARCHED", 5)
    chance = random.Random(3)
    places = [(f"s{n % 13}", n // 13) for n in range(30)]  # segments of a session, and several sessions at one time
    times = {place: NOW - timedelta(minutes=chance.randrange(9) * 30) for place in places}
    scores = [
        make_score(name, value=0.1, segment=segment, result_id=f"{name}-{segment}", occurred_at=times[name, segment])
        for name, segment in places
    ]
    store.write(scores_batch(*scores))
    documents = [
        session_document(name, segment=segment, last_record_at=times[name, segment].isoformat())
        for name, segment in places
    ]
    store.write(batch_of("sessions", *(FakeRecord(orjson.dumps(each), n) for n, each in enumerate(documents))))

    assert listed(store, limit, **conditions) == sorted(places, key=lambda place: (-times[place].timestamp(), *place))


def test_a_session_with_results_of_several_times_is_listed_once(store: DuckDBStore) -> None:
    scores = [make_score(f"s{n}", value=0.1, occurred_at=NOW - timedelta(minutes=n)) for n in range(6)]
    older = make_score("s0", "completeness", 0.1, occurred_at=NOW - timedelta(minutes=4, seconds=30))
    store.write(scores_batch(*scores, older))

    assert listed(store, 2, status="FAILED") == [(f"s{n}", 0) for n in range(6)]


@pytest.mark.parametrize(
    "text",
    ["", "x", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z,0,", "2026-01-31T12:00:00,0,a", "2026-01-31T12:00:00Z,-1,a",
     "2026-01-31T12:00:00Z,9223372036854775808,a", "0001-01-01T00:00:00+14:00,0,a"],
)  # fmt: skip
def test_a_text_that_is_no_place_in_the_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a place in the list"):
        Position.parse(text)


def test_the_spending_of_a_day_has_replaced_results_and_no_verdict_from_the_cache(store: DuckDBStore) -> None:
    paid = {"input_tokens": 100, "output_tokens": 10, "usd": 0.25}
    today = NOW.replace(hour=0, minute=0)
    first = make_score("a", cost=paid, evaluated_at=today)
    store.write(
        scores_batch(
            first,
            make_score("b", cost=paid | {"cached": True}, evaluated_at=today),
            make_score("c", cost=paid, evaluated_at=today - timedelta(microseconds=1)),
            make_score("d", cost=paid, evaluated_at=today + timedelta(hours=23, minutes=59)),
        )
    )
    store.write(scores_batch(first.model_copy(update={"revision": 1}), offset=4))

    found = judge_spending(store, NOW, Budget(usd_per_day=0.6, tokens_per_day=10_000))

    assert (found.since, found.until) == (today, today + timedelta(days=1))
    assert (found.tokens, found.usd, found.tokens_left, found.usd_left) == (330, 0.75, 9_670, 0.0)
    assert judge_spending(store, NOW, None).usd_left is None


def test_what_is_wrong_now_is_counted_without_what_was_replayed_or_is_long_ago(store: Store) -> None:
    now = NOW + timedelta(minutes=30)
    letters = [
        DeadLetter(reason, "", "assemble", "traceweir.traces", 1, number, None, b"x")
        for number, reason in enumerate(("missed", "not_json", "late", "not_json"))
    ]
    letters.append(DeadLetter("given_up", "", "export", "traceweir.results", 1, 9, b"s", b"{}", group="hook"))
    records = [FakeRecord(b"x", number, None, letter.wire_headers()) for number, letter in enumerate(letters)]
    store.write(batch_of("dead-letters", *records, FakeRecord(None, 5, None, [(REPLAYED, b"0:1")])))
    store.write(
        scores_batch(
            make_score("a"),
            make_score("b", value=None, not_evaluated_because="error"),
            make_score("c", value=None, not_evaluated_because="missing_input"),
            make_score("d", value=None, not_evaluated_because="error", occurred_at=NOW - timedelta(hours=1)),
        )
    )
    assert standing(store, now) == Standing(gaps=1, waiting_letters=3, results=3, failed={"error": 1})
    assert standing(store, now + timedelta(days=2)) == Standing(gaps=0, waiting_letters=3, results=0, failed={})


def test_what_to_do_about_a_missing_input_names_a_command_and_not_only_the_rationale() -> None:
    assert "`traceweir references push FILE`" in WHAT_TO_DO["missing_input"]
    assert "`traceweir sessions --from-kafka --session ID`" in AFTER_A_CAUSE["not_recorded"]

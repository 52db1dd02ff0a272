"""Tests what a rule says about planted changes in stored scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.schemas.score import Score
from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.tools.alerts.replay import Replayed, replay
from traceweir.streams.tools.alerts.watched_scores import ScoreSorter, SortedScores, minutes_of

START = datetime(2026, 11, 1, tzinfo=UTC)
CHANGE = START + timedelta(days=9)


def score(number: int, moment: datetime, passed: bool | None, **changes: Any) -> Score:
    """Returns a score of a session of its own; without a value for None."""
    fields = {
        "result_id": f"result-{number}",
        "revision": 0,
        "session_id": f"s{number}",
        "segment": 0,
        "level": "session",
        "metric": "helpful",
        "value": None if passed is None else float(passed),
        "threshold": 0.5,
        "status": "NOT_EVALUATED" if passed is None else "PASSED" if passed else "FAILED",
        "not_evaluated_because": "error" if passed is None else None,
        "cause": "judge_unavailable" if passed is None else None,
        "judge": None if passed is None else "model-a",
        "scorer_version": "1",
        "config_digest": "d",
        "occurred_at": moment,
        "evaluated_at": moment,
    }
    return Score.model_validate(fields | changes)


def story(rate: Callable[[datetime], float], days: int = 12, an_hour: int = 12, **changes: Any) -> Iterator[Score]:
    """Returns the scores of days with a pass rate at each moment; a new version comes with the change."""
    random = np.random.default_rng(1)
    for number in range(days * 24 * an_hour):
        moment = START + timedelta(hours=number / an_hour)
        version = "2" if moment >= CHANGE else "1"
        passed = bool(random.random() < rate(moment))
        yield score(number, moment, passed, **({"agent_version": version} | changes))


def dropped(moment: datetime) -> float:
    return 0.9 if moment < CHANGE else 0.6


def sorted_scores(scores: Iterable[Score], rule: AlertRule) -> SortedScores:
    sorter = ScoreSorter(rule)
    for each in scores:
        sorter.add(each)
    return sorter.sorted()


def said(scores: Iterable[Score], rule: AlertRule = DEFAULT_ALERT_RULE) -> Replayed:
    return replay(sorted_scores(scores, rule), rule)


@pytest.mark.slow
def test_a_planted_drop_is_found_with_its_time_size_sessions_and_suspect() -> None:
    (alert,) = said(story(dropped)).alerts
    assert alert.state == "raised"
    assert CHANGE < alert.since < CHANGE + timedelta(hours=12)
    assert alert.onset.earliest <= CHANGE <= alert.onset.latest
    assert alert.effect.low <= -0.3 <= alert.effect.high < 0
    assert alert.sessions_since == pytest.approx((alert.since - alert.onset.at) / timedelta(hours=1) * 12, abs=1)
    assert len(alert.sessions) == 10
    assert [(each.field, each.value) for each in alert.suspects] == [("agent_version", "2")]


@pytest.mark.slow
def test_without_a_change_nothing_is_said_and_the_stream_says_what_it_could_find() -> None:
    found = said(story(lambda _: 0.9))
    assert found.alerts == []
    (report,) = found.streams
    assert report.state == "watched"
    assert report.sessions_a_day == pytest.approx(288, rel=0.01)
    assert report.findable_in_a_day is not None
    assert 0.05 < report.findable_in_a_day < 0.3


@pytest.mark.slow
def test_an_alarm_is_resolved_when_the_rate_is_back() -> None:
    back = CHANGE + timedelta(days=1)
    (alert,) = said(story(lambda moment: dropped(moment) if moment < back else 0.9, days=16)).alerts
    assert alert.state == "resolved"
    assert alert.occurred_at > back


@pytest.mark.slow
def test_a_rise_of_unevaluated_scores_by_cause_is_found_and_another_cause_is_not() -> None:
    scores = [each if each.value else score(place, each.occurred_at, None) for place, each in enumerate(story(dropped))]
    (alert,) = said(scores, AlertRule(id="r", what="not_evaluated", cause="judge_unavailable")).alerts
    assert alert.effect.low <= 0.3 <= alert.effect.high
    assert alert.effect.estimate > 0.2
    assert said(scores, AlertRule(id="r", what="not_evaluated", cause="judge_refused")).alerts == []


@pytest.mark.slow
def test_a_mean_is_watched_and_values_off_the_scale_are_counted() -> None:
    rule = AlertRule(id="r", what="mean", metric="helpful", by=("app_name",))
    scores = [
        each.model_copy(update={"value": 0.5 + (each.value or 0) / 2, "threshold": None, "app_name": "shop"})
        for each in story(dropped)
    ]
    scores.append(scores[0].model_copy(update={"value": 3.0, "result_id": "x"}))
    found = sorted_scores(scores, rule)
    assert found.unused == {"off the scale: a mean is watched of values from 0 to 1": 1}
    (alert,) = replay(found, rule).alerts
    assert alert.stream.slice == {"app_name": "shop"}
    assert alert.effect.low <= -0.15 <= alert.effect.high


def test_the_first_attempt_with_a_value_counts_in_any_order() -> None:
    later = [
        score(1, START, False, revision=1),
        score(1, START, True, attempt=1),
        score(1, START, None),
        score(1, START, False, attempt=2),
    ]
    for scores in (later, later[::-1]):
        found = sorted_scores(scores, DEFAULT_ALERT_RULE)
        ((kept,),) = found.streams.values()
        assert kept.value == 1.0
        assert found.unused == {"an earlier revision or attempt counts": 2, "not evaluated": 1}


def test_scores_of_a_canary_of_the_gate_and_without_a_threshold_do_not_count() -> None:
    scores = [
        score(1, START, True, app_name=CANARY_APP),
        score(2, START, True, metric="gate", threshold=None),
        score(3, START, True, threshold=None),
    ]
    found = sorted_scores(scores, DEFAULT_ALERT_RULE)
    assert found.streams == {}
    assert found.unused == {"without a threshold, so it has no verdict": 1}


def test_a_session_counts_once_a_day_with_the_mean_of_its_first_minute() -> None:
    fields = {"session_id": "s", "level": "invocation"}
    scores = [
        score(number, START + timedelta(minutes=minute), passed, invocation_id=str(number), **fields)
        for number, (minute, passed) in enumerate([(0, True), (0, False), (5, False), (1_440, True)])
    ]
    ((kept),) = sorted_scores(scores, DEFAULT_ALERT_RULE).streams.values()
    assert [each.values.tolist() for each in minutes_of(kept) if len(each.values)] == [[0.5], [1.0]]


def test_streams_are_numbered_by_their_first_score_and_split_by_the_slice() -> None:
    rule = AlertRule(id="r", by=("app_name", "labels.team"))
    scores = [
        score(1, START + timedelta(hours=1), True, app_name="b"),
        score(2, START, True, app_name="c", labels={"team": "x"}),
        score(3, START + timedelta(hours=2), True, app_name="a"),
    ]
    names = list(sorted_scores(scores, rule).streams)
    assert [dict(name.slice) for name in names] == [
        {"app_name": "c", "labels.team": "x"},
        {"app_name": "b", "labels.team": ""},
        {"app_name": "a", "labels.team": ""},
    ]


def test_a_cause_belongs_to_unevaluated_scores() -> None:
    with pytest.raises(ValueError, match="only a rule of not_evaluated has a cause"):
        AlertRule(id="r", cause="too_long")

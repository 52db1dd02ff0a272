"""Tests rules of shares that need no threshold of a metric: beyond a limit, and of a category."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.support.alert_story import START, score

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import Score
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.replay import Replayed, replay
from traceweir.streams.tools.alerts.rule_stream import RuleStream
from traceweir.streams.tools.alerts.state_rows import LogPlace
from traceweir.streams.tools.alerts.usual_limit import SAMPLE, UsualLimit, usual_limit
from traceweir.streams.tools.alerts.watched_scores import Minute, ScoreSorter, StreamName

DAY = 1_440
ABOVE = AlertRule(id="r", what="above_limit", baseline_days=2)
NAME = StreamName("latency", "session", ())
CHANGE = 3 * DAY


def numbers(factor: Callable[[int], float], days: int = 4, **changes: Any) -> Iterator[Score]:
    """Returns scores with heavy-tailed values without a threshold, one in three minutes, and the factor at each minute."""
    random = np.random.default_rng(1)
    for number, minute in enumerate(range(0, days * DAY, 3)):
        value = float((1 + random.pareto(1.2)) * factor(minute))
        scored = score(number, minute, True, metric="latency", **changes)
        yield scored.model_copy(update={"value": value, "threshold": None})


def said(scores: Iterator[Score], rule: AlertRule) -> Replayed:
    sorter = ScoreSorter(rule)
    for each in scores:
        sorter.add(each)
    return replay(sorter.sorted(), rule)


@pytest.mark.slow
def test_a_growth_of_numbers_is_found_above_a_limit_that_the_stream_has_learnt() -> None:
    (alert,) = said(numbers(lambda minute: 3 if minute >= CHANGE else 1), ABOVE).alerts
    assert alert.limit == pytest.approx(10 ** (1 / 1.2), rel=0.25)
    assert alert.baseline == pytest.approx(0.1, abs=0.04)
    assert alert.onset.earliest <= START + timedelta(minutes=CHANGE) <= alert.onset.latest
    assert alert.effect.low <= 0.27 <= alert.effect.high
    assert alert.effect.low > 0
    assert alert.what == "above_limit"


@pytest.mark.slow
def test_without_a_change_nothing_is_said_and_the_list_has_the_limit() -> None:
    found = said(numbers(lambda _: 1), ABOVE)
    assert found.alerts == []
    (report,) = found.streams
    assert report.state == "watched"
    assert report.limit is not None
    assert report.baseline == pytest.approx(0.1, abs=0.04)


@pytest.mark.slow
def test_the_share_is_learnt_from_other_sessions_than_the_limit() -> None:
    (report,) = said(numbers(lambda minute: 10 if minute >= DAY else 1, days=3), ABOVE).streams
    assert report.limit == pytest.approx(10 ** (1 / 1.2), rel=0.25)
    # Of the first half the limit had left a tenth above it.
    assert report.baseline is not None
    assert report.baseline > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("change", [0.3, 3.0])
def test_a_given_limit_is_compared_with_from_the_first_session(change: float) -> None:
    what = "below_limit" if change < 1 else "above_limit"
    rule = AlertRule(id="r", what=what, limit=2.0, baseline_days=2)
    (alert,) = said(numbers(lambda minute: change if minute >= CHANGE else 1), rule).alerts
    assert alert.limit == 2.0
    usual = 2**-1.2
    assert alert.baseline == pytest.approx(usual if change > 1 else 1 - usual, abs=0.05)
    assert alert.effect.estimate > 0.1


@pytest.mark.slow
def test_the_worst_sessions_have_the_values_farthest_beyond_the_limit() -> None:
    scores = [*numbers(lambda minute: 3 if minute >= CHANGE else 1)]
    (alert,) = said(iter(scores), ABOVE).alerts
    since = [each for each in scores if alert.onset.at <= each.occurred_at <= alert.since]
    worst = sorted(since, key=lambda each: -(each.value or 0))[:10]
    assert list(alert.sessions) == [each.session_id for each in worst]


@pytest.mark.slow
def test_a_state_goes_on_where_it_was_written_while_a_limit_is_learnt() -> None:
    random = np.random.default_rng(2)
    stream = RuleStream(1, ABOVE, NAME)
    states = []
    for minute in range(0, 4 * DAY, 20):
        values = random.pareto(1.2, 5) * (1 if minute < CHANGE else 9)
        names = [f"{minute}-{place}" for place in range(5)]
        restored = RuleStream.from_bytes(stream.to_bytes(), ABOVE)
        step = stream.step(Minute(minute, names, values, ()))
        assert restored.step(Minute(minute, names[::-1], values[::-1], ())) == step
        states.append(stream.to_bytes())
        assert restored.to_bytes() == states[-1]
    assert stream.alert is not None
    assert max(len(each) for each in states) < 30_000


@pytest.mark.slow
def test_the_sample_of_a_limit_is_bounded_and_does_not_depend_on_the_order() -> None:
    values = np.arange(2_000.0)
    names = [str(each) for each in range(2_000)]
    limit = UsualLimit()
    limit.take(0, names, values, 1, is_upper=True)
    for order in (slice(None), slice(None, None, -1)):
        other = UsualLimit()
        for place in range(2_000)[order]:
            other.take(0, names[place : place + 1], values[place : place + 1], 1, is_upper=True)
        assert other == limit
    assert len(limit.sample) == SAMPLE
    assert usual_limit([value for _, value in limit.sample], is_upper=True) == pytest.approx(1_800, abs=80)


@pytest.mark.slow
def test_an_accepted_level_has_a_limit_of_its_own() -> None:
    watch = AlertWatch()
    watch.put_rule("r", ABOVE)
    accepted = False
    for offset, each in enumerate(numbers(lambda minute: 5 if minute >= CHANGE else 1, days=7)):
        watch.add(0, offset, each)
        watch.tick(0.0, ())
        if watch.raised and not accepted:
            assert watch.accept(watch.raised[0].alert_id)
            accepted = True
    (report,) = watch.reports()["r"]
    assert accepted
    assert report.limit == pytest.approx(5 * 10 ** (1 / 1.2), rel=0.25)
    assert report.baseline == pytest.approx(0.1, abs=0.05)
    assert watch.raised == []
    (raised, resolved) = watch.cut(LogPlace()).alerts
    assert (raised.state, resolved.state) == ("raised", "resolved")


def categories(direction: str, **changes: Any) -> Iterator[Score]:
    random = np.random.default_rng(3)
    for number, minute in enumerate(range(0, 3 * DAY, 2)):
        share = 0.3 if (minute >= 2 * DAY) == (direction == "rise") else 0.05
        category = "refund" if random.random() < share else "other"
        yield score(number, minute, True, category=category, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["rise", "drop"])
def test_a_change_of_the_share_of_a_category_is_found_in_its_direction_alone(direction: str) -> None:
    fields: dict[str, Any] = {"what": "category", "category": "refund", "baseline_days": 1}
    (alert,) = said(categories(direction), AlertRule(id="r", direction=direction, **fields)).alerts
    assert alert.category == "refund"
    sign = 1 if direction == "rise" else -1
    assert alert.effect.low <= 0.25 * sign <= alert.effect.high
    assert alert.effect.estimate * sign > 0.1
    other = "drop" if direction == "rise" else "rise"
    assert said(categories(direction), AlertRule(id="r", direction=other, **fields)).alerts == []


def test_a_score_without_a_category_does_not_count() -> None:
    sorter = ScoreSorter(AlertRule(id="r", what="category", category="refund", direction="rise"))
    sorter.add(score(1, 0, True))
    sorter.add(score(2, 0, None))
    assert sorter.sorted().unused == {"not evaluated": 1, "without a category": 1}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"limit": 3}, "limit 3 with what pass_rate; only a rule of above_limit or below_limit has a limit"),
        ({"category": "x"}, "category with what pass_rate; only a rule with the what category has one"),
        ({"what": "category", "direction": "drop"}, "what category without category; name the category"),
        ({"what": "category", "category": "x"}, 'what category without direction; state whether a "drop" or a "rise"'),
        ({"what": "above_limit", "limit": "inf"}, "limit: Input should be a finite number"),
    ],
)
def test_a_rule_that_lacks_a_part_or_has_one_too_many_is_refused(rule: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("limit: Input", "Input")):
        AlertRule.model_validate({"id": "r", **rule})

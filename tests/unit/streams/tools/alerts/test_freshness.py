"""Tests that a stream whose sessions stop coming is found, by a clock that stands still with the topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import count

import numpy as np
import pytest
from tests.support.alert_story import START, replayed, score

from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import Score
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.arrivals import usual_interval
from traceweir.streams.tools.alerts.open_minutes import QUIET_S
from traceweir.streams.tools.alerts.replay import replay
from traceweir.streams.tools.alerts.rule_stream import StreamReport
from traceweir.streams.tools.alerts.state_rows import LogPlace
from traceweir.streams.tools.alerts.watched_scores import ScoreSorter

DAY = 1_440
SLOTS = np.arange(14 * 288)
NINE_TO_FIVE = (SLOTS // 288 % 7 < 2) | (SLOTS // 288 % 7 > 3)
NINE_TO_FIVE &= (SLOTS // 12 % 24 >= 9) & (SLOTS // 12 % 24 < 17)
RULE = AlertRule(id="r", what="freshness", by=("app_name",), baseline_days=2, metric="helpful")
STOP = 5 * DAY


def arriving(rate: Callable[[int], float], days: int, app: str = "shop", seed: int = 1) -> Iterator[Score]:
    """Returns a score of each session that comes, with a mean number in a minute at each minute."""
    random = np.random.default_rng(seed)
    for minute in range(days * DAY):
        for place in range(int(random.poisson(rate(minute)))):
            # The ids of one app and of the other are not the same.
            number = (minute * 10 + place) * 2 + (app != "shop")
            yield score(number, minute, True, app_name=app)


def with_others(scores: Iterator[Score], days: int) -> list[Score]:
    """Returns the scores with those of another metric, which the rule does not use, one in three minutes."""
    others = (score(10**7 + minute, minute, True, metric="other") for minute in range(0, days * DAY, 3))
    return sorted([*scores, *others], key=lambda each: each.occurred_at)


def reported(scores: Sequence[Score], rule: AlertRule = RULE) -> list[StreamReport]:
    sorter = ScoreSorter(rule)
    for each in scores:
        sorter.add(each)
    return list(replay(sorter.sorted(), rule).streams)


@pytest.mark.slow
def test_a_stream_that_stops_is_found_and_is_resolved_when_its_sessions_come_again() -> None:
    back = STOP + DAY
    scores = with_others(arriving(lambda minute: 0.2 * (not STOP <= minute < back), 7), 7)
    (alert,) = replayed(scores, RULE).values()
    assert alert.what == "freshness"
    assert alert.interval_minutes in (15, 20)
    assert alert.baseline > 0.94
    assert START + timedelta(minutes=STOP) < alert.since < START + timedelta(minutes=STOP + 180)
    assert alert.onset.earliest <= START + timedelta(minutes=STOP) <= alert.onset.latest
    assert alert.effect.high <= -0.02
    assert alert.effect.low <= -0.95
    assert (alert.verdict, alert.sessions) == ("unknown", ())
    assert alert.state == "resolved"
    assert START + timedelta(minutes=back) < alert.occurred_at < START + timedelta(minutes=back + 720)


@pytest.mark.slow
def test_a_stream_that_goes_on_is_silent_and_nights_are_learnt() -> None:
    def in_the_day(minute: int) -> float:
        return 0.5 * (minute % DAY >= 480)

    rule = RULE.model_copy(update={"baseline_days": 8.0})
    assert replayed(with_others(arriving(in_the_day, 12), 12), rule) == {}
    (report,) = reported(with_others(arriving(in_the_day, 12), 12), rule)
    assert report.state == "watched"
    assert report.rhythm
    assert report.interval_minutes == 10


@pytest.mark.slow
def test_time_stands_still_with_the_topic() -> None:
    scores = [
        each
        for each in with_others(arriving(lambda _: 0.2, 8), 8)
        if not STOP <= (each.occurred_at - START) / timedelta(minutes=1) < STOP + DAY
    ]
    assert replayed(scores, RULE) == {}


def test_a_stream_with_too_few_sessions_is_not_watched_and_says_so() -> None:
    scores = [score(day, day * DAY + 60, True, app_name="shop") for day in range(0, 20, 3)]
    (report,) = reported(with_others(iter(scores), 20))
    assert report.state == "sparse"
    assert report.interval_minutes is None


@pytest.mark.slow
def test_a_watch_that_starts_again_at_any_time_says_what_a_replay_says() -> None:
    scores = with_others(arriving(lambda minute: 0.2 * (minute < STOP or minute > STOP + 500), 7), 7)
    log = [scores[0::2], scores[1::2]]
    at = [0, 0]
    rows: dict[bytes, bytes] = {}
    alerts: list[Alert] = []
    watch = AlertWatch()
    watch.put_rule(RULE.id, RULE)
    for reads in count(1):
        left = [each for each in (0, 1) if at[each] < len(log[each])]
        if not left:
            break
        partition = min(left, key=lambda each: at[each])
        watch.add(partition, at[partition], log[partition][at[partition]])
        at[partition] += 1
        watch.tick(0.0, {0, 1})
        if reads % 101 == 0:
            cut = watch.cut(LogPlace(dict(enumerate(at))))
            alerts += cut.alerts
            rows = {key: row for key, row in (rows | dict(cut.rows)).items() if row is not None}
            watch = AlertWatch()
            # Open minutes are read again.
            at = [*watch.load(rows).results.values()]
    watch.tick(0.0, ())
    watch.tick(QUIET_S, ())
    alerts += watch.cut(LogPlace()).alerts
    assert {each.alert_id: each for each in alerts} == replayed(scores, RULE)
    assert [each.state for each in alerts] == ["raised", "resolved"]


@pytest.mark.slow
def test_a_minute_writes_only_the_streams_with_sessions_and_those_whose_interval_ends() -> None:
    watch = AlertWatch()
    watch.put_rule(RULE.id, RULE)
    for offset, each in enumerate(with_others(arriving(lambda minute: 0.2 * (minute < 3 * DAY), 3), 4)):
        watch.add(0, offset, each)
        watch.tick(0.0, {0})
        minute = (each.occurred_at - START) / timedelta(minutes=1)
        if minute == 3 * DAY + 300:
            watch.cut(LogPlace())
    # Within each interval of 15 minutes or more the row would have been written for each of them.
    (report,) = watch.reports()["r"]
    assert report.interval_minutes is not None
    written = 0
    for minute in range(4 * DAY, 4 * DAY + 300, 3):
        watch.add(0, 10**7 + minute, score(2 * 10**7 + minute, minute, True, metric="other"))
        watch.tick(0.0, {0})
        written += sum(key.startswith(b"stream/") for key, _ in watch.cut(LogPlace()).rows)
    assert 0 < written <= 300 // report.interval_minutes + 1


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        (np.ones(288, bool), 5),
        (np.arange(2 * 288) % 12 == 3, 60),
        (np.arange(4 * 288) % 288 == 100, 1_440),
        (np.arange(8 * 288) % 288 >= 200, 5),
        # Nine to five on workdays, the first day being a Thursday: 14 days tell weekends apart, and 7 do not.
        (NINE_TO_FIVE, 5),
        (NINE_TO_FIVE[: 7 * 288], None),
        (np.arange(4 * 288) == 1, None),
        (np.zeros(0, bool), None),
    ],
)
def test_the_interval_is_the_shortest_in_which_a_session_usually_comes(slots: np.ndarray, expected: int | None) -> None:
    assert usual_interval(slots, 0) == expected


def test_a_rise_of_freshness_is_refused() -> None:
    with pytest.raises(ValueError, match="sessions that come again are no alert"):
        AlertRule(id="r", what="freshness", direction="rise")

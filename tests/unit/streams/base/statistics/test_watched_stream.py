"""Tests the promise of alerts, what they say about a drop, and that a state goes on where it was written."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.watched_stream import DAY, Promise, StreamAlarm, WatchedStream

PROMISE = Promise(tolerated_drop=0.02, days_between_false_alarms=60, baseline_days=7)
WATCHED = 7 * DAY
pytestmark = pytest.mark.slow


def learnt(random: np.random.Generator, rate: float, sessions: int = 100, number: int = 1) -> WatchedStream:
    """Returns a stream whose baseline has this many sessions an hour."""
    stream = WatchedStream(number, PROMISE)
    for hour in range(7 * 24):
        assert stream.step(hour * 60, drawn(random, rate, sessions)) is None
    return stream


def drawn(random: np.random.Generator, rate: float, sessions: int) -> np.ndarray:
    return (random.random(sessions) < rate).astype(float)


def first_alarm(
    stream: WatchedStream, random: np.random.Generator, rate: float, begin: int, minutes: int
) -> StreamAlarm | None:
    for minute in range(begin, begin + minutes):
        if (said := stream.step(minute, drawn(random, rate, 2))) is not None:
            return said
    return None


def test_a_drop_is_found_with_its_time_and_size_inside_of_the_intervals() -> None:
    random = np.random.default_rng(3)
    stream = learnt(random, 0.9)
    assert first_alarm(stream, random, 0.9, WATCHED, DAY) is None
    said = first_alarm(stream, random, 0.8, WATCHED + DAY, DAY)
    assert said is not None
    assert said.state == "raised"
    assert said.change is not None
    assert said.change.earliest <= WATCHED + DAY <= said.change.latest
    # The drop was there for some time before the alarm, and the interval shows it.
    assert said.change.latest < said.at - 10
    assert said.effect is not None
    assert said.effect[1] <= -0.1 <= said.effect[2]


def test_an_alarm_is_resolved_when_the_rate_recovers_and_can_be_raised_again() -> None:
    random = np.random.default_rng(4)
    stream = learnt(random, 0.9)
    states = []
    for day, rate in enumerate((0.6, 0.9, 0.9, 0.9, 0.6)):
        for minute in range(WATCHED + day * DAY, WATCHED + (day + 1) * DAY):
            said = stream.step(minute, drawn(random, rate, 2))
            states += [(day, said.state)] if said else []
    assert [state for _, state in states] == ["raised", "resolved", "raised"]
    assert states[0][0] == 0
    assert states[2][0] == 4


def test_minutes_without_scores_are_no_evidence() -> None:
    random = np.random.default_rng(5)
    dense, sparse = learnt(random, 0.9), learnt(np.random.default_rng(5), 0.9)
    values = [drawn(random, 0.8, 2) for _ in range(400)]
    said = [place for place, each in enumerate(values) if dense.step(WATCHED + place, each)]
    later = [place for place, each in enumerate(values) if sparse.step(WATCHED + 50 * place, each)]
    # The hour of the day plays no part without a rhythm.
    assert said[:1] == later[:1] != []


def test_a_stream_that_nobody_uses_is_silent_for_years() -> None:
    stream = learnt(np.random.default_rng(6), 0.9)
    assert [stream.step(WATCHED + year * 365 * DAY, np.array([1.0])) for year in range(1, 30)] == [None] * 29


def test_a_state_goes_on_where_it_was_written_and_is_bounded() -> None:
    random = np.random.default_rng(7)
    stream = learnt(random, 0.9)
    for minute in range(WATCHED, WATCHED + 300):
        values = drawn(random, 0.85, 2)
        restored = WatchedStream.from_bytes(stream.to_bytes(), PROMISE)
        assert stream.step(minute, values) == restored.step(minute, values[::-1])
        assert stream.to_bytes() == restored.to_bytes()
    assert len(stream.to_bytes()) < 13_000


def test_a_later_stream_waits_longer_for_the_same_evidence() -> None:
    delays = []
    for number in (1, 1_000):
        random = np.random.default_rng(8)
        stream = learnt(random, 0.9, number=number)
        said = first_alarm(stream, random, 0.7, WATCHED, DAY)
        assert said is not None
        delays.append(said.at)
    assert delays[0] < delays[1]


def test_a_stream_learns_until_it_has_fifty_values() -> None:
    stream = WatchedStream(1, PROMISE)
    for day in range(49):
        stream.step(day * DAY, np.array([1.0]))
    assert stream.lines is None
    stream.step(50 * DAY, np.array([1.0]))
    stream.step(51 * DAY, np.array([0.0]))
    assert stream.lines is not None
    assert stream.baseline == (50, 1.0)


def test_a_daily_rhythm_is_no_drop() -> None:
    random = np.random.default_rng(9)
    stream = WatchedStream(1, PROMISE)
    for minute in range(0, 12 * DAY, 2):
        rate = 0.8 + 0.1 * np.sin(2 * np.pi * minute / DAY)
        assert stream.step(minute, drawn(random, rate, 5)) is None
    assert stream.lines is not None
    assert stream.lines.rhythm


@pytest.mark.parametrize(("days", "rings"), [(7, True), (14, False)])
def test_a_weekly_rhythm_is_no_drop_if_two_weeks_are_learnt(days: int, rings: bool) -> None:
    random = np.random.default_rng(12)
    promise = Promise(tolerated_drop=0.02, days_between_false_alarms=60, baseline_days=days)
    stream = WatchedStream(1, promise)
    # The baseline of 7 days is that of a calm week.
    weekends = [day % 7 in (2, 3) and (days == 14 or day >= 7) for day in range(21)]
    said = []
    for hour in range(21 * 24):
        values = drawn(random, 0.6 if weekends[hour // 24] else 0.9, 60)
        said.append(stream.step(hour * 60, values))
        if hour % 100 == 0:
            stream = WatchedStream.from_bytes(stream.to_bytes(), promise)
    assert any(said) == rings
    assert stream.lines is not None
    assert stream.lines.rhythm == (None if rings else "weekend")
    assert len(stream.to_bytes()) < 19_000


def test_an_hour_without_a_baseline_neither_resolves_an_alarm_nor_moves_its_onset() -> None:
    random = np.random.default_rng(11)
    stream = WatchedStream(1, PROMISE)
    for hour in range(7 * 24):
        if hour % 24 != 3:
            assert stream.step(hour * 60, drawn(random, 0.95 if hour % 24 < 12 else 0.7, 100)) is None
    assert stream.step(WATCHED + 2 * 60, drawn(random, 0.5, 4)) is None
    assert stream.lines is not None
    assert stream.lines.lowest[3] == 0
    assert stream.step(WATCHED + 3 * 60, np.array([1.0])) is None
    said = first_alarm(stream, random, 0.5, WATCHED + 4 * 60, 60)
    assert said is not None
    assert said.change is not None
    assert said.change.earliest <= WATCHED + 2 * 60
    assert stream.step(WATCHED + DAY + 3 * 60, np.array([1.0])) is None
    assert stream.is_raised


@pytest.mark.parametrize(("drop", "sessions"), [(0.1, 2_400), (0.3, 240)])
def test_the_drop_that_can_be_found_in_a_day_shrinks_with_the_sessions(drop: float, sessions: int) -> None:
    stream = learnt(np.random.default_rng(10), 0.9)
    assert stream.findable_drop(1) is None
    stream.step(WATCHED, np.array([1.0]))
    found = stream.findable_drop(sessions)
    assert found is not None
    assert found < drop
    assert stream.findable_drop(1) is None

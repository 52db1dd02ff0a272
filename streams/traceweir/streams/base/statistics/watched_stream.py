"""Watches one stream of scores: learns a baseline, raises an alarm if the mean drops, and resolves it if it recovers.

A step is a minute of the stream's clock, or more if the promise says so. Its values are independent: the caller gives one
value a session, once a day. The state is bounded, and is equal after equal values, whatever their order within a minute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceweir.streams.base.statistics.baseline import (
    SUMS,
    BaselineLines,
    baseline_lines,
    hour_of,
    hours_of,
    mean_bounds,
    value_sums,
)
from traceweir.streams.base.statistics.betting import (
    BETS,
    alarm_threshold,
    averaged,
    evidence_after,
    findable_mean,
    log_drop_growth,
    log_rise_growth,
    stream_weight,
    values_needed,
)
from traceweir.streams.base.statistics.change_point import COLUMNS, Changed, changed, no_blocks, with_step
from traceweir.streams.base.statistics.intervals import Floats

DAY = 1_440
"""Steps of a day."""
LINE_ERROR = 0.02
"""Probability that the line of the first baseline of any stream of a rule is too high; it is inside the promise."""
ACCEPTED_LINE_ERROR = 0.02
"""The same of all later baselines of all streams together."""
BASELINE_ERROR = 0.0075
"""How often the baseline's mean is outside the interval that an effect is computed from."""
LEAST_BASELINE = 50
"""Fewer values are no baseline: the stream learns until it has so many, and the stated days are over."""
_LEAST_SHARE = 0.01
"""A share of 0 and one of 1 are taken for this much more and less, where odds are compared."""
_HEAD = 7
"""Size of the first part of a state."""
_NONE = -1.0
"""Stands for no minute in a state; a minute is not negative."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a rule tolerates, and how often it may be wrong."""

    tolerated_drop: float
    """A drop of the mean by less than this is no alarm; from 0, below 1."""
    days_between_false_alarms: float
    """Mean number of days to the first false alarm of any stream, at least."""
    baseline_days: float
    """From how many days a stream learns what is usual."""
    step_minutes: int = 1
    """How many minutes a step has; `step` is called at most once in each."""
    back_odds: float | None = None
    """Of values that are 0 or 1: how many times as likely they must be with the baseline's mean as with that since the
    change, for an alarm to be resolved. None: it needs as much evidence as it was raised with, for any values.

    An alarm that is resolved too early is no false one, because the next one needs all of its evidence again."""


@dataclass(frozen=True, slots=True)
class StreamAlarm:
    """What a stream says when its state changes."""

    state: Literal["raised", "resolved"]
    at: int
    """The minute in which it was said."""
    change: Changed | None
    """Since when, and what the mean has been since; None if it is resolved."""
    effect: tuple[float, float, float] | None
    """Mean after the change less that of the baseline, and the ends of its 95 % interval; None if it is resolved.

    The interval supposes that the alarm is right, so that it ends at the tolerated drop."""


class WatchedStream:
    """A stream of values from 0 to 1, of which a drop matters.

    >>> stream = WatchedStream(1, Promise(tolerated_drop=0.02, days_between_false_alarms=60, baseline_days=1))
    >>> good = np.array([1.0, 1.0, 1.0, 0.0])
    >>> [stream.step(minute, good) for minute in range(0, 2880, 2)] == [None] * 1440
    True
    >>> said = [(minute, said) for minute in range(2880, 2940, 2) if (said := stream.step(minute, 1 - good))]
    >>> [(minute, alarm.state, alarm.change.at) for minute, alarm in said]
    [(2894, 'raised', 2880)]
    """

    def __init__(self, number: int, promise: Promise) -> None:
        """Begins a stream.

        Args:
            number: From 1, by first appearance among the streams of the rule.
            promise: The promise of the rule, over all its streams.
        """
        self._number = number
        self._promise = promise
        self._baselines = 1
        self._first: int | None = None
        self._sums = np.zeros((hours_of(self._promise.baseline_days), SUMS))
        self._lines: BaselineLines | None = None
        self._raised = False
        self._evidence = np.zeros(BETS)
        self._blocks = no_blocks()
        # The share of the baseline's mean that was left when the alarm was raised, and the log odds that it is back.
        self._left = 1.0
        self._back = 0.0
        steps = promise.days_between_false_alarms * DAY / promise.step_minutes
        self._threshold = alarm_threshold(number, steps, LINE_ERROR + ACCEPTED_LINE_ERROR)

    @property
    def number(self) -> int:
        """The number among the streams of the rule, from 1."""
        return self._number

    @property
    def is_raised(self) -> bool:
        """Whether the last that was said is an alarm."""
        return self._raised

    @property
    def lines(self) -> BaselineLines | None:
        """The bounds of the baseline by hour of the day or week; None while it is learnt."""
        return self._lines

    @property
    def baseline(self) -> tuple[int, float | None]:
        """How many values the baseline has, and their mean."""
        number, total = self._sums[:, :2].sum(axis=0)
        return int(number), float(total / number) if number else None

    def findable_drop(self, values: float) -> float | None:
        """Returns the smallest drop from the baseline's mean that so many values show, about; None if none is."""
        if self._lines is None:
            return None
        _, mean = self.baseline
        line = float(np.mean(self._lines.lowest)) - self._promise.tolerated_drop
        found = findable_mean(line, values, self._threshold)
        return None if found is None or mean is None else mean - found

    def values_needed(self, drop: float) -> float | None:
        """Returns how many values show such a drop from the baseline's mean, about; infinite if none do, None if it learns."""
        _, mean = self.baseline
        if self._lines is None or mean is None:
            return None
        line = float(np.mean(self._lines.lowest)) - self._promise.tolerated_drop
        return values_needed(mean - drop, line, self._threshold)

    def step(self, minute: int, values: Floats) -> StreamAlarm | None:
        """Takes the values of a minute, one or more; returns what is to be said.

        Args:
            minute: Minutes since 1970 in UTC, larger than in all calls before.
            values: A value of each session, from 0 to 1.
        """
        # The sum of floats depends on their order.
        values = np.sort(values)
        if self._first is None:
            self._first = minute
        if self._lines is None and not self._learnt(minute):
            self._sums[hour_of(minute, len(self._sums))] += value_sums(values)
            return None
        if self._lines is None:
            self._lines = self._learnt_lines()
        hour = hour_of(minute, len(self._sums))
        lowest = float(self._lines.lowest[hour])
        line = lowest - self._promise.tolerated_drop
        growth = log_rise_growth if self._raised else log_drop_growth
        self._evidence = evidence_after(self._evidence, growth(values, line).sum(axis=0))
        if not self._raised:
            self._blocks = with_step(self._blocks, minute, values, float(self._lines.means[hour]), lowest, line)
        if not self._is_enough(values, float(self._lines.means[hour]), line):
            return None
        said = self._said(minute)
        self._raised = not self._raised
        self._left = 1.0 if said.change is None else said.change.mean / max(said.change.expected, _LEAST_SHARE)
        self._back = 0.0
        self._evidence = np.zeros(BETS)
        self._blocks = no_blocks()
        return said

    def learn_anew(self) -> None:
        """Forgets what was usual, and learns it again from the next step on. An alarm ends without being resolved.

        The promise still holds, however often this is done: the evidence only becomes smaller, and the lines of all
        baselines together share their errors, by the number of the stream and that of the baseline.
        """
        self._baselines += 1
        self._first = None
        self._sums = np.zeros((hours_of(self._promise.baseline_days), SUMS))
        self._lines = None
        self._raised = False
        self._evidence = np.zeros(BETS)
        self._blocks = no_blocks()
        self._left = 1.0
        self._back = 0.0

    def to_bytes(self) -> bytes:
        """Returns the state, at most 12 kB, or 18 kB if the baseline shows a rhythm of the week."""
        head = [
            self._number,
            self._baselines,
            _NONE if self._first is None else self._first,
            self._lines is not None,
            self._raised,
            self._left,
            self._back,
        ]
        parts = (head, self._evidence, self._sums.ravel(), self._blocks.ravel())
        return np.concatenate(parts).astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, state: bytes, promise: Promise) -> WatchedStream:
        """Returns the stream whose state `to_bytes` returned; the promise is that of its rule."""
        hours = hours_of(promise.baseline_days)
        ends = np.cumsum((_HEAD, BETS, hours * SUMS))
        head, evidence, sums, blocks = np.split(np.frombuffer(state, "<f8").astype(float), ends)
        stream = cls(int(head[0]), promise)
        stream._baselines = int(head[1])
        stream._first = None if head[2] == _NONE else int(head[2])
        stream._evidence = evidence
        stream._sums = sums.reshape(hours, SUMS)
        stream._blocks = blocks.reshape(-1, COLUMNS)
        stream._raised = bool(head[4])
        stream._left = float(head[5])
        stream._back = float(head[6])
        if head[3]:
            stream._lines = stream._learnt_lines()
        return stream

    def _is_enough(self, values: Floats, usual: float, line: float) -> bool:
        """Returns whether an alarm is to be raised, or resolved, after a step."""
        odds = self._promise.back_odds
        if odds is None or not self._raised:
            return bool(averaged(self._evidence) >= self._threshold)
        usual = min(usual, 1 - _LEAST_SHARE)
        dropped = max(usual * self._left, _LEAST_SHARE)
        if line <= 0 or dropped >= usual:
            return False
        more = values * np.log(usual / dropped) + (1 - values) * np.log((1 - usual) / (1 - dropped))
        self._back = max(self._back, 0.0) + float(more.sum())
        return self._back >= math.log(odds)

    def _learnt_lines(self) -> BaselineLines:
        error = LINE_ERROR if self._baselines == 1 else ACCEPTED_LINE_ERROR * stream_weight(self._baselines - 1)
        return baseline_lines(self._sums, error * stream_weight(self._number))

    def _learnt(self, minute: int) -> bool:
        over = self._first is not None and minute - self._first >= self._promise.baseline_days * DAY
        return over and self._sums[:, 0].sum() >= LEAST_BASELINE

    def _said(self, minute: int) -> StreamAlarm:
        change = None if self._raised else changed(self._blocks)
        if change is None:
            return StreamAlarm("resolved", minute, None, None)
        low, high = mean_bounds(self._sums.sum(axis=0), BASELINE_ERROR)
        _, mean = self.baseline
        # With a daily rhythm the hours since the change are compared with the same hours.
        moved = change.expected - (mean or 0.0)
        # An alarm means a change that is not tolerated, so the interval ends at the tolerated drop.
        highest = min(change.high - low - moved, -self._promise.tolerated_drop)
        effect = (change.mean - change.expected, change.low - high - moved, highest)
        return StreamAlarm("raised", minute, change, effect)

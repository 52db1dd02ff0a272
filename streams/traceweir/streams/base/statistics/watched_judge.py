"""Watches a judge by anchors: frozen sessions that it judges again and again, and that nothing but the judge can move.

Each anchor is compared with the first verdict that the judge gave on it. The label of a person is the same at both times,
so the change of "judge less label" is that of the verdict, and the comparison has far less variance: where the judge and
the person always disagree, nothing varies. Verdicts that passed and now fail, and verdicts that failed and now pass, are
two streams of `WatchedStream`, each the share of verdicts that stayed. Anchors are drawn with replacement, so that without
a change each share has one mean, whatever came before (Li 2026, arXiv:2606.15474, watches the difference to the label).

A step is an hour of the clock with verdicts. After a change another judge answers, so all is learnt again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.watched_stream import Promise, WatchedStream

HOUR = 60
"""Minutes of a step."""
JUDGE_PROMISE = Promise(tolerated_drop=0.0, days_between_false_alarms=60, baseline_days=7, step_minutes=HOUR)
"""Any change of a judge is found in time, and the first false alarm of any judge comes after 60 days on average."""
ANCHORS_ERROR = 0.05
"""How often the anchors that happen to have been chosen move less than it is counted on."""
Side = Literal["stricter", "milder"]
SIDES: tuple[Side, ...] = ("stricter", "milder")


@dataclass(frozen=True, slots=True)
class JudgeChange:
    """A judge answers in another way than before."""

    side: Side
    """`stricter`: verdicts that passed fail now; `milder`: verdicts that failed pass now."""
    found_at: int
    """The minute, since 1970, at which it was found."""
    change: Changed
    """Since when, in minutes since 1970."""
    moved: tuple[float, float, float]
    """By how much the share of such verdicts rose, and the ends of its 95 % interval, which supposes that it did."""


def least_moved(share: float, anchors: int, error: float = ANCHORS_ERROR) -> float:
    """Returns which share of some anchors moves at least if this share of all subjects does, with a small error.

    >>> round(least_moved(0.1, 100), 2), least_moved(0.1, 10)
    (0.05, 0.0)

    Args:
        share: From 0 to 1.
        anchors: Number of anchors, drawn from the subjects.
        error: Probability that fewer move.
    """
    from scipy.special import bdtrik

    if not (0 < share < 1 and anchors):
        return share
    # The quantile of the binomial distribution.
    return max(math.ceil(float(bdtrik(error, anchors, share))), 0) / anchors


class WatchedJudge:
    """The judge of one criterion.

    >>> promise = Promise(0.0, days_between_false_alarms=60, baseline_days=1, step_minutes=HOUR)
    >>> judge = WatchedJudge(1, promise)
    >>> anchors = [(f"a-{number}", number < 8) for number in range(10)]
    >>> [judge.step(hour, anchors) for hour in range(40)] == [None] * 40
    True
    >>> changes = [judge.step(hour, [(anchor, False) for anchor, _ in anchors]) for hour in range(40, 44)]
    >>> [(each.side, each.change.at // HOUR) for each in changes if each is not None]
    [('stricter', 40)]
    """

    def __init__(self, number: int, promise: Promise = JUDGE_PROMISE) -> None:
        """Begins without a verdict.

        Args:
            number: From 1, by first appearance among all judges that are watched.
            promise: The promise over all judges; its step is an hour.
        """
        self._number = number
        self._promise = promise
        self._begin()

    def _begin(self) -> None:
        self._usual: dict[str, bool] = {}
        self._streams = {
            side: WatchedStream(2 * self._number - 1 + place, self._promise) for place, side in enumerate(SIDES)
        }
        self._watched: dict[Side, Counter[int]] = {side: Counter() for side in SIDES}

    def step(self, hour: int, verdicts: Sequence[tuple[str, bool]]) -> JudgeChange | None:
        """Takes the verdicts of an hour, in their order; returns the change that they show.

        Args:
            hour: Hours since 1970 in UTC, larger than in all calls before.
            verdicts: The anchor, and whether it passed.
        """
        stayed: dict[Side, list[float]] = {side: [] for side in SIDES}
        for anchor, passed in verdicts:
            usual = self._usual.get(anchor)
            if usual is None:
                self._usual[anchor] = passed
                continue
            stayed["stricter" if usual else "milder"].append(float(passed == usual))
        found: JudgeChange | None = None
        for side, values in stayed.items():
            if not values:
                continue
            stream = self._streams[side]
            said = stream.step(hour * HOUR, np.array(values))
            if stream.lines is not None:
                self._watched[side][hour] += len(values)
            if said is not None and said.change is not None and said.effect is not None and found is None:
                estimate, low, high = said.effect
                found = JudgeChange(side, said.at + HOUR, said.change, (-estimate, -high, -low))
        if found is not None:
            self._begin()
        return found

    def is_watched(self, side: Side) -> bool:
        """Returns whether what is usual is learnt, so that a change to this side can be found."""
        return self._streams[side].lines is not None

    def watched_since(self, side: Side, minute: int) -> int:
        """Returns how many verdicts were compared that were asked for in hours from a minute on."""
        return sum(number for hour, number in self._watched[side].items() if hour * HOUR >= minute)

    def anchors(self, side: Side) -> int:
        """Returns how many anchors can show a change to this side: those that usually pass, or those that usually fail."""
        return sum(usual == (side == "stricter") for usual in self._usual.values())

    def verdicts_needed(self, side: Side, moved: float) -> float | None:
        """Returns how many such verdicts show that their share rose so much, about; infinite if none do, None if it learns."""
        return self._streams[side].values_needed(moved)

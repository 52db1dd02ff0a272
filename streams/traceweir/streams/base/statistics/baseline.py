"""Learns what a stream's mean was: sums by the hour of the day or week, and bounds that are inside the promise of an alarm."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceweir.streams.base.statistics.intervals import Floats

HOURS = 24
WEEK = 7 * HOURS
"""Hours of a week, from Monday on."""
WEEK_DAYS = 14
"""From a baseline of so many days a rhythm of the week is learnt too: each day of the week is in it twice."""
SUMS = 5
"""Number of values, their sum, the sum of their squares, how many are 1, and how many are not 0."""
LEAST_IN_HOUR = 10
Rhythm = Literal["hour", "weekend", "weekend and hour", "day", "day and hour"]
_RHYTHM_ERROR = 0.001
"""How often a stream without a rhythm is taken for one with a rhythm, for the hours and for the days."""
_WEEKEND = np.array([0, 0, 0, 0, 0, 1, 1])
_FIRST_DAY = 3
"""The first day of 1970 was a Thursday."""


class BaselineLines(NamedTuple):
    """What a stream must not be below, by the hour of the day in UTC, or by that of the week."""

    lowest: Floats
    """The lower confidence bound of the mean of each hour."""
    means: Floats
    """The mean of each hour; that of all hours without a rhythm."""
    rhythm: Rhythm | None
    """What has a bound of its own: each hour of the day; workdays and weekends, or each day of the week; or both."""


def hours_of(days: float) -> int:
    """Returns by how many hours a baseline of so many days is kept: those of a week or of a day."""
    return WEEK if days >= WEEK_DAYS else HOURS


def hour_of(minute: int, hours: int) -> int:
    """Returns the place of a minute since 1970 among the hours of a day, or among those of a week.

    >>> hour_of(60, HOURS), hour_of(60, WEEK)
    (1, 73)
    """
    return (minute // 60 + _FIRST_DAY * HOURS) % hours


def is_weekend(minutes: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Returns which minutes since 1970 are on a Saturday or a Sunday, in UTC.

    >>> is_weekend(np.array([0, 2 * 1440, 4 * 1440])).tolist()
    [False, True, False]
    """
    found: NDArray[np.bool_] = (minutes // (60 * HOURS) + _FIRST_DAY) % 7 >= 5
    return found


def value_sums(values: Floats) -> Floats:
    """Returns the sums of values from 0 to 1 by which a baseline is kept.

    >>> value_sums(np.array([1.0, 0.5, 0.0])).tolist()
    [3.0, 1.5, 1.25, 1.0, 2.0]
    """
    return np.array(
        [len(values), values.sum(), (values**2).sum(), np.count_nonzero(values == 1), np.count_nonzero(values)], float
    )


def baseline_lines(sums: Floats, error: float) -> BaselineLines:
    """Returns the bounds of a stream.

    Whether hours of the day differ is tested, and whether days of the week do beyond the hours (chi-square, at 0.001 each).
    If hours differ, each has a bound of its own. If days differ, workdays and weekends have; or each day, if these two do not
    explain it. What has fewer than `LEAST_IN_HOUR` values has no bound: 0. The bounds of all rhythms share the error, so
    that the choice between them costs nothing.

    Args:
        sums: The sums of each hour of a day, 24 by 5, or of each hour of a week, 168 by 5.
        error: Probability that any bound is above its mean.
    """
    days = sums.reshape(-1, HOURS, SUMS)
    parts, name = _parts_of_week(days)
    by_hour = _has_rhythm(days.sum(axis=0))
    groups = np.array([days[parts == part].sum(axis=0) for part in range(parts.max() + 1)])
    if not by_hour:
        groups = groups.sum(axis=1, keepdims=True)
    rhythms = 2 if len(days) == 1 else 6
    enough = groups[..., 0] >= LEAST_IN_HOUR
    has_rhythm = by_hour or name is not None
    bounds = lower_bound(groups, error / rhythms / (groups.shape[0] * groups.shape[1]))
    whole = groups.sum(axis=(0, 1))
    means = np.where(enough, groups[..., 1] / np.maximum(groups[..., 0], 1), whole[1] / max(whole[0], 1))
    lowest = np.where(enough, bounds, 0.0) if has_rhythm else bounds
    shape = (len(days), HOURS)
    return BaselineLines(
        np.broadcast_to(lowest[parts], shape).ravel(),
        np.broadcast_to(means[parts], shape).ravel(),
        _named(name, by_hour=by_hour),
    )


def lower_bound(sums: Floats, error: float) -> Floats:
    """Returns what the mean of values from 0 to 1 is not below, with a probability of 1 - `error`.

    The larger of two bounds that share the error: that of Clopper and Pearson 1934 (doi:10.2307/2331986) for the share of
    values that are 1, which is not above the mean; and the empirical Bernstein bound of Maurer and Pontil 2009
    (arXiv:0907.3740, theorem 4), which is better for values between 0 and 1.

    Args:
        sums: Sums as of `value_sums`, in the last axis.
        error: Probability that the bound is too high.

    >>> round(float(lower_bound(value_sums(np.repeat([1.0, 0.0], [900, 100])), 0.05)), 4)
    0.8797
    """
    from scipy.special import betaincinv

    number, total, squares, ones, _ = np.moveaxis(sums, -1, 0)
    exact = np.where(ones > 0, betaincinv(np.maximum(ones, 1), number - ones + 1, error / 2), 0.0)
    several = np.maximum(number, 2)
    mean = total / np.maximum(number, 1)
    variance = np.maximum(squares - total * mean, 0.0) / (several - 1)
    log = np.log(2 / (error / 2))
    bernstein = mean - np.sqrt(2 * variance * log / several) - 7 * log / (3 * (several - 1))
    return np.where(number >= 2, np.maximum(exact, bernstein), np.where(number > 0, exact, 0.0)).clip(0.0, 1.0)


def mean_bounds(sums: Floats, error: float) -> tuple[float, float]:
    """Returns the interval of a mean, two-sided.

    >>> [round(bound, 3) for bound in mean_bounds(value_sums(np.repeat([1.0, 0.0], [900, 100])), 0.05)]
    [0.877, 0.92]
    """
    number, total, squares, ones, nonzero = sums
    mirrored = np.array([number, number - total, number - 2 * total + squares, number - nonzero, number - ones])
    return float(lower_bound(sums, error / 2)), 1 - float(lower_bound(mirrored, error / 2))


def _named(part: Literal["weekend", "day"] | None, *, by_hour: bool) -> Rhythm | None:
    if part is None:
        return "hour" if by_hour else None
    if not by_hour:
        return part
    return "weekend and hour" if part == "weekend" else "day and hour"


def _parts_of_week(days: Floats) -> tuple[NDArray[np.intp], Literal["weekend", "day"] | None]:
    """Returns the part that each day belongs to, from 0, and what the parts are; None for one part."""
    if len(days) == 1 or not _differ([days]):
        return np.zeros(len(days), np.intp), None
    if _differ([days[_WEEKEND == 0], days[_WEEKEND == 1]]):
        return np.arange(len(days)), "day"
    return _WEEKEND, "weekend"


def _differ(parts: list[Floats]) -> bool:
    """Returns whether the days of any part differ in their means, beyond the hours of the day.

    The test of Landis, Heyman and Koch 1978 (doi:10.2307/1402373) of means, with the hours as strata: the sums of the days
    less what is expected of them, in relation to their covariance if the values of an hour came in any order.

    Args:
        parts: The sums of the days of each part, days by hours by 5.
    """
    from scipy.special import chdtrc

    statistic = 0.0
    freedom = 0
    for days in parts:
        number, total, squares = np.moveaxis(days[..., :3], -1, 0)
        in_hour = np.maximum(number.sum(axis=0), 1)
        mean = total.sum(axis=0) / in_hour
        variance = np.maximum(squares.sum(axis=0) - mean**2 * in_hour, 0.0) / np.maximum(in_hour - 1, 1)
        more = (total - number * mean).sum(axis=1)
        covariance = np.diag(number @ variance) - (number * variance / in_hour) @ number.T
        # The last day follows from the others, and a day without values has none.
        some = np.flatnonzero(np.diag(covariance) > 0)[:-1]
        if len(some):
            kept = covariance[np.ix_(some, some)]
            statistic += float(more[some] @ np.linalg.pinv(kept, hermitian=True) @ more[some])
            freedom += int(np.linalg.matrix_rank(kept, hermitian=True))
    return freedom > 0 and bool(chdtrc(freedom, statistic) < _RHYTHM_ERROR)


def _has_rhythm(sums: Floats) -> bool:
    from scipy.special import chdtrc

    hours = sums[sums[:, 0] >= LEAST_IN_HOUR]
    number, total, squares = hours[:, :3].sum(axis=0)
    if len(hours) < 2 or number <= len(hours):
        return False
    between = float((hours[:, 1] ** 2 / hours[:, 0]).sum() - total**2 / number)
    within = float(squares - (hours[:, 1] ** 2 / hours[:, 0]).sum()) / (number - len(hours))
    if within <= 0:
        return between > 0
    return bool(chdtrc(len(hours) - 1, between / within) < _RHYTHM_ERROR)

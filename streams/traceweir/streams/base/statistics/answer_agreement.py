"""Measures how far a judge agrees with people who answered with a number or a category, on whatever scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traceweir.streams.base.statistics.clustered_sample import Numbers
from traceweir.streams.base.statistics.drawn_kappa import drawn_kappa
from traceweir.streams.base.statistics.intervals import paired_difference
from traceweir.streams.base.statistics.people_only import Estimated, people_rate
from traceweir.streams.base.statistics.rate_intervals import Interval

LEAST_SESSIONS = 10
"""Sessions from which the mean difference has an interval."""


class AnswerPair(NamedTuple):
    """What people and judge say about one subject: two numbers, or two categories."""

    people: float | str
    judge: float | str
    session: str
    weight: float
    """1 / the probability with which the subject was drawn."""


@dataclass(frozen=True, slots=True)
class NumberAgreement:
    """A judge that answers with numbers, against the numbers of people."""

    labels: int
    """Number of subjects with both numbers."""
    sessions: int
    """Number of their sessions."""
    people_mean: float
    judge_mean: float
    difference: float
    """The mean of the judge's number minus that of people: above 0, the judge gives more."""
    low: float | None
    """Lower end of the 95 % interval of the difference; None with fewer than `LEAST_SESSIONS` sessions, if all differ by
    the same, or if the subjects were drawn with several probabilities."""
    high: float | None


@dataclass(frozen=True, slots=True)
class CategoryAgreement:
    """A judge that answers with categories, against the categories of people."""

    labels: int
    """Number of subjects with both categories."""
    agreed: Estimated
    """The share on which both are the same, weighted by 1 / the probability of each."""
    kappa: float | None
    """Cohen's kappa of all categories, without weights; None if people and judge only name one and the same."""
    kappa_interval: Interval | None
    """Its 95 % interval; None with too few subjects or sessions, or if they were drawn with several probabilities."""
    table: Mapping[tuple[str, str], int]
    """How many subjects have each category of people, and of the judge."""


def number_agreement(pairs: Sequence[AnswerPair]) -> NumberAgreement | None:
    """Returns the agreement of the pairs of numbers, as means of the labelled subjects; None without one.

    The interval is that of `paired_difference`, clustered by session.

    >>> found = number_agreement([AnswerPair(4.0, 4.5, f"s-{at}", 1.0) for at in range(3)])
    >>> found.people_mean, found.judge_mean, found.difference, found.low
    (4.0, 4.5, 0.5, None)
    """
    taken = [each for each in pairs if not isinstance(each.people, str) and not isinstance(each.judge, str)]
    if not taken:
        return None
    people = np.array([each.people for each in taken], float)
    judge = np.array([each.judge for each in taken], float)
    sessions = _numbered([each.session for each in taken])
    number = int(sessions.max()) + 1
    made = paired_difference(people, judge, sessions.astype(np.uint64))
    weights = [each.weight for each in taken]
    # Without any spread there is nothing to estimate an error from; with other weights it is not that of the drawn ones.
    has_interval = number >= LEAST_SESSIONS and made.low != made.high and min(weights) == max(weights)
    return NumberAgreement(
        len(taken),
        number,
        made.base_mean,
        made.challenger_mean,
        made.difference,
        made.low if has_interval else None,
        made.high if has_interval else None,
    )


def category_agreement(pairs: Sequence[AnswerPair]) -> CategoryAgreement | None:
    """Returns the agreement of the pairs of categories; None without one.

    The share has the interval of `people_rate`. Kappa is 1 if all agree, and 0 if they agree as often as by chance; it is
    that of `drawn_kappa`.

    >>> pairs = [AnswerPair(a, b, str(at), 1.0) for at, (a, b) in enumerate(["aa", "aa", "bb", "bc", "cc", "ca"])]
    >>> found = category_agreement(pairs)
    >>> round(found.agreed.value, 3), round(found.kappa, 3), found.table["b", "c"]
    (0.667, 0.5, 1)
    """
    taken = [each for each in pairs if isinstance(each.people, str) and isinstance(each.judge, str)]
    if not taken:
        return None
    both = [(str(each.people), str(each.judge)) for each in taken]
    people, judge = np.split(_numbered([each for pair in zip(*both, strict=True) for each in pair]), 2)
    weights = np.array([each.weight for each in taken], float)
    sessions = _numbered([each.session for each in taken])
    agreed = people_rate((people == judge).astype(np.float64), weights, sessions)
    kappa = drawn_kappa(people, judge, weights, sessions)
    return CategoryAgreement(len(taken), agreed, kappa.value, kappa.interval, Counter(both))


def _numbered(names: Sequence[str]) -> Numbers:
    places: dict[str, int] = {}
    return np.array([places.setdefault(name, len(places)) for name in names], np.intp)

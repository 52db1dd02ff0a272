"""Simulates how often the interval of a stated pass rate covers the true one, and how wide it is.

Sessions draw their own rate and their own errors of the judge from beta distributions, so that results of one session
resemble each other. Nothing depends on the machine: equal seeds give equal tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.streams.base.statistics.clustered_sample import Numbers
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.rate_statement import (
    Calibration,
    JudgedSubjects,
    RateStatement,
    state_rate,
)
from traceweir.streams.base.statistics.rogan_gladen import KnownRate

HEAD = "| rate | TPR | TNR | labels | of a session | methods | stated | coverage | width |"
RUNS = 1_000
OTHERS = 600
LIKENESS = 0.3
"""Correlation of two results of one session, and of the judge's errors on them."""
JUDGES = ((0.5, 0.9, 0.9), (0.7, 0.95, 0.6), (0.9, 0.9, 0.9), (0.9, 0.99, 0.99), (0.9, 0.5, 0.5), (0.95, 0.97, 0.5))
"""The true rate, TPR and TNR."""
LABELLED = ((12, 1), (20, 1), (40, 1), (60, 1), (200, 1), (60, 5), (200, 5), (200, 20), (600, 20), (200, 0))
"""Number of labels, and how many of one session; 0: 1 to 20."""
CALIBRATED = ((40, 40), (80, 20), (320, 80))
"""Labels of another time that pass and that fail."""
NUMBERS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "beta(4, 1.5)": lambda random, count: random.beta(4, 1.5, count),
    "beta(8, 0.4)": lambda random, count: random.beta(8, 0.4, count),
    "0.9 to 1, and 5 % zeros": lambda random, count: np.where(
        random.random(count) < 0.05, 0, random.uniform(0.9, 1, count)
    ),
}
_MEANS = {"beta(4, 1.5)": 4 / 5.5, "beta(8, 0.4)": 8 / 8.4, "0.9 to 1, and 5 % zeros": 0.95 * 0.95}


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table."""

    name: str
    truth: float
    draw: Callable[[np.random.Generator], RateStatement]


def cells() -> Iterator[Cell]:
    """Returns the rows in their order."""
    for rate, passing, failing in JUDGES:
        for labels, of_one in LABELLED:
            name = f"{rate} | {passing} | {failing} | {labels} | {of_one or '1 to 20'}"
            yield Cell(name, rate, _drawn_rate(rate, passing, failing, labels, of_one))
    for rate, passing, failing in JUDGES:
        for good, bad in CALIBRATED:
            name = f"{rate} | {passing} | {failing} | {good} + {bad} elsewhere | 1"
            yield Cell(name, rate, _transferred(rate, passing, failing, good, bad))
    for title, values in NUMBERS.items():
        for labels in (12, 20, 100):
            yield Cell(f"{title} | | | {labels} | 1", _MEANS[title], _drawn_mean(values, labels))
    for share in (0.05, 0.2):
        yield Cell(
            f"0.95 and 0.75 | 0.9 | 0.8 | {share * 100:.0f} % and {share * 25:.2f} % drawn | 1",
            0.85,
            _drawn_unequally(share),
        )


def row(place: int, cell: Cell, runs: int = RUNS) -> str:
    """Returns a row of the table as Markdown. A share of 100 % is left out.

    Args:
        place: Its number, which is its seed.
        cell: What is drawn.
        runs: How often.
    """
    random = np.random.default_rng(place)
    found = [cell.draw(random) for _ in range(runs)]
    stated = [each for each in found if each.value is not None]
    if not stated:
        return f"| {cell.name} | none | 0 % | | |"
    methods = Counter(str(each.method) for each in stated)
    covered = np.mean([(each.low or 0) <= cell.truth <= (each.high or 0) for each in stated])
    width = np.mean([(each.high or 0) - (each.low or 0) for each in stated])
    names = ", ".join(name + _percent(number / len(stated)) for name, number in methods.most_common())
    return f"| {cell.name} | {names} |{_percent(len(stated) / runs)} | {covered:.3f} | {width:.3f} |"


def run(runs: int = RUNS) -> None:
    """Prints the table."""
    print(HEAD)
    print("|---|---|---|---|---|---|---|---|---|")
    for place, cell in enumerate(cells()):
        print(row(place, cell, runs), flush=True)


def _percent(share: float) -> str:
    return "" if share == 1 else f" {share * 100:.0f} %"


def _drawn_rate(
    rate: float, passing: float, failing: float, labels: int, of_one: int
) -> Callable[[np.random.Generator], RateStatement]:
    def draw(random: np.random.Generator) -> RateStatement:
        truth, verdicts, sessions, number = [], [], [], 0
        for count in (labels, OTHERS):
            sizes = drawn_sizes(random, count, of_one)
            session = np.repeat(np.arange(len(sizes)), sizes)
            good = random.random(len(session)) < _rates(random, rate, len(sizes), of_one)[session]
            right = np.where(
                good,
                _rates(random, passing, len(sizes), of_one)[session],
                _rates(random, failing, len(sizes), of_one)[session],
            )
            truth.append(good.astype(float))
            verdicts.append(np.where(random.random(len(session)) < right, good, ~good).astype(float))
            sessions.append(number + session)
            number += len(sizes)
        return _stated(truth, verdicts, sessions)

    return draw


def _drawn_mean(
    values: Callable[[np.random.Generator, int], Floats], labels: int
) -> Callable[[np.random.Generator], RateStatement]:
    def draw(random: np.random.Generator) -> RateStatement:
        truth = values(random, labels + OTHERS)
        verdicts = np.clip(truth + random.normal(0.05, 0.15, len(truth)), 0, 1)
        return _stated(
            np.split(truth, [labels]), np.split(verdicts, [labels]), np.split(np.arange(len(truth)), [labels])
        )

    return draw


def _drawn_unequally(share: float) -> Callable[[np.random.Generator], RateStatement]:
    """Two kinds of sessions, of which the better one is drawn for labels four times as often, and judged half as often."""

    def draw(random: np.random.Generator) -> RateStatement:
        better = random.random(2 * OTHERS) < 0.5
        chances = np.where(better, 0.5, 1.0)
        kept = random.random(2 * OTHERS) < chances
        better = better[kept]
        chances = chances[kept]
        count = len(better)
        good = random.random(count) < np.where(better, 0.95, 0.75)
        right = random.random(count) < np.where(good, 0.9, 0.8)
        drawn = np.where(better, share, share / 4)
        labelled = random.random(count) < drawn
        verdicts = np.where(right, good, ~good).astype(float)
        truth = np.where(labelled, good, np.nan)
        label_chances = np.where(labelled, drawn, np.nan)
        return state_rate(JudgedSubjects(verdicts, chances, np.arange(count), truth, label_chances))

    return draw


def _transferred(
    rate: float, passing: float, failing: float, good: int, bad: int
) -> Callable[[np.random.Generator], RateStatement]:
    def draw(random: np.random.Generator) -> RateStatement:
        calibration = Calibration(
            KnownRate(random.binomial(good, passing) / good, good), KnownRate(random.binomial(bad, failing) / bad, bad)
        )
        passed = rate * passing + (1 - rate) * (1 - failing)
        verdicts = (random.random(OTHERS) < passed).astype(float)
        nothing = np.full(OTHERS, np.nan)
        subjects = JudgedSubjects(verdicts, np.ones(OTHERS), np.arange(OTHERS), nothing, nothing)
        return state_rate(subjects, calibration=calibration)

    return draw


def _stated(truth: list[Floats], verdicts: list[Floats], sessions: Sequence[Numbers]) -> RateStatement:
    nothing = np.full(len(truth[1]), np.nan)
    together = np.concatenate(verdicts)
    return state_rate(
        JudgedSubjects(
            together,
            np.ones(len(together)),
            np.concatenate(sessions),
            np.concatenate((truth[0], nothing)),
            np.concatenate((np.full(len(truth[0]), 0.1), nothing)),
        )
    )


def drawn_sizes(random: np.random.Generator, count: int, of_one: int) -> Numbers:
    """Returns the number of labels of each session, `of_one` or, if it is 0, from 1 to 20; `count` or a few more in all."""
    if of_one:
        return np.full(count // of_one, of_one)
    sizes = random.integers(1, 21, count)
    return sizes[: int(np.searchsorted(np.cumsum(sizes), count)) + 1]


def _rates(random: np.random.Generator, mean: float, count: int, of_one: int) -> Floats:
    if of_one == 1:
        return np.full(count, mean)
    strength = 1 / LIKENESS - 1
    return random.beta(mean * strength, (1 - mean) * strength, count)

"""Simulates how often the interval of kappa covers the true one, and how wide it is.

People give an answer with the shares of the row. A judge gives the same with a probability, and else an answer
that is drawn with the same shares, or always the first. Sessions draw their own shares and their own probability, so
that answers of one session resemble each other. Equal seeds give equal tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.trust import LIKENESS, drawn_sizes
from traceweir.streams.base.statistics.clustered_sample import Numbers
from traceweir.streams.base.statistics.drawn_kappa import DrawnKappa, drawn_kappa

HEAD = "| shares of the answers | labels | of a session | has an interval | coverage | width |"
RUNS = 1_000
SHARES = (
    (0.5, 0.5),
    (0.8, 0.2),
    (0.34, 0.33, 0.33),
    (0.7, 0.2, 0.1),
    (0.9, 0.07, 0.03),
    (0.2, 0.2, 0.2, 0.2, 0.2),
    (0.6, 0.2, 0.1, 0.06, 0.04),
)
"""How often people give each answer."""
LABELLED = ((20, 1), (40, 1), (100, 1), (400, 1), (100, 5), (400, 5), (400, 20), (200, 0))
"""Number of labels, and how many of one session; 0: 1 to 20."""
SAME = (0.2, 0.8, 0.95)
"""The probability that the judge gives the answer of people for that reason."""
Other = Literal["by chance", "the first"]
OTHERS: tuple[Other, ...] = ("by chance", "the first")
LEAST_STATED = 0.1
"""A judge whose labels have an interval more seldom is left out of a row: too few of the draws say how often it holds."""


@dataclass(frozen=True, slots=True)
class Judge:
    """How a judge answers."""

    same: float
    other: Other

    def answers(
        self, random: np.random.Generator, people: Numbers, shares: tuple[float, ...], right: NDArray[np.bool_]
    ) -> Numbers:
        """Returns the answers of the judge."""
        wrong = np.zeros(len(people), np.intp)
        if self.other == "by chance":
            wrong = random.choice(len(shares), len(people), p=shares)
        return np.where(right, people, wrong)

    def kappa(self, shares: tuple[float, ...]) -> float:
        """Returns the true kappa."""
        kinds = len(shares)
        wrong = np.array(shares) if self.other == "by chance" else np.eye(kinds)[0]
        table = np.array(shares)[:, None] * (self.same * np.eye(kinds) + (1 - self.same) * wrong)
        by_chance = table.sum(0) @ table.sum(1)
        return float((np.trace(table) - by_chance) / (1 - by_chance))


class Row(NamedTuple):
    """A row of the table."""

    shares: tuple[float, ...]
    labels: int
    of_one: int
    stated: float
    """The share of all draws with an interval."""
    least: float
    """The coverage with the judge for which it is least."""
    most: float
    width: float
    """The mean width with a judge that gives 80 % the same and else an answer by chance; not a number if it has none."""

    def text(self) -> str:
        """Returns the row as Markdown."""
        shares = ", ".join(f"{each:g}" for each in self.shares)
        figures = "| | " if np.isnan(self.least) else f"| {self.least:.3f} to {self.most:.3f} | "
        width = "" if np.isnan(self.width) else f"{self.width:.2f} "
        stated = f"{self.stated:.0%}".replace("%", " %")
        return f"| {shares} | {self.labels} | {self.of_one or '1 to 20'} | {stated} {figures}{width}|"


def places() -> Iterator[tuple[tuple[float, ...], int, int]]:
    """Returns the shares, the number of labels and how many of one session of each row."""
    for shares in SHARES:
        for labels, of_one in LABELLED:
            yield shares, labels, of_one


def row(place: int, shares: tuple[float, ...], labels: int, of_one: int, runs: int = RUNS) -> Row:
    """Returns a row of the table.

    Args:
        place: Its number, which is its seed.
        shares: How often people give each answer.
        labels: Number of labels.
        of_one: How many of one session; 0: 1 to 20.
        runs: How often to draw for each judge.
    """
    random = np.random.default_rng(place)
    coverages, stated, width = [], 0, float("nan")
    for same in SAME:
        for other in OTHERS:
            judge = Judge(same, other)
            true = judge.kappa(shares)
            drawn = [_draw(random, judge, shares, labels, of_one).interval for _ in range(runs)]
            found = [each for each in drawn if each is not None]
            stated += len(found)
            if len(found) < LEAST_STATED * runs:
                continue
            coverages.append(float(np.mean([low <= true + 1e-9 and true - 1e-9 <= high for low, high in found])))
            if (same, other) == (0.8, "by chance"):
                width = float(np.mean([high - low for low, high in found]))
    least = min(coverages, default=float("nan"))
    most = max(coverages, default=float("nan"))
    return Row(shares, labels, of_one, stated / runs / len(SAME) / len(OTHERS), least, most, width)


def run(runs: int = RUNS) -> None:
    """Prints the table."""
    print(HEAD)
    print("|---|---|---|---|---|---|")
    for place, (shares, labels, of_one) in enumerate(places()):
        print(row(place, shares, labels, of_one, runs).text(), flush=True)


def _draw(random: np.random.Generator, judge: Judge, shares: tuple[float, ...], labels: int, of_one: int) -> DrawnKappa:
    sizes = drawn_sizes(random, labels, of_one)
    sessions = np.repeat(np.arange(len(sizes)), sizes)
    own = np.tile(shares, (len(sizes), 1))
    same = np.full(len(sizes), judge.same)
    if of_one != 1:
        strength = 1 / LIKENESS - 1
        own = random.dirichlet(np.array(shares) * strength, len(sizes))
        same = random.beta(judge.same * strength, (1 - judge.same) * strength, len(sizes))
    people = (random.random(len(sessions))[:, None] > np.cumsum(own[sessions], 1)[:, :-1]).sum(1)
    right = random.random(len(sessions)) < same[sessions]
    return drawn_kappa(people, judge.answers(random, people, shares, right), np.ones(len(people)), sessions)

"""Measures how often the 95 % intervals of `traceweir diff` contain the true difference, and how wide they are.

Run it with `python -m benchmarks diff-coverage`. The data is drawn from a seed, so that every run prints the same.

Each session has an effect of its own, and each of its results has an error of its own, both normal. The share of the
variance that the sessions have is the correlation of two results of one session.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from traceweir.streams.base.statistics.intervals import Estimate, paired_difference, unpaired_difference

SEED = 20_260_131
REPETITIONS = 4_000
TRUE_DIFFERENCE = 0.1


class Design(NamedTuple):
    """How many results each session has, and how similar they are."""

    name: str
    sizes: Sequence[int]
    """Number of results of each session."""
    correlation: float
    """Correlation of two results of one session, from 0 to 1."""


DESIGNS = (
    Design("5 sessions of 4 results", [4] * 5, 0.5),
    Design("10 sessions of 1 result", [1] * 10, 0.0),
    Design("10 sessions of 1 to 20 results", [1, 1, 2, 2, 4, 4, 8, 8, 16, 20], 0.5),
    Design("30 sessions of 1 to 20 results", [1, 2, 4, 8, 16, 20] * 5, 0.5),
    Design("100 sessions of 10 results, independent", [10] * 100, 0.0),
    Design("100 sessions of 10 results", [10] * 100, 0.9),
)


class Coverage(NamedTuple):
    """How an interval does in repeated draws."""

    covered: int
    """Number of intervals that contain the true difference."""
    repetitions: int
    width: float
    """Mean width of the intervals."""

    @property
    def share(self) -> float:
        """The share of the intervals that contain the true difference; 0.95 is right."""
        return self.covered / self.repetitions


def paired_coverage(design: Design, repetitions: int, *, clustered: bool = True) -> Coverage:
    """Returns the coverage of the interval of paired differences.

    Args:
        design: The sessions.
        repetitions: Number of draws.
        clustered: If false, every result counts as a session of its own, as an interval without clusters takes it.
    """
    sessions = _sessions(design)
    clusters = sessions if clustered else np.arange(len(sessions), dtype=np.uint64)
    generator = np.random.default_rng(SEED)
    return _coverage(
        paired_difference(base, base + TRUE_DIFFERENCE + _errors(design, sessions, generator), clusters)
        for base in (generator.random(len(sessions)) for _ in range(repetitions))
    )


def unpaired_coverage(design: Design, repetitions: int) -> Coverage:
    """Returns the coverage of the interval of two samples of other sessions; the base has half as many of them."""
    after = _sessions(design)
    half = design._replace(sizes=design.sizes[::2])
    before = _sessions(half) + np.uint64(1_000_000)
    generator = np.random.default_rng(SEED)
    return _coverage(
        unpaired_difference(
            _errors(half, before, generator), before, TRUE_DIFFERENCE + _errors(design, after, generator), after
        )
        for _ in range(repetitions)
    )


def run() -> None:
    """Prints the coverage of each design."""
    print(f"{'sessions':<40} {'correlation':>11} {'paired':>8} {'unpaired':>9} {'no clusters':>12}")
    for design in DESIGNS:
        paired = paired_coverage(design, REPETITIONS)
        unpaired = unpaired_coverage(design, REPETITIONS)
        naive = paired_coverage(design, REPETITIONS, clustered=False)
        print(
            f"{design.name:<40} {design.correlation:>11.1f} {paired.share:>8.1%} {unpaired.share:>9.1%} {naive.share:>12.1%}"
        )
    print(
        f"{REPETITIONS} draws each; the standard error of a share of 95 % is {(0.95 * 0.05 / REPETITIONS) ** 0.5:.2%}"
    )


def _sessions(design: Design) -> np.ndarray:
    return np.repeat(np.arange(len(design.sizes), dtype=np.uint64), design.sizes)


def _errors(design: Design, sessions: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    effects = generator.normal(0, design.correlation**0.5, len(design.sizes))
    own: np.ndarray = generator.normal(0, (1 - design.correlation) ** 0.5, len(sessions))
    errors: np.ndarray = np.repeat(effects, design.sizes) + own
    return errors


def _coverage(estimates: Iterable[Estimate]) -> Coverage:
    covered = count = 0
    width = 0.0
    for estimate in estimates:
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= TRUE_DIFFERENCE <= estimate.high
        width += estimate.high - estimate.low
        count += 1
    return Coverage(covered, count, width / count)


if __name__ == "__main__":
    run()

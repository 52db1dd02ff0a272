"""Tests flips, measures agreement, and corrects for the number of metrics.

Kappa and Holm's correction are a formula each. statsmodels has both, and tests compare with it; but its correction
collects Python's garbage at each call, and it would bring pandas into the extra.
"""

from __future__ import annotations

from collections.abc import Sequence


def exact_mcnemar(to_failed: int, to_passed: int) -> float:
    """Returns the p-value of the exact test of McNemar (1947, doi:10.1007/BF02295996), two-sided.

    Without an effect, a flip goes in either direction with the probability 1/2. The test takes pairs as independent.

    >>> round(exact_mcnemar(8, 1), 4), exact_mcnemar(0, 0)
    (0.0391, 1.0)
    """
    from scipy.stats import binomtest

    flips = to_failed + to_passed
    return float(binomtest(to_failed, flips).pvalue) if flips else 1.0


def exact_rates(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Returns the p-value of Fisher's exact test of two rates (1935, doi:10.2307/2342435), two-sided.

    Each rate is (passed, judged). The test takes all results as independent.

    >>> round(exact_rates((8, 10), (1, 6)), 4)
    0.035
    """
    from scipy.stats import fisher_exact

    return float(fisher_exact([[passed, judged - passed] for passed, judged in (first, second)]).pvalue)


def cohens_kappa(both_passed: int, both_failed: int, to_failed: int, to_passed: int) -> float | None:
    """Returns the agreement of two judgements beyond chance (Cohen 1960, doi:10.1177/001316446002000104), at most 1.

    0 is the agreement of two independent judgements with the same frequencies. None if both sides have only one and the
    same verdict: chance alone then agrees always.

    >>> round(cohens_kappa(45, 35, 15, 5), 3), cohens_kappa(9, 0, 0, 0)
    (0.6, None)
    """
    pairs = both_passed + both_failed + to_failed + to_passed
    agreed = (both_passed + both_failed) / pairs
    base = (both_passed + to_failed) / pairs
    challenger = (both_passed + to_passed) / pairs
    by_chance = base * challenger + (1 - base) * (1 - challenger)
    return None if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)


def holm(p_values: Sequence[float | None], *, tests: int | None = None) -> list[float | None]:
    """Returns p-values that are corrected for their number (Holm 1979, https://www.jstor.org/stable/4615733).

    None stays None, and does not count as a test.

    Args:
        p_values: The p-values.
        tests: The number of tests, if only those with the smallest p-values are given.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    known = sorted((p_value, place) for place, p_value in enumerate(p_values) if p_value is not None)
    corrected: list[float | None] = [None] * len(p_values)
    number = len(known) if tests is None else tests
    largest = 0.0
    for rank, (p_value, place) in enumerate(known):
        corrected[place] = largest = max(largest, min(1.0, p_value * (number - rank)))
    return corrected

"""Tests flips, measures agreement, and corrects for the number of metrics; computed by SciPy and statsmodels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exact_mcnemar(to_failed: int, to_passed: int) -> float:
    """Returns the p-value of the exact test of McNemar (1947, doi:10.1007/BF02295996), two-sided.

    Without an effect, a flip goes in either direction with the probability 1/2. The test takes pairs as independent.

    >>> round(exact_mcnemar(8, 1), 4), exact_mcnemar(0, 0)
    (0.0391, 1.0)
    """
    from scipy.stats import binomtest

    flips = to_failed + to_passed
    return float(binomtest(to_failed, flips).pvalue) if flips else 1.0


def cohens_kappa(both_passed: int, both_failed: int, to_failed: int, to_passed: int) -> float | None:
    """Returns the agreement of two judgements beyond chance (Cohen 1960, doi:10.1177/001316446002000104), at most 1.

    0 is the agreement of two independent judgements with the same frequencies. None if both sides have only one and the
    same verdict: chance alone then agrees always.

    >>> round(cohens_kappa(45, 35, 15, 5), 3), cohens_kappa(9, 0, 0, 0)
    (0.6, None)
    """
    from statsmodels.stats.inter_rater import cohens_kappa as kappa

    if to_failed == to_passed == 0 and not (both_passed and both_failed):
        return None
    return float(kappa(np.array([[both_passed, to_failed], [to_passed, both_failed]]), return_results=False))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Returns p-values that are corrected for their number (Holm 1979, https://www.jstor.org/stable/4615733).

    None stays None, and does not count as a test.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    from statsmodels.stats.multitest import multipletests

    known = [p_value for p_value in p_values if p_value is not None]
    if not known:
        return list(p_values)
    corrected = iter(multipletests(known, method="holm")[1])
    return [None if p_value is None else float(next(corrected)) for p_value in p_values]

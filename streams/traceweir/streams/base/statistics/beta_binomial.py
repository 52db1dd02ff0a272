"""Computes confidence sequences of bounded means, which hold at every time and so after any search.

The mixture is that of Howard, Ramdas, McAuliffe and Sekhon 2021 (Annals of Statistics 49(2), doi:10.1214/20-AOS1991),
proposition 7: a beta distribution over bets against a mean, for values that lie at most `below` under and `above` over it.
"""

from __future__ import annotations

import math

import numpy as np

from traceweir.streams.base.statistics.intervals import Floats

_TUNED_FOR = 200
"""Number of values at which an interval is about as narrow as it can be."""
_HALVINGS = 50


def tuned_rho(variance: float | Floats, error: float) -> float | Floats:
    """Returns the `rho` whose two-sided boundary is about the lowest at this variance.

    >>> round(float(tuned_rho(100, 0.05)), 5)
    12.60056
    """
    return variance / (2 * math.log(1 / error) + math.log(1 + 2 * math.log(1 / error)))


def log_mixture(
    total: float | Floats,
    variance: float | Floats,
    below: float | Floats,
    above: float | Floats,
    rho: float | Floats,
) -> Floats:
    """Returns the logarithm of the mixture, a supermartingale that begins at 1 if the mean is what it is tested for.

    Args:
        total: Sum of the deviations from the tested mean.
        variance: The number of values times `below` times `above`.
        below: How far a value can lie under the mean.
        above: How far a value can lie over the mean.
        rho: At which variance the mixture is best, as `tuned_rho` gives it.
    """
    from scipy.special import betaln

    width = below + above
    strength = np.maximum(rho - below * above, 1e-3 * below * above)

    over = variance + above * total
    under = variance - below * total
    found: Floats = (
        variance / (below * above) * np.log(width)
        - over / (above * width) * np.log(below)
        - under / (below * width) * np.log(above)
        + betaln((strength + under) / (below * width), (strength + over) / (above * width))
        - betaln(strength / (below * width), strength / (above * width))
    )
    return found


def mean_intervals(totals: Floats, numbers: Floats, error: float) -> tuple[Floats, Floats]:
    """Returns intervals for the mean of values from 0 to 1, which contain it at all times with 1 - `error`.

    Args:
        totals: Sums of the values.
        numbers: How many values there are; with none the interval is that from 0 to 1.
        error: The probability that the interval of one sequence ever misses its mean.

    >>> low, high = mean_intervals(np.array([80.0]), np.array([100.0]), 0.05)
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.661, 0.904)
    """
    found = totals / np.maximum(numbers, 1)

    def search(inside: Floats, outside: Floats) -> Floats:
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            kept = _log_against(middle, totals, numbers, error) < math.log(1 / error)
            inside = np.where(kept, middle, inside)
            outside = np.where(kept, outside, middle)
        return outside

    return search(found, np.zeros_like(found)), search(found, np.ones_like(found))


def _log_against(mean: Floats, totals: Floats, numbers: Floats, error: float) -> Floats:
    below = np.clip(mean, 1e-12, 1 - 1e-12)
    above = 1 - below
    rho = tuned_rho(_TUNED_FOR * below * above, error)
    return log_mixture(totals - numbers * below, numbers * below * above, below, above, rho)

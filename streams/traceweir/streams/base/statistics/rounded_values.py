"""Computes quantiles of any number of values in bounded memory: of values that are rounded to four digits."""

from __future__ import annotations

from collections import Counter

DIGITS = 4
"""Significant digits of a rounded value; it differs from the value by 0.05 % at most."""
LARGEST = 1.797e308
"""The largest float with so many digits; one that would be rounded up to infinity is rounded down to it."""
MEDIAN = 0.5
P95 = 0.95


def rounded(value: float) -> float:
    """Returns a value with four significant digits.

    >>> rounded(12345.6), rounded(1 / 3), rounded(901), rounded(-1.7976e308)
    (12350.0, 0.3333, 901.0, -1.797e+308)
    """
    return min(max(float(f"{value:.{DIGITS}g}"), -LARGEST), LARGEST)


class RoundedValues:
    """Counts rounded values.

    >>> values = RoundedValues()
    >>> for each in (5, 1, 3, 100_004):
    ...     values.add(each)
    >>> values.quantile(MEDIAN), values.quantile(P95)
    (3.0, 100000.0)
    """

    def __init__(self) -> None:
        self._counts = Counter[float]()

    def add(self, value: float) -> None:
        """Counts a value."""
        self._counts[rounded(value)] += 1

    def quantile(self, share: float) -> float:
        """Returns the least value that at least this share of all values, of which there is one, do not exceed."""
        wanted = share * self._counts.total()
        seen = 0
        for value in sorted(self._counts):
            seen += self._counts[value]
            if seen >= wanted:
                return value
        raise ValueError("there is no value")

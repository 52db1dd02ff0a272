"""Bounds a rate from below so that one can look after each label, and stop whenever one likes.

Under the claim "the rate is at most m", the likelihood ratio of each higher rate p, averaged over all p from m to 1, is a
nonnegative supermartingale that begins at 1. By Ville's inequality it ever reaches 20 with a probability of 5 % at most
(Robbins 1970, doi:10.1214/aoms/1177696786; Howard, Ramdas, McAuliffe and Sekhon 2021, doi:10.1214/20-AOS1991).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traceweir.streams.base.statistics.intervals import Floats

ERROR = 0.05
"""The probability with which the bound is ever above the rate, at most."""
_STEPS = 60
"""Halvings of the interval of a bound, to the exactness of a double."""


def log_evidence(right: ArrayLike, number: ArrayLike, bar: ArrayLike) -> Floats:
    """Returns the logarithm of the average likelihood ratio of the rates above the bar to the bar itself.

    Args:
        right: How often it was right, from 0 to `number`.
        number: How many were seen.
        bar: The rate of the claim to refute, above 0 and below 1.
    """
    from scipy.special import betainc, betaln

    rights = np.asarray(right, float)
    wrong = np.asarray(number, float) - rights
    at = np.asarray(bar, float)
    with np.errstate(divide="ignore"):
        above = np.log(betainc(wrong + 1, rights + 1, 1 - at))
    found = betaln(rights + 1, wrong + 1) + above - rights * np.log(at) - (wrong + 1) * np.log1p(-at)
    return np.asarray(found, float)


def is_proven(right: int, number: int, bar: float) -> bool:
    """Returns whether labels prove with 95 % confidence that a rate is above the bar, however often one has looked.

    >>> is_proven(19, 19, 0.8), is_proven(20, 20, 0.8), is_proven(80, 100, 0.8)
    (False, True, False)
    """
    return bool(log_evidence(right, number, bar) >= -math.log(ERROR))


def anytime_lower_bound(right: int, number: int) -> float:
    """Returns the bound that the true rate exceeds with 95 % confidence after every label; 0 without evidence.

    >>> round(anytime_lower_bound(20, 20), 3), anytime_lower_bound(0, 0)
    (0.801, 0.0)
    """
    low = 0.0
    high = right / number if number else 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if 0 < middle < 1 and is_proven(right, number, middle):
            low = middle
        else:
            high = middle
    return low


def most_errors(number: NDArray[np.intp], bar: float) -> NDArray[np.intp]:
    """Returns with how many errors at most so many labels still prove the bar; -1 where none is few enough.

    >>> most_errors(np.array([19, 20, 100]), 0.8).tolist()
    [-1, 0, 9]
    """
    enough = np.full(number.shape, -1)
    # At the bar itself nothing is proven.
    too_many = number.copy() + 1
    while np.any(too_many - enough > 1):
        middle = np.clip((enough + too_many) // 2, 0, number)
        proven = log_evidence(number - middle, number, bar) >= -math.log(ERROR)
        enough = np.where(proven, np.maximum(enough, middle), enough)
        too_many = np.where(proven, too_many, np.minimum(too_many, middle))
    return enough

"""Simulates how often the proof of a certificate is wrong if one looks after every label, and how many labels it needs.

A judge is right on each label with its true rate. Nothing depends on the machine: equal seeds give equal tables.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc
from scipy.stats import binom

from traceweir.streams.base.statistics.anytime_bound import ERROR, log_evidence
from traceweir.streams.base.statistics.label_plan import BAR, POWER

RUNS = 1_000
MOST = 2_000
"""Labels up to which one looks."""
RATES = (0.5, 0.8, 0.85, 0.9, 0.95, 0.99)
"""How often the judge is right: its TPR, or its TNR."""


def run(runs: int = RUNS) -> None:
    """Prints the table."""
    print("| true rate | coverage after every label | of a bound for one look | half | 80 % | one look, planned |")
    print("|---|---|---|---|---|---|")
    numbers = np.arange(1, MOST + 1)
    for place, rate in enumerate(RATES):
        rights = np.cumsum(np.random.default_rng(place).random((runs, MOST)) < rate, axis=1)
        # The bound is above the true rate exactly if the labels prove that the rate is above itself.
        missed = (log_evidence(rights, numbers, rate) >= -math.log(ERROR)).any(axis=1)
        once = (betainc(rights, numbers - rights + 1, rate) <= ERROR).any(axis=1)
        proven = log_evidence(rights, numbers, BAR) >= -math.log(ERROR)
        first = np.where(proven.any(axis=1), proven.argmax(axis=1) + 1, MOST + 1)
        half, most = (_labels(float(np.quantile(first, share, method="higher"))) for share in (0.5, POWER))
        cells = (f"{rate}", f"{1 - missed.mean():.3f}", f"{1 - once.mean():.3f}", half, most, _planned(rate))
        print(f"| {' | '.join(cells)} |", flush=True)


def _labels(number: float) -> str:
    return f"{number:,.0f}" if number <= MOST else "none"


def _planned(rate: float) -> str:
    """Returns the least number of labels with which an exact test, made once, proves the bar with a probability of 80 %."""
    if rate <= BAR:
        return "none"
    numbers = np.arange(1, MOST + 1)
    least = binom.isf(ERROR, numbers, BAR) + 1
    succeeds = binom.sf(least - 1, numbers, rate) >= POWER
    # The probability rises and falls by turns: from this number on it is always enough.
    never_less = np.logical_and.accumulate(succeeds[::-1])[::-1]
    return f"{numbers[never_less.argmax()]:,}" if never_less.any() else "none"

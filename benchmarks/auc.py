"""Computes how well a value separates successes from failures: the area under the ROC curve, and its 95 % interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

DRAWS = 10_000
_AT_ONCE = 500
_FEW = 0.05
"""If more than this share of bootstrap draws contains one class only, the other draws give no valid interval."""


def auc(values: Sequence[float], succeeded: Sequence[bool]) -> float | None:
    """Returns the probability that a random success has a greater value than a random failure; ties count half.

    The result is U / (successes x failures), where U is the statistic of Mann and Whitney (Annals of Mathematical
    Statistics 18, 1947). It equals the area under the ROC curve (Hanley and McNeil, Radiology 143, 1982). A result of
    0.5 means no separation; below 0.5, failures have the greater values.

    Returns:
        A number from 0 to 1; None if there are only successes or only failures.

    >>> auc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    >>> auc([1.0, 1.0], [True, True]) is None
    True
    """
    wins = _wins(values, succeeded)
    return float(wins.mean()) if wins.size else None


def interval(
    values: Sequence[float], succeeded: Sequence[bool], groups: Sequence[Hashable], *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float] | None:
    """Returns the 95 % interval of `auc`: the 2.5th and the 97.5th percentile of a bootstrap over groups.

    Groups are drawn with replacement. Sessions of one task are similar, so a task is drawn with all its sessions or
    not at all.

    Args:
        values: The value of each session.
        succeeded: Whether each session was a success.
        groups: The group of each session.
        draws: Number of draws of the bootstrap.
        seed: Seed of the random generator; equal seeds result in equal intervals.

    Returns:
        The lower and the upper end; None if the AUC is undefined, overall or in more than 5 % of the draws.
    """
    wins = _wins(values, succeeded)
    if not wins.size:
        return None
    label = np.asarray(succeeded, dtype=bool)
    number = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    group_of = np.array([number[group] for group in groups])
    generator = np.random.default_rng(seed)
    found = []
    for start in range(0, draws, _AT_ONCE):
        drawn = generator.integers(len(number), size=(min(_AT_ONCE, draws - start), len(number)))
        times = np.stack([np.bincount(row, minlength=len(number)) for row in drawn])[:, group_of]
        successes, failures = times[:, label], times[:, ~label]
        pairs = successes.sum(axis=1) * failures.sum(axis=1)
        won = ((successes @ wins) * failures).sum(axis=1)
        found.append(won[pairs > 0] / pairs[pairs > 0])
    defined = np.concatenate(found)
    if len(defined) < (1 - _FEW) * draws:
        return None
    low, high = np.percentile(defined, (2.5, 97.5))
    return float(low), float(high)


def _wins(values: Sequence[float], succeeded: Sequence[bool]) -> np.ndarray:
    """Returns, for each pair of success and failure, 1 if the success has the greater value, 0.5 if equal, else 0."""
    number, label = np.asarray(values, dtype=float), np.asarray(succeeded, dtype=bool)
    if number.shape != label.shape:
        raise ValueError(f"the numbers of values and labels must be equal, but are {number.size} and {label.size}")
    if not np.isfinite(number).all():
        raise ValueError("values must be finite; leave out sessions without a value")
    success, failure = number[label][:, None], number[~label][None, :]
    wins: np.ndarray = (success > failure) + 0.5 * (success == failure)
    return wins

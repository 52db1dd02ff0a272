"""Reads the threshold of a criterion."""

from __future__ import annotations

import math
import sys
from typing import Literal

from pydantic import JsonValue

from traceweir.scorers.base import Direction
from traceweir.scorers.evaluation.config_problems import shown

ANY_NUMBER = (-sys.float_info.max, sys.float_info.max)
"""The range of a metric whose scorer is not known."""


def in_words(lowest: float, highest: float) -> str:
    """Returns the values from `lowest` to `highest` in words, to follow "a number".

    >>> in_words(0, 1), in_words(0, math.inf)
    ('from 0 to 1', 'of at least 0')
    """
    return f"of at least {lowest:g}" if math.isinf(highest) else f"from {lowest:g} to {highest:g}"


def status_of(value: float, threshold: float | None, direction: Direction) -> Literal["PASSED", "FAILED"]:
    """Returns the status of a value; without a threshold every value has PASSED.

    >>> status_of(0.5, 0.5, "higher"), status_of(0.5, 0.4, "lower")
    ('PASSED', 'FAILED')
    """
    if threshold is None or (value >= threshold if direction == "higher" else value <= threshold):
        return "PASSED"
    return "FAILED"


def threshold_of(name: str, value: JsonValue, within: tuple[float, float] | None, problems: list[str]) -> float | None:
    """Returns the threshold: a number, or as in ADK a string with a number, within the metric's range.

    If the threshold is invalid, returns None and appends the reason to `problems`.
    """
    if within is None:
        if value is not None:
            problems.append(f"{name}: is informational and takes no threshold; write {{}} instead")
        return None
    lowest, highest = within
    rule = "the threshold must be a number"
    if within is not ANY_NUMBER:
        rule += f" {in_words(lowest, highest)}"
    if value is None:
        problems.append(f"{name}: {rule}; none is given")
        return None
    try:
        number = math.nan if isinstance(value, bool | dict | list) else float(value)
    except (ValueError, OverflowError):
        # An integer of more than 308 digits overflows.
        number = math.nan
    if not (math.isfinite(number) and lowest <= number <= highest):
        problems.append(f"{name}: {rule}, not {shown(value)}")
        return None
    return number

"""Reads the threshold of a criterion."""

from __future__ import annotations

import math
import sys

from pydantic import JsonValue

from traceweir.scorers.evaluation.config_problems import shown

ANY_NUMBER = (-sys.float_info.max, sys.float_info.max)
"""The range of a metric whose scorer is not known."""


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
        rule += f" from {lowest:g} to {highest:g}"
    if value is None:
        problems.append(f"{name}: {rule}; none is given")
        return None
    try:
        number = math.nan if isinstance(value, bool | dict | list) else float(value)
    except (ValueError, OverflowError):
        # An integer of more than 308 digits overflows.
        number = math.nan
    if not lowest <= number <= highest:
        problems.append(f"{name}: {rule}, not {shown(value)}")
        return None
    return number

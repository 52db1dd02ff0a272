"""Counts the work of a call, so that a test can state how work grows without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_made(call: Callable[[], object]) -> int:
    """Returns the number of functions, methods and rounds of generators that a call runs."""
    count = 0

    def profile(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


def lines_run(call: Callable[[], object]) -> int:
    """Returns the number of lines of Python that a call runs, with the rounds of loops and comprehensions."""
    count = 0

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # noqa: TID251  # it counts lines, and asks of none what it does
    try:
        call()
    finally:
        sys.settrace(before)  # noqa: TID251  # the same
    return count

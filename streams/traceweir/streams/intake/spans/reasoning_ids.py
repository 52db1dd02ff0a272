"""Gives reasoning traces their ids. The gate reads these ids too, so this module imports no reader of spans."""

from __future__ import annotations

import re

_MOVED = re.compile(r"(kp:trace:([0-9a-f]{32}):[0-9a-f]{16})~2")


def reasoning_trace_id(trace_id: str, span_id: str) -> str:
    """Returns the id of the document of the invocation whose outermost span has this id."""
    return f"kp:trace:{trace_id}:{span_id}"


def moved_id(name: str) -> str:
    """Returns the id of a reasoning trace in the session to which it has moved from that of its trace id.

    The gate refuses an id that belongs to another session.
    """
    return f"{name}~2"


def former_place(name: str) -> tuple[str, str] | None:
    """Returns the former id and session of a reasoning trace that has moved; None if this is no id of such a trace.

    >>> former_place(moved_id(reasoning_trace_id("a" * 32, "b" * 16))) == (f"kp:trace:{'a' * 32}:{'b' * 16}", "a" * 32)
    True
    """
    found = _MOVED.fullmatch(name)
    return (found[1], found[2]) if found else None

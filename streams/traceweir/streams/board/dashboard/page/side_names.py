"""Names the two sides of a comparison by what tells them apart."""

from __future__ import annotations

from traceweir.streams.board.dashboard.page.filters import LABELS
from traceweir.streams.board.dashboard.page.formats import cut, moment
from traceweir.streams.board.store.selection import Selection

MAX_CHARS = 60
"""Longest value of a dimension in a name."""


def names_of_sides(first: Selection, second: Selection) -> tuple[str, str]:
    """Returns a name for each of two selections: the dimensions, and the span of time, in which they differ.

    >>> from datetime import datetime
    >>> day = [datetime.fromisoformat(f"2026-01-{number}T00:00:00Z") for number in (30, 31)]
    >>> names_of_sides(*(Selection(*day, {"app_name": "rail", "agent_version": version}) for version in ("1", "2")))
    ('agent version 1', 'agent version 2')
    >>> names_of_sides(Selection(*day), Selection(*day, {"model": "m"}))
    ('any model', 'model m')
    """
    return _name(first, second), _name(second, first)


def _name(own: Selection, other: Selection) -> str:
    parts = [
        f"{label} {cut(own.dimensions[name], MAX_CHARS)}" if name in own.dimensions else f"any {label}"
        for name, label in LABELS.items()
        if own.dimensions.get(name) != other.dimensions.get(name)
    ]
    if (own.since, own.until) != (other.since, other.until) or not parts:
        parts.append(f"{moment(own.since)} to {moment(own.until)} UTC")
    return ", ".join(parts)

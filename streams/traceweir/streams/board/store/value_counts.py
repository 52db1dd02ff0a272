"""Defines how many results of a metric have which value, and which answer."""

from __future__ import annotations

from pydantic import BaseModel


class Bin(BaseModel):
    """A range of values of a metric, and how many results are in it."""

    low: float
    """Lower bound; part of the range."""
    high: float
    """Upper bound; part of the last range only."""
    results: int
    """Number of results."""


class CategoryCount(BaseModel):
    """How many results of a categorical criterion have one answer."""

    level: str
    """What was measured: an invocation, a trace or the session."""
    category: str
    """The answer."""
    value: float | None
    """The number that the criterion gives the answer; null if results have several, of different configs."""
    results: int
    """Number of results with this answer."""
    share: float
    """Share of the results with an answer at this level, from 0 to 1."""
    share_low: float
    """Lower end of Wilson's 95 % interval of the share."""
    share_high: float
    """Upper end of Wilson's 95 % interval of the share."""

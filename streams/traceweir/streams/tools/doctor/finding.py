"""Defines what a check finds."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "failure", "not checked"]


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    """What was looked at, in a word or two."""
    state: State
    """`failure`: a worker cannot run, or records are lost to it. `warning`: something is worse than it has to be."""
    text: str
    """What was found, with the way out of a problem; can quote hostile text."""

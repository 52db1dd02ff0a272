"""Suggests the nearest known name for an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_NAME_CHARS = 100
"""A longer name is similar to none; the search would take time in proportion to its length."""
MAX_KNOWN = 100
"""Maximum number of known names that are compared and listed."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message: the nearest known name, if one is similar, and the list of all known names.

    >>> did_you_mean("matchTyp", ["matchType", "ignoreArgs"])
    "did you mean 'matchType'? Known: ignoreArgs, matchType"
    >>> did_you_mean("response_match", ["response_matches", "response_match_score"])
    "did you mean 'response_match_score'? Known: response_match_score, response_matches"
    >>> did_you_mean("zzz", ["matchType"])
    'known: matchType'
    """
    names = sorted(known)
    others = len(names) - MAX_KNOWN
    names = names[:MAX_KNOWN]
    # A name without its last word is likelier than one with another letter.
    near = [each for each in names if each.startswith(f"{name}_") and "_" not in each.removeprefix(f"{name}_")]
    if len(near) != 1:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.6) if len(name) <= MAX_NAME_CHARS else []
    listed = ", ".join(names if others <= 0 else [*names, f"and {others} more"])
    if near:
        return f"did you mean {near[0]!r}? Known: {listed}"
    return f"known: {listed}" if names else "no names are known here"

"""Suggests the nearest known name for an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message: the nearest known name, if one is similar, and the list of all known names.

    >>> did_you_mean("matchTyp", ["matchType", "ignoreArgs"])
    "did you mean 'matchType'? Known: ignoreArgs, matchType"
    >>> did_you_mean("zzz", ["matchType"])
    'known: matchType'
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}? Known: {', '.join(names)}"
    return f"known: {', '.join(names)}" if names else "no names are known here"

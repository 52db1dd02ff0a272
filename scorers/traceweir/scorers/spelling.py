"""What somebody may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a message, and all that are known.

    >>> did_you_mean("matchTyp", ["matchType", "ignoreArgs"])
    "did you mean 'matchType'? Known: ignoreArgs, matchType"
    >>> did_you_mean("zzz", ["matchType"])
    'known: matchType'
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}? Known: {', '.join(names)}"
    return f"known: {', '.join(names)}" if names else "there is none to choose from"

"""Redacts matches of the patterns in a config.

The patterns run on RE2, which does not backtrack: finding a match takes time proportional to the length of the text,
for every pattern and every text. Finding all matches can take quadratic time if each match scans far ahead; therefore
long texts are split into pieces.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from traceweir.scorers.text.patterns import compiled

_TOKEN = re.compile(r"\[REDACTED:[a-z0-9_]+\]")
PIECE = 8_000
"""Maximum number of characters of a piece. A longer text is split, if possible at white space near the end of a piece.

A match across two pieces is not found.
"""
_MAX_SPLIT_DISTANCE = 1_000
"""Maximum number of characters between the end of a full piece and the white space where the piece is split."""
MAX_UNUSABLE = 10
"""Maximum number of unusable patterns that are looked for: RE2 needs 0.1 s to find that one of them is too large."""
MAX_STEPS = 400_000
"""Maximum number of steps of all patterns together, as RE2 compiles them; RE2 allows about as many for one pattern.

`EMP-[0-9]{4}` has 10 steps. A repeated class of Unicode, such as `\\pL{40}`, has thousands.
"""


def unusable_patterns(patterns: Mapping[str, str]) -> list[str]:
    """Returns a problem for each pattern that cannot be used; each begins with a dot and the kind, or with a colon.

    >>> unusable_patterns({"employee": "EMP-[0-9]+", "any": "x*"})
    ['.any: the pattern matches the empty text, and therefore everywhere']
    """
    problems = []
    steps = 0
    for kind, pattern in patterns.items():
        try:
            steps += usable_pattern(pattern).programsize
        except ValueError as error:
            problems.append(f".{kind}: {error}")
        if steps > MAX_STEPS:
            problems.append(
                f": the patterns together have more than {MAX_STEPS:,} steps; remove some, or repeat less in them"
            )
        if steps > MAX_STEPS or len(problems) >= MAX_UNUSABLE:
            break
    return problems


def usable_pattern(pattern: str) -> Any:
    """Returns the compiled pattern.

    Raises:
        ValueError: RE2 does not accept the pattern, or the pattern matches the empty text.
    """
    found = compiled(pattern)
    if found.search(""):
        raise ValueError("the pattern matches the empty text, and therefore everywhere")
    return found


def redact_custom(text: str, patterns: Mapping[str, str]) -> str:
    """Returns the text with each match of a pattern replaced by a token of its kind.

    The text is searched in pieces of up to 8,000 characters. Existing tokens stay unchanged.

    Args:
        text: Any text.
        patterns: The patterns in RE2's syntax, by kind.

    >>> redact_custom("EMP-4711 and [REDACTED:email] of EMP-12", {"employee": r"EMP-\\d+", "word": "EMAIL|email"})
    '[REDACTED:employee] and [REDACTED:email] of [REDACTED:employee]'
    """
    if not patterns or len(text) <= PIECE:
        return _redacted(text, patterns)
    return "".join([_redacted(piece, patterns) for piece in pieces(text)])


def pieces(text: str) -> Iterator[str]:
    """Yields the pieces of a text, each of up to 8,000 characters; a text without characters has none."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            blank = max(text.rfind(mark, end - _MAX_SPLIT_DISTANCE, end) for mark in " \n\t")
            end = blank if blank > start else end
        yield text[start:end]
        start = end


def _redacted(text: str, patterns: Mapping[str, str]) -> str:
    for kind, pattern in patterns.items():
        matches = list(compiled(pattern).finditer(text))
        if not matches:
            continue
        tokens = deque(match.span() for match in _TOKEN.finditer(text))
        parts = []
        end = 0
        for match in matches:
            start, stop = match.span()
            while tokens and tokens[0][1] <= start:
                tokens.popleft()
            if start == stop or (tokens and tokens[0][0] < stop):
                continue
            parts += [text[end:start], f"[REDACTED:{kind}]"]
            end = stop
        text = "".join([*parts, text[end:]])
    return text

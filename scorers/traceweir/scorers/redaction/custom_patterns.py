"""Patterns that a config brings.

They run on RE2, which never backtracks: to find one match takes time in proportion to the text, whoever writes the config and whatever
the text holds. To find all of them may take its square, if each looks far ahead, so texts are looked at a piece at a time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import re2

_TOKEN = re.compile(r"\[REDACTED:[a-z0-9_]+\]")
_MEMORY = 8 << 20
PIECE = 8_000
"""Characters that are looked at together. A longer text is cut, at a blank if one is near, and a match across a cut is not found."""
_NEAR = 1_000


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The pattern, compiled.

    Raises:
        ValueError: RE2 does not take it, or it matches nothing at all.

    >>> compiled("(?=a)")
    Traceback (most recent call last):
    ...
    ValueError: RE2 does not take it: invalid perl operator: (?=
    """
    options = re2.Options()
    options.log_errors, options.max_mem = False, _MEMORY
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"RE2 does not take it: {error.args[0].decode()}") from None
    if found.search(""):
        raise ValueError("it matches the empty text, and so everywhere")
    return found


def redact_own(text: str, patterns: Mapping[str, str]) -> str:
    """The text, up to 8,000 characters at a time, with each match of a pattern replaced by a token of its kind.

    What is redacted already stays.

    Args:
        text: Any text.
        patterns: By kind, the pattern.

    >>> redact_own("EMP-4711 and [REDACTED:email] of EMP-12", {"employee": r"EMP-\\d+", "word": "EMAIL|email"})
    '[REDACTED:employee] and [REDACTED:email] of [REDACTED:employee]'
    """
    if not patterns or len(text) <= PIECE:
        return _redacted(text, patterns)
    return "".join([_redacted(piece, patterns) for piece in _pieces(text)])


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            blank = max(text.rfind(mark, end - _NEAR, end) for mark in " \n\t")
            end = blank if blank > start else end
        yield text[start:end]
        start = end


def _redacted(text: str, patterns: Mapping[str, str]) -> str:
    for kind, pattern in patterns.items():
        matches = list(compiled(pattern).finditer(text))
        if not matches:
            continue
        tokens = deque(match.span() for match in _TOKEN.finditer(text))
        parts, end = [], 0
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

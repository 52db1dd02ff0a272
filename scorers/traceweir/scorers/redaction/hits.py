"""Holds the places that a rule found in a text, and replaces them by tokens."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

TOKEN = re.compile(r"\[REDACTED:[a-z0-9_]+\]")


class Hit(NamedTuple):
    """A part of a text that must not be published."""

    start: int
    end: int
    rank: int
    """Order of kinds: where hits overlap, the lowest rank names the kind."""
    kind: str


def token(kind: str) -> str:
    """Returns the text that replaces a secret of this kind.

    >>> token("email")
    '[REDACTED:email]'
    """
    return f"[REDACTED:{kind}]"


def replaced(text: str, hits: Iterable[Hit]) -> str:
    """Returns the text with every hit replaced by a token. Overlapping hits become one token.

    Existing tokens stay: a hit that starts within a token is dropped, and a hit that ends within a token ends before it.

    >>> replaced("a secret here", [Hit(2, 8, 1, "password")])
    'a [REDACTED:password] here'
    """
    tokens = [match.span() for match in TOKEN.finditer(text)] if "[REDACTED:" in text else []
    parts: list[str] = []
    end = 0
    for hit in merged(outside(hits, tokens)):
        parts += [text[end : hit.start], token(hit.kind)]
        end = hit.end
    return "".join([*parts, text[end:]])


def merged(hits: Iterable[Hit]) -> list[Hit]:
    """Returns the hits in order, with overlapping hits united under the kind of the lowest rank."""
    united: list[Hit] = []
    for hit in sorted(hits):
        if united and hit.start < united[-1].end:
            last = united[-1]
            named = min(last, hit, key=lambda one: one.rank)
            united[-1] = Hit(last.start, max(last.end, hit.end), named.rank, named.kind)
        else:
            united.append(hit)
    return united


def outside(hits: Iterable[Hit], tokens: list[tuple[int, int]]) -> Iterable[Hit]:
    """Yields the hits that contain text outside of tokens, cut so that no token is cut."""
    if not tokens:
        yield from hits
        return
    starts = [start for start, _ in tokens]
    for hit in hits:
        first = bisect_right(starts, hit.start) - 1
        if first >= 0 and hit.start < tokens[first][1]:
            continue
        last = bisect_left(starts, hit.end) - 1
        end = min(hit.end, tokens[last][0]) if last >= 0 and hit.end < tokens[last][1] else hit.end
        yield hit._replace(end=end)

"""Compares two texts word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

MAX_WORDS = 600
"""Words of each text that are compared; the effort grows with their product."""
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


class Piece(NamedTuple):
    """A part of a text that both texts have, or only one of them."""

    side: Literal["both", "first", "second"]
    """Which texts have the part."""
    text: str
    """The part."""


def words_of(text: str) -> list[str]:
    """Returns the words of a text, and what is between them.

    >>> words_of("one seat.")
    ['one', ' ', 'seat', '.']
    """
    return _WORD.findall(text)


def differences(first: str, second: str) -> list[Piece]:
    """Returns the parts of two texts, in order.

    >>> [tuple(piece) for piece in differences("one seat please", "two seats please")]
    [('first', 'one'), ('second', 'two'), ('both', ' '), ('first', 'seat'), ('second', 'seats'), ('both', ' please')]
    """
    left = words_of(first)[:MAX_WORDS]
    right = words_of(second)[:MAX_WORDS]
    found = []
    for operation, begin, end, other_begin, other_end in SequenceMatcher(None, left, right, False).get_opcodes():
        if operation == "equal":
            found.append(Piece("both", "".join(left[begin:end])))
            continue
        if begin < end:
            found.append(Piece("first", "".join(left[begin:end])))
        if other_begin < other_end:
            found.append(Piece("second", "".join(right[other_begin:other_end])))
    return found

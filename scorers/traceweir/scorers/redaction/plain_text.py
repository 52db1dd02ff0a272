"""Takes out what hides a text from patterns and not from readers: characters that are not seen, and other forms of letters.

A zero-width space within a token, a soft hyphen, a full-width letter and a letter of mathematics look like the token, or like
nothing. A plain copy is searched beside the text, and a hit removes the part of the text that it came from.

The copy is made in blocks. A block costs what its distinct characters cost, unless it has marks that join the letter before
them; which part of a block a hit came from is worked out for the blocks with hits only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from traceweir.scorers.redaction.encodings import Replacement, View

_BLOCK = 512
"""Characters of the largest block. Python sorts the marks of a letter in quadratic time, so it also bounds these."""
_CAN_CHANGE = re.compile(
    # All but the common characters that stay as they are whatever follows: Latin, Greek, Cyrillic, Hebrew and Arabic letters,
    # punctuation, arrows, symbols, kana, ideographs, Hangul syllables and emoji.
    "[^\\0-\x7f\u00c0-\u0131\u014a-\u017e\u0388-\u03cf\u03fa-\u0482\u048a-\u0586\u05c8-\u05ff\u061d-\u064a\u1e00-\u1e99"
    "\u2010\u2012-\u2016\u2018-\u2023\u2190-\u222b\u2231-\u2328\u2500-\u2a0b\u3001-\u3029\u3041-\u3096\u30a0-\u30fe"
    "\u3400-\u9fff\uac00-\ud7a3\U0001f252-\U0001fbef]"
)
_UNSEEN = re.compile(
    # Unicode's property Default_Ignorable_Code_Point (DerivedCoreProperties), and the other format characters (Cf).
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_FOLLOWS = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")
"""Vowels and ends of a Korean syllable that is written in parts."""


def plain(text: str) -> View | None:
    """Returns the text in NFKC without characters that nobody sees; None if it is so already.

    >>> view = plain("a\u200bb \uff11")
    >>> view.text, view.source(0, 2), view.source(3, 4)
    ('ab 1', (0, 3), (4, 5))
    """
    if text.isascii():
        return None
    view = View(text, _changed_blocks(text), within=_replacements)
    return view if view.changed else None


def plain_name(name: str) -> str:
    """Returns the name as `plain` writes it."""
    view = plain(name)
    return name if view is None else view.text


def _changed_blocks(text: str) -> Iterator[Replacement]:
    start = 0
    while start < len(text):
        end = min(start + _BLOCK, len(text))
        if end < len(text):
            # A block begins with a character that joins nothing before it, unless there is none for half a block.
            end = next((at for at in range(end, end - _BLOCK // 2, -1) if _read(text[at])), end)
        block = text[start:end]
        copy = block if block.isascii() else _copy(block)
        if copy != block:
            yield start, end, copy
        start = end


def _copy(block: str) -> str:
    reads = {char: _read(char) for char in set(_CAN_CHANGE.findall(block))}
    if None in reads.values():
        return _normal(block)
    for char, read in reads.items():
        block = block.replace(char, read or "")
    return block


def _replacements(block: str) -> Iterator[Replacement]:
    """Yields the parts of a block that are one character in NFKC, with what they become: a letter with its marks."""
    reads = list(map(_read, block))
    start = 0
    while start < len(block):
        read = reads[start]
        end = ahead = start + 1
        while read != "" and ahead < len(block) and not reads[ahead]:
            ahead += 1
            end = ahead if reads[ahead - 1] is None else end
        written = block[start:end]
        if read is None or end > start + 1:
            read = _normal(written)
        if read != written:
            yield start, end, read
        start = end


@lru_cache(maxsize=4_096)
def _read(char: str) -> str | None:
    """Returns what a character becomes: nothing if it is not seen, None if that depends on the letter before it."""
    if _UNSEEN.match(char):
        return ""
    first = unicodedata.normalize("NFKD", char)[0]
    return None if unicodedata.category(first)[0] == "M" or _FOLLOWS.match(first) else _normal(char)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text))

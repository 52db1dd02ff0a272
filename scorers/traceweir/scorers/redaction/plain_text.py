"""Takes out what hides a text from patterns and not from readers: characters that are not seen, and other forms of letters.

A zero-width space within a token, a soft hyphen, a full-width letter and a letter of mathematics look like the token, or like
nothing. A plain copy is searched beside the text, and a hit removes the part of the text that it came from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from traceweir.scorers.redaction.encodings import View

_NOT_ASCII = re.compile(r"[A-Za-z0-9]?[^\x00-\x7f]+")
"""The character before can belong to an accent that stands alone."""
_UNSEEN = re.compile(
    # Unicode's property Default_Ignorable_Code_Point (DerivedCoreProperties), and the other format characters (Cf).
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_MAX_CLUSTER = 32
"""Characters that are normalised together: Python sorts the accents of a letter in quadratic time."""
_FOLLOWS = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")
"""Vowels and ends of a Korean syllable that is written in parts."""


def plain(text: str) -> View | None:
    """Returns the text in NFKC without characters that nobody sees; None if it is so already.

    >>> view = plain("a\u200bb \uff11")
    >>> view.text, view.source(0, 2), view.source(3, 4)
    ('ab 1', (0, 3), (4, 5))
    """
    if text.isascii() or (unicodedata.is_normalized("NFKC", text) and _UNSEEN.search(text) is None):
        return None
    view = View(text, _replacements(text))
    return view if view.changed else None


def plain_name(name: str) -> str:
    """Returns the name as `plain` writes it."""
    view = plain(name)
    return name if view is None else view.text


def _replacements(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _NOT_ASCII.finditer(text):
        run = match[0]
        if unicodedata.is_normalized("NFKC", run) and _UNSEEN.search(run) is None:
            continue
        for start, end in _clusters(run):
            written = _UNSEEN.sub("", run[start:end])
            read = unicodedata.normalize("NFKC", written)
            if read != run[start:end]:
                yield match.start() + start, match.start() + end, read


def _clusters(run: str) -> Iterator[tuple[int, int]]:
    """Yields the parts of a run that are one character in NFKC: a character with what follows it, or an unseen one."""
    start = 0
    for at in range(1, len(run) + 1):
        if at < len(run):
            follows = unicodedata.combining(run[at]) or _FOLLOWS.match(run[at])
            if follows and not _UNSEEN.match(run[at - 1]) and at - start < _MAX_CLUSTER:
                continue
        yield start, at
        start = at

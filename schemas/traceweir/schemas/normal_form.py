"""Unicode's normal forms, in time that grows with the text's length whatever the text is."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_MARKS = 30
"""Combining marks in a row. No language's text has more; this is the number of Unicode's Stream-Safe Text Format, UAX #15."""
JOINER = "\u034f"
"""The combining grapheme joiner: nothing to be seen, and no mark is put in order across it."""
_MAY_BE_MARKS = re.compile(rf"(?:[^\w\x00-\u02ff]|[\uff9e\uff9f]){{{MOST_MARKS + 1},}}")
"""A run in which all marks are found, and symbols and some punctuation, too; letters are marks in half-width katakana only."""


def normal_form(form: NormalForm, text: str) -> str:
    """The text in a normal form, made stream-safe before: `JOINER` comes after every 30 combining marks in a row.

    Marks are put in order one by one, each by going back over those before it: without the joiners, a few kilobytes of marks would take
    seconds and a megabyte minutes, in which no other thread runs. A text without such a row gives what `unicodedata.normalize` gives.

    >>> normal_form("NFC", "e\u0301")
    'é'
    >>> len(normal_form("NFC", "x" + "\u0301" * 61)) - 62
    2
    """
    return unicodedata.normalize(form, text if text.isascii() else _MAY_BE_MARKS.sub(_stream_safe, text))


def _stream_safe(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in run.group():
        is_mark = unicodedata.combining(unicodedata.normalize("NFKD", character)[0])
        marks = marks + 1 if is_mark else 0
        if marks > MOST_MARKS:
            kept.append(JOINER)
            marks = 1
        kept.append(character)
    return "".join(kept)

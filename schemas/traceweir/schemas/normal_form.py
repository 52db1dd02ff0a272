"""Computes Unicode's normal forms in time linear in the length of the text, for every text."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

MAX_MARKS = 30
"""Maximum number of consecutive combining marks, from the Stream-Safe Text Format (UAX #15); no language has more."""
JOINER = "\u034f"
"""The combining grapheme joiner, which is invisible; normalisation reorders no mark across it."""
_MAY_BE_MARKS = re.compile(rf"(?:[^\w\x00-\u02ff]|[\uff9e\uff9f]){{{MAX_MARKS + 1},}}")
"""Matches runs of marks, symbols and some punctuation; the only letters among the marks are half-width katakana."""


def normal_form(form: NormalForm, text: str) -> str:
    """Returns the text in a normal form, after inserting `JOINER` after every 30 consecutive combining marks.

    Normalisation sorts consecutive marks in quadratic time: without the joiners, a few kilobytes of marks would take
    seconds and a megabyte minutes, during which no other thread runs. For a text without such a run of marks, the
    result equals that of `unicodedata.normalize`.

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
        if marks > MAX_MARKS:
            kept.append(JOINER)
            marks = 1
        kept.append(character)
    return "".join(kept)

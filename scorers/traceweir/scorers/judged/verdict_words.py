"""Reads a verdict word: with the case, the marks and the languages in which models write it."""

from __future__ import annotations

import re
from unicodedata import normalize

from pydantic import JsonValue

_YES = frozenset({"yes", "예", "네", "是", "是的", "はい", "ja", "oui", "sí", "sim"})
_NO = frozenset({"no", "아니오", "아니요", "否", "不是", "いいえ", "nein", "non", "não"})
_WORDS = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)
"""From the first letter or digit to the last one."""


def unmarked(text: str) -> str:
    """Returns a text without blanks, punctuation and Markdown around it, in letters of usual width.

    >>> unmarked("**Yes.**"), unmarked("\uff4e\uff4f")
    ('Yes', 'no')
    """
    found = _WORDS.search(normalize("NFKC", text))
    return found[0] if found else ""


def plain_word(value: JsonValue) -> str:
    """Returns a value as a word in lower case without marks.

    >>> plain_word("`Not applicable`."), plain_word(True)
    ('not applicable', 'true')
    """
    return unmarked(str(value)).lower()


def yes_or_no(value: JsonValue) -> bool | None:
    """Returns whether a text is the word yes; None for a word that is neither yes nor no, and for no text.

    >>> yes_or_no("Yes!"), yes_or_no("아니요"), yes_or_no("yes and no"), yes_or_no(True)
    (True, False, None, None)
    """
    word = plain_word(value) if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else None

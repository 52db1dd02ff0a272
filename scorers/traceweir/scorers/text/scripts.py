"""Tells in which script a text is written."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from traceweir.schemas.base import JsonObject

_RANGES = (
    (0x0400, 0x052F, "Cyrillic"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x1100, 0x11FF, "Hangul"),
    (0x3040, 0x30FF, "Japanese"),
    (0x3400, 0x9FFF, "Han"),
    (0xAC00, 0xD7A3, "Hangul"),
)
_READ = 1_000
"""Letters of a text that are read at most."""
_JAPANESE = 0.1
"""Share of kana among the letters of a text in Chinese characters from which the text is Japanese."""


def script_of(text: str) -> str:
    """Returns the script of most letters of a text; `Latin` also stands for all scripts that are not told apart.

    >>> script_of("Hello"), script_of("서울 weather"), script_of("図書館は土曜日に開きます"), script_of("")
    ('Latin', 'Hangul', 'Japanese', 'Latin')
    """
    if text.isascii():
        return "Latin"
    counts = Counter(map(_script_of_letter, islice(filter(str.isalpha, text), _READ)))
    kana = counts["Japanese"]
    if kana and kana >= _JAPANESE * (kana + counts["Han"]):
        counts["Japanese"] += counts.pop("Han", 0)
    # The letters of a Latin word are many, and a Korean or Chinese word has few.
    counts["Latin"] //= 3
    return counts.most_common(1)[0][0] if counts else "Latin"


def script_details(compat: str | None, *texts: str) -> JsonObject:
    """Returns the details that say in which script compared texts are, and by which rules; empty for Latin."""
    script = script_of(" ".join(texts))
    if script == "Latin":
        return {}
    return {"script": script} if compat is None else {"script": script, "compat": compat}


def _script_of_letter(character: str) -> str:
    code = ord(character)
    return next((script for first, last, script in _RANGES if first <= code <= last), "Latin")

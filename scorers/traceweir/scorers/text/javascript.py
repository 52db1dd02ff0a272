"""Reads text as JavaScript does, for metrics that reproduce the values of a JavaScript package."""

from __future__ import annotations

import re

WHITE_SPACE = re.compile("[\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
r"""The characters that `\s` matches in JavaScript: other control characters than in Python, and a byte order mark."""


def utf16_units(text: str) -> str:
    """Returns a text with a character for each UTF-16 code unit.

    A character outside the Basic Multilingual Plane becomes two characters.

    >>> len(utf16_units("a👍"))
    3
    """
    if not text or max(text) <= "\uffff":
        return text
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(map(chr, units))

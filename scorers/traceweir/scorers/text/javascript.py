"""Where JavaScript reads text otherwise than Python, for metrics that give the numbers of a JavaScript package."""

from __future__ import annotations

import re

WHITE_SPACE = re.compile("[\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
r"""What `\s` means there: other control characters than here, and the byte order mark."""


def utf16_units(text: str) -> str:
    """A text with each UTF-16 code unit as one character: what is outside the Basic Multilingual Plane becomes two.

    >>> len(utf16_units("a👍"))
    3
    """
    if not text or max(text) <= "\uffff":
        return text
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(map(chr, units))

"""Folds spellings of the same word or number: compatibility forms, accents, vowel signs, digits and grouped numbers."""

from __future__ import annotations

import re
import unicodedata

from traceweir.schemas.normal_form import normal_form

_ACCENTS = "\u0300-\u036f"
_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
"""Hebrew and Arabic vowel signs, which most texts omit, and the Arabic elongation character (tatweel)."""

MAX_GROWTH = 4
"""How many times as long as the text its compatibility form (NFKD) can be: longer than that of any ordinary text.

A Korean syllable becomes three characters, an accented Greek letter four. A few ligatures become up to 18.
"""
FREE_GROWTH = 1_000
"""Characters by which every text can grow, so that a short text can consist of such ligatures only."""


class TextGrowsTooMuchError(ValueError):
    """The compatibility form of a text is much longer than the text, and would take seconds to split into elements."""


def folded(text: str) -> str:
    """Returns a text in NFC without accents and vowel signs, with compatibility forms and numbers in one spelling.

    >>> folded("Café ﬁne مَكْتَبَة ١٢٣ 1,000")
    'Cafe fine مكتبة 123 1000'

    Raises:
        TextGrowsTooMuchError: Unicode's compatibility form of the text has more than four times as many characters as
            the text and 1,000 more.
    """
    # Before the compatibility form, which makes plain spaces of those that group digits.
    decomposed = normal_form("NFKD", with_plain_numbers(text))
    if len(decomposed) > MAX_GROWTH * len(text) + FREE_GROWTH:
        raise TextGrowsTooMuchError(
            f"a text of {len(text):,} characters has {len(decomposed):,} in Unicode's compatibility form (NFKD), and at "
            f"most {MAX_GROWTH} times as many and {FREE_GROWTH:,} more are compared; send its ligatures as letters"
        )
    return normal_form("NFC", decomposed if decomposed.isascii() else _DIACRITICS.sub("", decomposed))


def without_accents(text: str) -> str:
    """Returns a text in NFD without accents."""
    return text if text.isascii() else _MARKS.sub("", text)


def without_vowel_signs(text: str) -> str:
    """Returns a text without Hebrew and Arabic vowel signs."""
    return text if text.isascii() else _SIGNS.sub("", text)


def with_plain_numbers(text: str) -> str:
    """Returns a text with the digits 0 to 9 in place of those of other scripts, and numbers without grouping.

    A comma, an apostrophe or a space that does not break groups three digits. A full stop groups digits only if it
    does so twice, because once it can be a decimal point. Decimals can follow the groups.

    >>> with_plain_numbers("1,000.50; 1’000’000; 1.000.000,5; 1.000; 12,50; ١٢")
    '1000.50; 1000000; 1000000,5; 1.000; 12,50; 12'
    """
    if not text.isascii():
        text = _DIGITS.sub(_ascii_digit, text)
    return _GROUPED.sub(_without_groups, text)


_DIACRITICS = re.compile(f"[{_ACCENTS}{_POINTS}]+")
_MARKS = re.compile(f"[{_ACCENTS}]+")
_SIGNS = re.compile(f"[{_POINTS}]+")
_DIGITS = re.compile(r"(?![0-9])\d")
_SEPARATORS = ",'’\u066c\u00a0\u2009\u202f"
# A match begins where no number before goes on, so that the groups of a long number are tried once.
_GROUPED = re.compile(
    f"(?<![0-9.,])(?<![0-9][{_SEPARATORS}])[0-9]{{1,3}}"
    f"(?:(?:[{_SEPARATORS}][0-9]{{3}})+(?=(?:\\.[0-9]+)?(?![0-9]|[.,][0-9]))"
    "|(?:\\.[0-9]{3}){2,}(?=(?:,[0-9]+)?(?![0-9]|[.,][0-9])))"
)


def _ascii_digit(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match.group()))


def _without_groups(match: re.Match[str]) -> str:
    return "".join(filter(str.isdecimal, match.group()))

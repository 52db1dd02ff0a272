"""Splits a text in any script into words, without a dictionary.

A word consists of letters, digits and their marks; all other characters separate words. Scripts without spaces between
words are split into character bigrams, as search engines do: Chinese characters, hiragana, Thai, Lao, Khmer and
Burmese. A run of katakana stays whole, because katakana writes loan words. Hiragana loses particles and polite
endings, and Korean words are reduced to their stems.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from traceweir.scorers.text.japanese import content
from traceweir.scorers.text.korean import stem

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3040-\u309f"
_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f"
_CLUSTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUNS = re.compile(
    f"(?P<pairs>[{_HAN}]+|(?P<hiragana>[{_HIRAGANA}]+)|[{_CLUSTERS}]+)|(?P<hangul>[{_HANGUL}]+)|[{_KATAKANA}]+"
    f"|[^{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}{_CLUSTERS}]+"
)
_CAMEL = re.compile("(?<=[a-z0-9])(?=[A-Z])")


def segments(text: str) -> Iterator[str]:
    """Yields the words of a text, which must be in NFC, in lower case; `camelCase` results in two words.

    >>> list(segments("device_2의 상태를"))
    ['device', '2', '의', '상태']
    >>> list(segments("光合作用 プロセスを สวัสดี"))
    ['光合', '合作', '作用', 'プロセス', 'สวั', 'วัส', 'สดี']
    """
    for run in text.translate(_spacing()).split():
        for match in _RUNS.finditer(run):
            found = match.group()
            if match["hiragana"]:
                yield from _pairs(content(found))
            elif match["pairs"]:
                yield from _pairs(found)
            elif match["hangul"]:
                yield stem(found)
            elif any(map(str.isalnum, found)):
                yield from (piece.casefold() for piece in _CAMEL.split(found))


def is_from_pairs(element: str) -> bool:
    """Returns whether an element consists of one or two characters of a script without spaces.

    >>> is_from_pairs("光"), is_from_pairs("a")
    (True, False)
    """
    match = _RUNS.match(element)
    return match is not None and match["pairs"] is not None


def _pairs(run: str) -> Iterator[str]:
    characters = list(run) if _HAS_NO_MARKS.fullmatch(run) else _clusters(run)
    if len(characters) == 1:
        return iter(characters)
    return map(str.__add__, characters, characters[1:])


_HAS_NO_MARKS = re.compile(f"[{_HAN}]+")


def _clusters(run: str) -> list[str]:
    begins = [place for place, character in enumerate(run) if not unicodedata.category(character).startswith("M")]
    return [run[begin:end] for begin, end in pairwise([*begins, len(run)])]


class _Spacing(dict[int, str]):
    """Maps a character to itself, to a space if it separates words, or to nothing if it is invisible.

    Each mapping is computed at the first lookup.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(chr(code))
        # Joiners, direction marks and soft hyphens; variation selectors.
        invisible = category == "Cf" or 0xFE00 <= code <= 0xFE0F
        kept = character.isalnum() or category in ("Mn", "Mc")
        self[code] = "" if invisible else character if kept else " "
        return self[code]


@cache
def _spacing() -> _Spacing:
    return _Spacing()

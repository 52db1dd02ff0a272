"""ROUGE-1 between two texts of any script, as Google ADK 2.13 computes it, from words stemmed once and remembered."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache


def rouge1_f(response: str, reference: str) -> float:
    """ROUGE-1's F-measure, from 0 to 1: the harmonic mean of the shares of tokens that either text has in common with the other.

    A token that occurs twice counts twice if it does so on both sides. A side without a token gives 0, even if both have none.
    From Lin, 2004, https://aclanthology.org/W04-1013/.

    >>> rouge1_f("the cat sat", "The cat sat on the mat.")
    0.6666666666666666
    """
    ours, theirs = tokens(response), tokens(reference)
    if not ours or not theirs:
        return 0.0
    counts = Counter(theirs)
    common = sum(min(count, counts[token]) for token, count in Counter(ours).items() if token in counts)
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def tokens(text: str) -> list[str]:
    """The tokens of a text: NFKC, lower case, words of letters and digits.

    Each Chinese, Japanese or Korean character is a token; Thai, Lao, Khmer and Burmese are cut before each base character, its marks
    stay with it. Words of ASCII longer than three characters are stemmed (Porter, as rouge-score does), all others stay as they are.

    >>> tokens("device_2의 상태: RUNNING, café")
    ['devic', '2', '의', '상', '태', 'run', 'café']
    """
    if text.isascii():
        return [_stem(word) if len(word) > 3 else word for word in _ASCII_WORD.findall(text.lower())]
    spaced = unicodedata.normalize("NFKC", text).lower().translate(_spacing())
    return [_stem(word) if len(word) > 3 and word.isascii() else word for word in spaced.split()]


_ASCII_WORD = re.compile("[a-z0-9]+")

_SYLLABLES = ((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF))
"""Hiragana and katakana, Chinese characters, Hangul syllables."""
_CLUSTERS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
"""Thai and Lao, Burmese, Khmer."""


class _Spacing(dict[int, str]):
    """A character and the blanks that it needs around it, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_mark = unicodedata.category(character).startswith("M")
        if any(first <= code <= last for first, last in _SYLLABLES):
            spaced = f" {character} "
        elif any(first <= code <= last for first, last in _CLUSTERS):
            spaced = character if is_mark else f" {character}"
        else:
            spaced = character if is_mark or character.isalnum() else " "
        self[code] = spaced
        return spaced


@cache
def _spacing() -> _Spacing:
    return _Spacing()


def _stem(word: str) -> str:
    return _remembered_stem(word) if len(word) <= LONGEST_REMEMBERED else _stemmed(word)


LONGEST_REMEMBERED = 40
"""Characters. A longer run of letters is no word that comes again; remembering it would only take memory."""


def _stemmed(word: str) -> str:
    return "".join(_rouge_score()(word))


_remembered_stem = lru_cache(maxsize=1 << 16)(_stemmed)


@cache
def _rouge_score() -> Callable[[str], list[str]]:
    from rouge_score import tokenizers  # here, because it imports all of nltk: 0.4 s that most commands need not spend

    tokenize: Callable[[str], list[str]] = tokenizers.DefaultTokenizer(use_stemmer=True).tokenize
    return tokenize

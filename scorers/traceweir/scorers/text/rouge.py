"""ROUGE-1 between two texts of any script, as Google ADK 2.13 computes it, from words stemmed once and remembered."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import chain
from sys import intern

from traceweir.schemas.normal_form import normal_form


def rouge1_f(response: str, reference: str) -> float:
    """ROUGE-1's F-measure, from 0 to 1: the harmonic mean of the shares of tokens that either text has in common with the other.

    A token that occurs twice counts twice if it does so on both sides. A side without a token gives 0, even if both have none.
    From Lin, 2004, https://aclanthology.org/W04-1013/.

    >>> rouge1_f("the cat sat", "The cat sat on the mat.")
    0.6666666666666666
    """
    ours, theirs = tokens(response), tokens(reference)
    left = dict(Counter(theirs))  # a plain dict: a Counter's items are looked up and set twice as slowly
    common = 0
    for token in ours:
        if count := left.get(token):
            left[token] = count - 1
            common += 1
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
    # No rule looks across white space, so what a word gives can be remembered. Texts repeat their words: this is where the time goes.
    return list(chain.from_iterable(map(_words().__getitem__, text.split())))


class _Words(dict[str, tuple[str, ...]]):
    """The tokens of words, worked out when a word is first met; emptied when full, which for a vocabulary in use is seldom."""

    FULL = 1 << 14
    LONGEST = 24
    """Characters. A longer run of letters seldom comes again; remembering it would only take memory."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        pieces = normal_form("NFKC", word).lower().translate(_spacing()).split()
        found = tuple(intern(_stem(piece)) if len(piece) > 3 and piece.isascii() else intern(piece) for piece in pieces)
        if len(word) <= self.LONGEST:
            if len(self) >= self.FULL:
                self.clear()
            self[word] = found
        return found


@cache
def _words() -> _Words:
    return _Words()


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
    return "".join(_rouge_score()(word))


@cache
def _rouge_score() -> Callable[[str], list[str]]:
    from rouge_score import tokenizers  # here, because it imports all of nltk: 0.4 s that most commands need not spend

    tokenize: Callable[[str], list[str]] = tokenizers.DefaultTokenizer(use_stemmer=True).tokenize
    return tokenize

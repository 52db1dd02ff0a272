"""Computes ROUGE-1 of two texts in any script, as Google ADK 2.13 does, with a cache of stemmed words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from itertools import chain
from sys import intern

from rouge_score.tokenize import tokenize

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.text.porter import PorterStemmer


def rouge1_f(response: str, reference: str) -> float:
    """Returns ROUGE-1's F-measure, from 0 to 1: the harmonic mean of precision and recall of the common tokens.

    A token that occurs twice in both texts counts twice. The value is 0 if either text has no tokens, or neither has
    any. Source: Lin, 2004, https://aclanthology.org/W04-1013/.

    >>> rouge1_f("the cat sat", "The cat sat on the mat.")
    0.6666666666666666
    """
    response_tokens = tokens(response)
    reference_tokens = tokens(reference)
    # A plain dict reads and sets items twice as fast as a Counter.
    remaining = dict(Counter(reference_tokens))
    common = 0
    for token in response_tokens:
        if count := remaining.get(token):
            remaining[token] = count - 1
            common += 1
    if not common:
        return 0.0
    precision = common / len(response_tokens)
    recall = common / len(reference_tokens)
    return 2 * precision * recall / (precision + recall)


def tokens(text: str) -> list[str]:
    """Returns the tokens of a text: words of letters and digits, in NFKC and lower case.

    Each Chinese, Japanese or Korean character is a token. Thai, Lao, Khmer and Burmese text is split before each base
    character, whose marks stay with the character. ASCII words of more than three characters are stemmed (Porter, as
    rouge-score does); all other words stay unchanged.

    >>> tokens("device_2의 상태: RUNNING, café")
    ['devic', '2', '의', '상', '태', 'run', 'café']
    """
    # No rule depends on text across white space, so the tokens of a word can be cached. Most of the time is spent
    # here, and texts repeat their words.
    return list(chain.from_iterable(map(_words().__getitem__, text.split())))


class _Words(dict[str, tuple[str, ...]]):
    """Caches the tokens of words, computed at the first lookup; a full cache is emptied, which is rare in practice."""

    FULL = 1 << 14
    """Maximum number of words."""
    LONGEST = 24
    """Characters. A longer word is not cached: it rarely occurs again and would only take memory."""

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
    """Maps a character to itself with the spaces that it needs around it, computed at the first lookup."""

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


_STEMMER = PorterStemmer()


def _stem(word: str) -> str:
    return "".join(tokenize(word, _STEMMER))

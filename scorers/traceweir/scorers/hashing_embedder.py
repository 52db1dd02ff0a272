"""Defines HashingEmbedder, which needs no model. Its similarity measures common words, not meaning."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.embedding import Vectors


class HashingEmbedder:
    """Embeds texts by feature hashing: hashes the counts of words and word bigrams into 384 signed dimensions.

    The weight of a feature is 1 + ln(count), so that repeated words have little effect. Text is NFKC-normalised and
    case-folded. A word is a run of letters, digits and underscores in any script; each Chinese character and each kana
    is a separate word. The vector of a text is equal in every process and on every platform. Source: Weinberger et
    al., 2009, https://arxiv.org/abs/0902.2206.

    >>> hashing = HashingEmbedder()
    >>> a, b, c = hashing.embed(["Cancel my flight to Seoul", "cancel MY flight to Busan", "Write a poem"])
    >>> bool(a @ b > 0.5 > a @ c)
    True
    """

    id = "hashing@1"
    dimensions = 384
    runs_inline = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns a row per text; the row of a text without words is zero."""
        crc = zlib.crc32
        lengths = []
        words: list[int] = []
        for text in texts:
            # surrogatepass, so that a trace with a lone surrogate still has a novelty.
            found = [crc(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(_folded(text))]
            words += found
            lengths.append(len(found))
        word = np.array(words, np.uint64)
        text_of_word = np.repeat(np.arange(len(texts), dtype=np.uint64), lengths)
        neighbours = text_of_word[1:] == text_of_word[:-1]
        pair = (word[:-1] * _PAIR_FACTOR + word[1:])[neighbours]
        feature = _mixed(np.concatenate((word, pair)))
        text_of_feature = np.concatenate((text_of_word, text_of_word[1:][neighbours]))
        # The upper half is the text, the lower half the feature. `unique` sorts them, so that the summation order of a
        # row is the same in every batch.
        distinct, counts = np.unique(text_of_feature << _HALF | feature, return_counts=True)
        feature = distinct & _LOWER_HALF
        place = (distinct >> _HALF) * np.uint64(self.dimensions) + (feature >> np.uint64(1)) % np.uint64(
            self.dimensions
        )
        weight = (1.0 + np.log(counts)) * np.where(feature & np.uint64(1), 1.0, -1.0)
        rows = np.bincount(place.astype(np.int64), weight, len(texts) * self.dimensions).reshape(
            len(texts), self.dimensions
        )
        norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)


_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFFFFFF)
# Odd, so that "a b" and "b a" differ.
_PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else normal_form("NFKC", text).casefold()


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns 32 well-mixed bits of each key, because CRCs of similar words differ in few bits and would collide."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys >> _HALF

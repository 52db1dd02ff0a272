"""What is embedded of a trace, and what an embedder is.

`HashingEmbedder` needs no model: it sees which words two texts share, not what they mean.
"""

import re
import zlib
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from traceweir.schemas.normal_form import normal_form

Vectors: TypeAlias = npt.NDArray[np.float32]
"""float32 of shape (texts, dimensions), or (dimensions,) for one."""


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike the texts are."""

    @property
    def id(self) -> str:
        """Name and version. Vectors of two embedders are never compared, so it changes whenever the vectors do."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    @property
    def runs_inline(self) -> bool:
        """Whether `embed` takes well under a millisecond per text, so that an event loop may call it without a thread."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, of length 1 (or 0 where a text holds nothing to embed). A text's row does not depend on the others."""


def embedded_text(objective: str, step_contents: Sequence[str | None]) -> str:
    """The text that stands for a trace: its objective and the content of its steps, as KnowledgePulse joins them.

    A step without content leaves an empty string, hence two blanks in a row or one at the end. Tools, inputs, summaries
    and the outcome are not part of it.

    >>> embedded_text("Refund the order.", ["Look it up.", None, "Done."])
    'Refund the order. Look it up.  Done.'
    """
    return objective + " " + " ".join(content or "" for content in step_contents)


class HashingEmbedder:
    """Counts of words and of pairs of neighbouring words, hashed into 384 signed places.

    A feature's weight is 1 + ln(count), so that repeating a word does little. Text is NFKC-normalised and case-folded;
    a word is a run of letters, digits and underscores of any script, and Chinese characters and kana are words of their
    own. The vector of a text is the same in every process and on every platform. Feature hashing: Weinberger et al.,
    2009, https://arxiv.org/abs/0902.2206.

    >>> hashing = HashingEmbedder()
    >>> a, b, c = hashing.embed(["Cancel my flight to Seoul", "cancel MY flight to Busan", "Write a poem"])
    >>> bool(a @ b > 0.5 > a @ c)
    True
    """

    id = "hashing@1"
    dimensions = 384
    runs_inline = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text; a text without a word gives zeros."""
        crc, lengths = zlib.crc32, []
        words: list[int] = []
        for text in texts:
            # surrogatepass: a lone surrogate is no reason to lose a trace's novelty.
            found = [crc(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(_folded(text))]
            words += found
            lengths.append(len(found))
        word = np.array(words, np.uint64)
        text_of_word = np.repeat(np.arange(len(texts), dtype=np.uint64), lengths)
        neighbours = text_of_word[1:] == text_of_word[:-1]
        pair = (word[:-1] * _PAIR_FACTOR + word[1:])[neighbours]
        feature = _mixed(np.concatenate((word, pair)))
        text_of_feature = np.concatenate((text_of_word, text_of_word[1:][neighbours]))
        # Upper half: the text. Lower half: the feature. Sorted by `unique`, so a row adds up in one order in any batch.
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
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that "a b" and "b a" differ


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else normal_form("NFKC", text).casefold()


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """32 well-mixed bits of each key: CRCs of similar words differ in few bits, which would place them alike."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys >> _HALF

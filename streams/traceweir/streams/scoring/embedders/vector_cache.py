"""Keeps the vectors of the texts that were embedded last, by the digest of the text."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from traceweir.scorers.embedding import Vectors

CACHE_BYTES = 16 * 2**20
"""Memory in bytes for the vectors of a scoring process: about 9,000 of 384 dimensions."""
_ENTRY_BYTES = 350
"""Memory in bytes of an entry beside the values of its vector: key, array object and place in the dictionary."""


class VectorCache:
    """Vectors by digest of their text, within a limit of memory. The vector that was used least recently goes first.

    All vectors come from one embedder: the key does not name it.

    Args:
        max_bytes: The limit in bytes. A vector that alone is larger is not kept.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._vectors: OrderedDict[bytes, Vectors] = OrderedDict()

    def get(self, digest: bytes) -> Vectors | None:
        """Returns the vector of a text, read-only; None if it is not kept."""
        vector = self._vectors.get(digest)
        if vector is not None:
            self._vectors.move_to_end(digest)
        return vector

    def put(self, digest: bytes, vector: Vectors) -> Vectors:
        """Keeps a read-only copy of a vector and returns it; a row of a batch would keep the whole batch in memory."""
        kept = vector.copy()
        kept.setflags(write=False)
        # It would displace all others.
        if _size(kept) > self._max_bytes:
            return kept
        if (former := self._vectors.pop(digest, None)) is not None:
            self._bytes -= _size(former)
        self._vectors[digest] = kept
        self._bytes += _size(kept)
        while self._bytes > self._max_bytes:
            self._bytes -= _size(self._vectors.popitem(last=False)[1])
        return kept


def digest_of(text: str) -> bytes:
    """Returns 16 bytes that identify a text; a text with lone surrogates has a digest too."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _size(vector: Vectors) -> int:
    return int(vector.nbytes) + _ENTRY_BYTES

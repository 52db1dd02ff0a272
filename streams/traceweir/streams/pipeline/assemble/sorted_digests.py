"""Defines SortedDigests: many digests of eight bytes, of which one is found by halving."""

from __future__ import annotations

import numpy as np


class SortedDigests:
    """A set of digests that takes eight bytes for each.

    >>> 2 in SortedDigests((2).to_bytes(8, "big")), 3 in SortedDigests((2).to_bytes(8, "big"))
    (True, False)

    Args:
        digests: The digests one after the other, as big-endian numbers of eight bytes.
    """

    def __init__(self, digests: bytes) -> None:
        self._sorted = np.sort(np.frombuffer(digests, ">u8").astype(np.uint64))

    def __contains__(self, digest: int) -> bool:
        place = int(np.searchsorted(self._sorted, np.uint64(digest)))
        return place < len(self._sorted) and int(self._sorted[place]) == digest

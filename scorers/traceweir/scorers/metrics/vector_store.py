"""Stores the vectors of a novelty cache by slot: as they are, or as codes of half the size whose originals are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.cosine_bounds import COMPONENTS, Slots


class VectorStore(Protocol):
    """Vectors by slot, each of length 1 or 0."""

    @property
    def error(self) -> float:
        """The most by which a dot product with a vector of `store[slots]` differs from that with the exact vector."""

    @property
    def most_components(self) -> int:
        """The largest number of components that bounds may add to the memory of each vector."""

    def __getitem__(self, slots: Slots, /) -> Vectors:
        """Returns the vectors of some slots, each with an error."""

    def exact(self, slots: npt.NDArray[np.intp]) -> Vectors:
        """Returns the vectors as they were put."""

    def put(self, slot: int, vector: Vectors) -> None:
        """Stores a vector in a slot below `rows`."""

    def put_back(self, slots: npt.NDArray[np.intp], vectors: Vectors) -> None:
        """Stores vectors that were stored before, one row per slot."""

    def release(self, slots: Iterable[int]) -> None:
        """Says that the vectors of these slots can be read elsewhere by now."""

    @property
    def rows(self) -> int:
        """The number of slots that are reserved."""

    def reserve(self, rows: int) -> None:
        """Makes room for more slots."""

    def multiply(self, vectors: Vectors, out: Vectors) -> None:
        """Writes the dot products of some vectors with those of the first slots, one row per vector, to `out`."""


class VectorMatrix:
    """Stores the vectors as they are, in one matrix."""

    error = 0.0
    most_components = max(COMPONENTS)

    def __init__(self, dimensions: int) -> None:
        self._matrix = np.empty((0, dimensions), np.float32)

    def __getitem__(self, slots: Slots, /) -> Vectors:
        return self._matrix[slots]

    def exact(self, slots: npt.NDArray[np.intp]) -> Vectors:
        """Returns the vectors of some slots."""
        return self._matrix[slots]

    def put(self, slot: int, vector: Vectors) -> None:
        """Stores a vector."""
        self._matrix[slot] = vector

    def put_back(self, slots: npt.NDArray[np.intp], vectors: Vectors) -> None:
        """Stores vectors, one row per slot."""
        self._matrix[slots] = vectors

    def release(self, slots: Iterable[int]) -> None:
        """Does nothing, because the vectors are here."""

    @property
    def rows(self) -> int:
        """The number of slots that are reserved."""
        return len(self._matrix)

    def reserve(self, rows: int) -> None:
        """Makes room for more slots."""
        grown = np.zeros((rows, self._matrix.shape[1]), np.float32)
        grown[: len(self._matrix)] = self._matrix
        self._matrix = grown

    def multiply(self, vectors: Vectors, out: Vectors) -> None:
        """Writes the dot products of some vectors with those of the first slots, one row per vector, to `out`."""
        held = self._matrix[: out.shape[1]]
        # A matrix product repacks all vectors first; for fewer than four rows, a separate product per row is faster.
        if len(vectors) < 4:
            for row, products in zip(vectors, out, strict=True):
                np.dot(held, row, out=products)
        else:
            np.matmul(vectors, held.T, out=out)


ReadVector = Callable[[int], Vectors]
"""Returns the vector of a slot, exactly as it was put. Called only for slots that were released or put back."""

_LARGEST_CODE = 32_767
_PIECE = 4_096


class CodedVectors:
    """Stores each vector as 16-bit integers and a scale, and reads the exact vector only if it can be the nearest.

    >>> originals = {0: np.array([0.6, -0.8], np.float32)}
    >>> coded = CodedVectors(2, originals.__getitem__)
    >>> coded.reserve(1)
    >>> coded.put_back(np.array([0]), originals[0][None])
    >>> bool(abs(coded[np.array([0])] - originals[0]).max() <= coded.error < 1e-4)
    True
    """

    # With it, a vector of 384 dimensions takes 968 bytes.
    most_components = 48

    def __init__(self, dimensions: int, read: ReadVector) -> None:
        self._read = read
        self._codes = np.empty((0, dimensions), np.int16)
        self._scales = np.empty(0, np.float32)
        self._unreleased: dict[int, Vectors] = {}
        self.error = 0.0

    def __getitem__(self, slots: Slots, /) -> Vectors:
        return _decoded(self._codes[slots], self._scales[slots])

    def exact(self, slots: npt.NDArray[np.intp]) -> Vectors:
        """Returns the vectors of some slots, most of them read from elsewhere."""
        vectors = np.empty((slots.size, self._codes.shape[1]), np.float32)
        for row, slot in enumerate(slots.tolist()):
            unreleased = self._unreleased.get(slot)
            vectors[row] = self._read(slot) if unreleased is None else unreleased
        return vectors

    def put(self, slot: int, vector: Vectors) -> None:
        """Stores the codes of a vector, and the vector itself until its slot is released."""
        self._encode(np.array([slot]), vector[None])
        self._unreleased[slot] = vector.copy()

    def put_back(self, slots: npt.NDArray[np.intp], vectors: Vectors) -> None:
        """Stores the codes of vectors that can be read elsewhere."""
        self._encode(slots, vectors)
        self.release(slots.tolist())

    def release(self, slots: Iterable[int]) -> None:
        """Drops the vectors of these slots; their codes stay."""
        for slot in slots:
            self._unreleased.pop(slot, None)

    @property
    def rows(self) -> int:
        """The number of slots that are reserved."""
        return len(self._codes)

    def reserve(self, rows: int) -> None:
        """Makes room for more slots, without a second copy in memory."""
        self._codes.resize((rows, self._codes.shape[1]), refcheck=False)
        self._scales.resize(rows, refcheck=False)

    def multiply(self, vectors: Vectors, out: Vectors) -> None:
        """Writes the dot products of some vectors with those of the first slots, one row per vector, to `out`."""
        for start in range(0, out.shape[1], _PIECE):
            piece = slice(start, min(out.shape[1], start + _PIECE))
            out[:, piece] = vectors @ self[piece].T

    def _encode(self, slots: npt.NDArray[np.intp], vectors: Vectors) -> None:
        scales = np.abs(vectors).max(axis=1) / np.float32(_LARGEST_CODE)
        codes = np.rint(vectors / np.where(scales > 0, scales, np.float32(1))[:, None]).astype(np.int16)
        self._codes[slots] = codes
        self._scales[slots] = scales
        differences = vectors.astype(np.float64) - _decoded(codes, scales)
        # Times a length of at most 1 + 1e-6.
        error = float(np.sqrt((differences * differences).sum(axis=1)).max())
        self.error = max(self.error, 1.00001 * error)


def _decoded(codes: npt.NDArray[np.int16], scales: npt.NDArray[np.float32]) -> Vectors:
    decoded: Vectors = codes.astype(np.float32)
    decoded *= scales[:, None]
    return decoded

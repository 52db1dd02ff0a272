"""Stores the vectors of a novelty cache by slot."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.cosine_bounds import Slots


class VectorStore(Protocol):
    """Vectors by slot, each of length 1 or 0."""

    @property
    def error(self) -> float:
        """The most by which a dot product with a vector of `store[slots]` differs from that with the exact vector."""

    def __getitem__(self, slots: Slots, /) -> Vectors:
        """Returns the vectors of some slots, each with an error."""

    def exact(self, slots: npt.NDArray[np.intp]) -> Vectors:
        """Returns the vectors as they were put."""

    def put(self, slot: int, vector: Vectors) -> None:
        """Stores a vector in a slot below `rows`."""

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

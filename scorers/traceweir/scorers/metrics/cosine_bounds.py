"""Bounds the cosines of a vector with all vectors of a cache from above, by their leading principal components.

A unit vector x has coordinates y on k orthonormal directions, and a rest of length r that is orthogonal to them.
Therefore x.q <= y(x).y(q) + r(x) r(q) (Cauchy and Schwarz, for the rests), which is one product of k + 1 numbers. The
directions are the principal components of the cache's own vectors: embeddings of texts of one kind have most of their
length in a few of these components, so few vectors have a bound above the largest cosine. The bound holds for every
vector and all directions; the choice of the directions changes the time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors

BOUND_ERROR = 1e-5
"""A computed bound is at most this much below the cosine: the rounding of up to 97 float32 products, with a reserve."""

COMPONENTS = (16, 32, 48, 64, 96)
"""The numbers of components to choose from."""

Slots = slice | npt.NDArray[np.intp]

_QUERIES, _SAMPLE, _COMPARED, _PIECE = 128, 4_096, 32_768, 4_096
"""Numbers of vectors: the latest, for which costs are estimated; those from which directions are learned, and whose bounds
are counted; those among which the largest cosine of the latest is sought; and those that are read at once."""
_COMPONENT_COST = 0.2
"""A component of all vectors takes as long in a large batch as so many dimensions in a scan for a single vector."""
_VECTOR_COST = 8
"""Selecting, reading and comparing one vector takes as long as a scan over so many vectors of the same size."""
_SCAN_COST = 3
"""A scan for one vector of a batch, which excludes too few, takes as long as so many scans for a whole batch, per vector."""
_GAIN = 2
"""The bounds must be expected to save this factor, because later vectors can have less in common with the cache."""


class StoredVectors(Protocol):
    """The vectors of a cache by slot, each of length 1 or 0. A matrix is one."""

    def __getitem__(self, slots: Slots, /) -> Vectors: ...


class CosineBounds:
    """Holds the components of the vectors in the slots of a cache, and the lengths of their rests.

    >>> vectors = np.eye(4, dtype=np.float32)
    >>> bounds = CosineBounds(np.eye(4)[:, :2], rows=4)
    >>> bounds.put(slice(0, 4), bounds.components(vectors))
    >>> bounds.of(bounds.components(vectors[2:3]), slots=4).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """

    def __init__(self, directions: npt.NDArray[np.float64], rows: int) -> None:
        """Reserves slots for `rows` vectors. `directions` has k orthonormal columns."""
        self._directions = directions
        # A row per component, because a product with a single vector then runs through memory in one direction.
        self._components = np.zeros((directions.shape[1] + 1, rows), np.float32)

    def components(self, vectors: Vectors) -> Vectors:
        """Returns one row per vector: its k components, and the length of its rest."""
        # In float32, the rest of a vector without a rest would be a rounding error.
        rows = vectors.astype(np.float64)
        components = rows @ self._directions
        squares = (rows * rows).sum(axis=1) - (components * components).sum(axis=1)
        return np.column_stack((components, np.sqrt(np.maximum(squares, 0.0)))).astype(np.float32)

    def put(self, slots: int | slice, components: Vectors) -> None:
        """Stores rows of `components`, or one row."""
        self._components[:, slots] = components.T

    def reserve(self, rows: int) -> None:
        """Makes room for more slots."""
        if rows > self._components.shape[1]:
            grown = np.zeros((len(self._components), rows), np.float32)
            grown[:, : self._components.shape[1]] = self._components
            self._components = grown

    def of(self, components: Vectors, slots: int, out: Vectors | None = None) -> Vectors:
        """Returns a bound for each row of `components` and each slot below `slots`."""
        return self.between(components, 0, slots, out)

    def between(self, components: Vectors, start: int, end: int, out: Vectors | None = None) -> Vectors:
        """Returns a bound for each row of `components` and each slot from `start` to before `end`."""
        bounds: Vectors = np.matmul(components, self._components[:, start:end], out=out)
        return bounds


def learn_bounds(
    vectors: StoredVectors, used: npt.NDArray[np.intp], rows: int, components: Sequence[int] = COMPONENTS
) -> CosineBounds | None:
    """Returns bounds with the number of components that takes the least time; None if no number is expected to pay.

    Args:
        vectors: The vectors of the cache.
        used: The slots that contain a vector, the latest last. The latest vectors stand for the vectors to come.
        rows: The number of slots to reserve.
        components: The numbers of components to choose from.
    """
    latest = min(_QUERIES, len(used) // 4)
    queries = vectors[used[-latest:]]
    others = used[:-latest]
    sample = vectors[_evenly(others, _SAMPLE)]
    wide = sample.astype(np.float64)
    # In ascending order of the eigenvalues. Without subtracting the mean, which is a part of every cosine.
    directions = np.linalg.eigh(wide.T @ wide)[1][:, ::-1]
    dimensions = sample.shape[1]
    largest = _largest_cosines(queries, vectors, _evenly(others, _COMPARED))
    costs = {}
    for k in components:
        if k < dimensions:
            shares = _survivors(directions[:, :k], sample, queries, largest)
            costs[k] = _COMPONENT_COST * (k + 1) + dimensions * float(
                np.minimum(_VECTOR_COST * shares, _SCAN_COST).mean()
            )
    best = min(costs, key=lambda k: costs[k], default=0)
    if not best or costs[best] * _GAIN > dimensions:
        return None
    bounds = CosineBounds(np.ascontiguousarray(directions[:, :best]), rows)
    end = int(used.max()) + 1
    for start in range(0, end, _PIECE):
        piece = slice(start, min(end, start + _PIECE))
        bounds.put(piece, bounds.components(vectors[piece]))
    return bounds


def _evenly(slots: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    return np.sort(slots[:: max(1, len(slots) // count)])


def _largest_cosines(queries: Vectors, vectors: StoredVectors, slots: npt.NDArray[np.intp]) -> Vectors:
    largest = np.full(len(queries), -1.0, np.float32)
    for start in range(0, len(slots), _PIECE):
        np.maximum(largest, (queries @ vectors[slots[start : start + _PIECE]].T).max(axis=1), out=largest)
    return largest


def _survivors(
    directions: npt.NDArray[np.float64], sample: Vectors, queries: Vectors, largest: Vectors
) -> npt.NDArray[np.float64]:
    """Returns, for each query, the share of the sample whose bound is above the largest cosine."""
    bounds = CosineBounds(directions, len(sample))
    bounds.put(slice(0, len(sample)), bounds.components(sample))
    above = bounds.of(bounds.components(queries), len(sample)) >= largest[:, None]
    shares: npt.NDArray[np.float64] = above.mean(axis=1)
    # A copy of a vector is found without the others.
    shares[largest >= 1.0 - BOUND_ERROR] = 0.0
    return shares

"""Finds the vector with the largest cosine, exactly: float32 products or bounds select few vectors, float64 decides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.cosine_bounds import BOUND_ERROR, COMPONENTS, CosineBounds, learn_bounds
from traceweir.scorers.metrics.vector_store import VectorStore

ABSENT = -2.0
"""Marks a slot that must not be compared; less than every cosine."""

PIECE_ROWS = 256
"""Maximum number of vectors whose float64 cosines are computed at once."""

_NEAR_TIE = 1e-5
"""Several times the error of a float32 dot product of two unit vectors of a few hundred dimensions."""

_FIRST_ROWS = 16
"""Number of the oldest near ties that are compared first. Copies of the vector are mostly among them."""

_BLOCKS = 16
"""The vector with the largest bound is compared first in each of so many blocks of slots."""

_VECTOR_COST = 3
"""Comparing one vector that is read from any place takes as long as a scan over so many vectors."""

_LEARN_AFTER = 4
"""Bounds are learned again after as many vectors as are held, and at least this multiple of `bounds_from`."""

_MOST_CREDIT, _SCAN_COST, _SCAN_COST_IN_BATCH = 64, 2, 10
"""Credit of the bounds: a vector for which they save time gives 1, and a vector that needs a scan takes more."""

_FIRST_PAUSE, _LONGEST_PAUSE = 16, 1_024
"""Batches that are compared without bounds when the credit is used up; doubled each time."""


class NearestSearch:
    """Compares vectors with those of a store, each of length 1 or 0, and knows which way is the fastest."""

    def __init__(self, store: VectorStore, bounds_from: int) -> None:
        self.store = store
        self._bounds: CosineBounds | None = None
        self._used: CosineBounds | None = None
        """The bounds with which the last rows were compared; None: they were scanned."""
        self._components: Vectors = np.empty((0, 0), np.float32)
        self._bounds_from, self._learn_at = bounds_from, 0
        self._credit, self._without_bounds, self._pause = _MOST_CREDIT, 0, _FIRST_PAUSE

    @property
    def bounded(self) -> bool:
        """Whether there are bounds."""
        return self._bounds is not None

    @property
    def uses_bounds(self) -> bool:
        """Whether there are bounds, and they do not pause."""
        return self._bounds is not None and not self._without_bounds

    def learns(self, held: int, added: int) -> bool:
        """Returns whether `learn` is due, for the number of vectors held, and that of all vectors added so far."""
        return held >= self._bounds_from and added >= self._learn_at

    def learn(self, slots: npt.NDArray[np.intp], added: int) -> None:
        """Learns bounds from the vectors in these slots, the oldest first."""
        self._learn_at = added + max(slots.size, _LEARN_AFTER * self._bounds_from)
        components = tuple(k for k in COMPONENTS if k <= self.store.most_components)
        self._bounds = learn_bounds(self.store, slots, self.store.rows, components)

    def forget(self) -> None:
        """Drops the bounds, which `learn` computes again."""
        self._bounds, self._learn_at = None, 0

    def reserve(self, rows: int) -> None:
        """Makes room for more slots."""
        self.store.reserve(rows)
        if self._bounds is not None:
            self._bounds.reserve(rows)

    def compare(self, unit: Vectors, out: Vectors) -> None:
        """Writes one row per vector to `out`: its float32 cosine with each slot, or a bound of the cosine."""
        self._used = self._bounds
        if self._without_bounds >= len(unit):
            self._without_bounds -= len(unit)
            self._used = None
        else:
            self._without_bounds = 0
        if self._used is None:
            self.store.multiply(unit, out)
        else:
            self._components = self._used.components(unit)
            self._used.of(self._components, out.shape[1], out=out)

    def put(self, slot: int, unit: Vectors, index: int) -> None:
        """Stores row `index` of the compared vectors in a slot."""
        self.store.put(slot, unit[index])
        if self._used is not None:
            self._used.put(slot, self._components[index])
        elif self._bounds is not None:
            self._bounds.put(slot, self._bounds.components(unit[index : index + 1])[0])

    def nearest(self, row: npt.NDArray[np.float32], unit: Vectors, oldest: int, batch: int) -> tuple[int, float] | None:
        """Returns the slot with the largest cosine, the oldest of equals, and this cosine.

        Args:
            row: The row of this vector that `compare` wrote; ABSENT for slots that must not be compared.
            unit: The vector.
            oldest: The slot of the oldest vector; age falls from slot to slot, and the first follows the last.
            batch: The number of vectors that were compared together.
        """
        if self._used is None:
            slots = _near_ties(row, _NEAR_TIE + 2 * self.store.error)
        else:
            slots = self._near_ties_by_bounds(row, unit, oldest, _SCAN_COST if batch < 4 else _SCAN_COST_IN_BATCH)
        return self._largest(_oldest_first(slots, oldest), unit)

    def gives_up(self, batch: int) -> bool:
        """Returns whether bounds have stopped to save time. The rest of the batch is then compared again without them."""
        if self._credit >= 0:
            return False
        self._credit, self._without_bounds = 0, batch * self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True

    def _near_ties_by_bounds(
        self, bounds: npt.NDArray[np.float32], unit: Vectors, oldest: int, scan_cost: int
    ) -> npt.NDArray[np.intp]:
        """Returns the slots that can be the nearest, in ascending order, and changes the credit of the bounds."""
        if not unit.any():  # its cosine with every vector is 0
            return np.flatnonzero(bounds > ABSENT)
        likely = _largest_of_blocks(bounds)
        if not likely.size:
            return likely
        margin = BOUND_ERROR + 2 * self.store.error
        known = float((self.store[likely] @ unit).max())
        slots = (bounds >= known - margin).nonzero()[0]
        if slots.size > PIECE_ROWS and known > 1.0 - margin:
            copies = _oldest_first(slots, oldest)[:_FIRST_ROWS]
            if _cosines(self.store.exact(copies), unit).max() >= 1.0:
                return np.sort(copies)
        near_tie = _NEAR_TIE + 2 * self.store.error
        if slots.size * _VECTOR_COST > bounds.size:
            self._credit -= scan_cost
            similarities = np.empty((1, bounds.size), np.float32)
            self.store.multiply(unit[None], similarities)
            similarities[0, bounds == ABSENT] = ABSENT
            return _near_ties(similarities[0], near_tie)
        self._credit += 1
        if self._credit >= _MOST_CREDIT:
            self._credit, self._pause = _MOST_CREDIT, _FIRST_PAUSE
        return slots[_near_ties(self.store[slots] @ unit, near_tie)]

    def _largest(self, slots: npt.NDArray[np.intp], unit: Vectors) -> tuple[int, float] | None:
        """Returns the first of these slots with the largest float64 cosine."""
        if not slots.size:
            return None
        nearest, cosine = int(slots[0]), ABSENT
        # An agent that repeats itself fills the cache with copies: the first piece then already contains a cosine of
        # 1.
        start, size = 0, _FIRST_ROWS
        while start < slots.size:
            piece = slots[start : start + size]
            cosines = _cosines(self.store.exact(piece), unit)
            index = int(cosines.argmax())
            if cosines[index] > cosine:
                nearest, cosine = int(piece[index]), float(cosines[index])
            start, size = start + size, PIECE_ROWS
            if cosine >= 1.0 or (start < slots.size and not unit.any()):
                break
        return nearest, max(-1.0, cosine)


def _near_ties(similarities: npt.NDArray[np.float32], near_tie: float) -> npt.NDArray[np.intp]:
    """Returns the positions of the similarities that are at most `near_tie` below the largest."""
    best = similarities.max(initial=ABSENT)
    if best == ABSENT:
        return np.empty(0, np.intp)
    positions: npt.NDArray[np.intp] = (similarities >= best - near_tie).nonzero()[0]
    return positions


def _largest_of_blocks(bounds: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Returns the slot with the largest bound in each block of slots, without slots that must not be compared."""
    width = -(-bounds.size // _BLOCKS)
    starts = range(0, bounds.size, width)
    largest = np.array([start + bounds[start : start + width].argmax() for start in starts], np.intp)
    compared: npt.NDArray[np.intp] = largest[bounds[largest] > ABSENT]
    return compared


def _oldest_first(slots: npt.NDArray[np.intp], oldest: int) -> npt.NDArray[np.intp]:
    """Sorts ascending slots by age."""
    if slots.size < 2:
        return slots
    first = np.searchsorted(slots, oldest)
    return np.concatenate((slots[first:], slots[:first]))


def _cosines(rows: Vectors, unit: Vectors) -> npt.NDArray[np.float64]:
    """Returns cosines in float64, at most 1. Each sum covers a single row, so a cosine does not depend on other rows."""
    a, b = rows.astype(np.float64), unit.astype(np.float64)
    dots: npt.NDArray[np.float64] = (a * b).sum(axis=1)
    # The square root of the product makes a vector's cosine with its copy exactly 1; a product of two roots does not.
    lengths: npt.NDArray[np.float64] = np.sqrt((a * a).sum(axis=1) * (b * b).sum())
    lengths[lengths == 0] = 1.0
    cosines: npt.NDArray[np.float64] = np.minimum(dots / lengths, 1.0)
    return cosines

"""Finds the vector with the largest cosine, exactly: float32 products or bounds select few vectors, float64 decides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.cosine_bounds import BOUND_ERROR, COMPONENTS, CosineBounds, learn_bounds
from traceweir.scorers.metrics.panel_search import Indices, Near, PanelSearch
from traceweir.scorers.metrics.vector_store import VectorStore

ABSENT = -2.0
"""Marks a slot that must not be compared; less than every cosine."""

PIECE_ROWS = 256
"""Maximum number of vectors whose float64 cosines are computed at once."""

CELLS, BOUND_CELLS = 8_000_000, 1_600_000
"""Maximum number of float32 similarities computed at once by a scan (32 MB), and of bounds (6.4 MB).

A product of few numbers per vector gains less from more rows than it loses outside the processor's cache.
"""

PANELS_FROM = 16
"""Number of vectors from which a search by panels is faster than one vector after the other."""

_NEAR_TIE = 1e-5
"""Several times the error of a float32 dot product of two unit vectors of a few hundred dimensions."""

FIRST_ROWS = 16
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
        self._memory: Vectors = np.empty(0, np.float32)
        self._bounds_from = bounds_from
        self._learn_at = 0
        self._credit = _MOST_CREDIT
        self._without_bounds = 0
        self._pause = _FIRST_PAUSE

    @property
    def bounded(self) -> bool:
        """Whether there are bounds."""
        return self._bounds is not None

    @property
    def near_tie(self) -> float:
        """Several times the error of a float32 cosine: a vector this much below the largest can be the nearest."""
        return _NEAR_TIE + 2 * self.store.error

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
        self._bounds = None
        self._learn_at = 0

    def reserve(self, rows: int) -> None:
        """Makes room for more slots."""
        self.store.reserve(rows)
        if self._bounds is not None:
            self._bounds.reserve(rows)

    def near(self, unit: Vectors, used: int, excluded: Indices, oldest: int) -> Iterator[Near]:
        """Yields, for each vector, the slots that can be the nearest; none if no slot is compared.

        The excluded slots may be put into before the next vector is asked for.

        Args:
            unit: One row per vector.
            used: The number of slots; those from it on contain nothing.
            excluded: Slots below `used` that must not be compared, in ascending order.
            oldest: A slot; age falls from it from slot to slot, and the first slot follows the last.
        """
        bounds = self._used = self._bounds_for(len(unit))
        found: list[Near | None] = [None] * len(unit)
        if bounds is not None:
            self._components = bounds.components(unit)
            if len(unit) >= PANELS_FROM:
                panels = PanelSearch(self.store, bounds, used, excluded, self._margin)
                found = self._with_exact(panels.near(unit, self._components, self.near_tie), unit)
                self._saved_time(sum(near is not None for near in found))
        scan_cost = _SCAN_COST if len(unit) < 4 else _SCAN_COST_IN_BATCH
        left = iter([row for row, near in enumerate(found) if near is None])
        group: dict[int, npt.NDArray[np.float32]] = {}
        for row, near in enumerate(found):
            if near is not None:
                yield near
                continue
            if row not in group:
                if bounds is not None and self._credit < 0:
                    self._pause_bounds(len(unit))
                    bounds = None
                rows = [*islice(left, self._rows_at_once(used, bounds))]
                group = dict(zip(rows, self._compared(unit, rows, used, excluded, bounds), strict=True))
            if bounds is None:
                yield _near_ties(group[row], self.near_tie)
            else:
                yield self._near_by_bounds(group[row], unit[row], oldest, scan_cost)

    def nearest(self, groups: Iterable[Near], unit: Vectors, oldest: int) -> tuple[int, float] | None:
        """Returns the slot with the largest float64 cosine, the oldest of equals, and this cosine; None without slots.

        Args:
            groups: Groups that have no slot in common.
            unit: The vector.
            oldest: As for `near`.
        """
        found: tuple[int, float] | None = None
        for near in groups:
            nearest = self._largest(near, unit, oldest)
            if nearest is not None and (found is None or _is_nearer(nearest, found, oldest)):
                found = nearest
        return None if found is None else (found[0], max(-1.0, found[1]))

    def put(self, slot: int, unit: Vectors, index: int) -> None:
        """Stores row `index` of the compared vectors in a slot."""
        self.store.put(slot, unit[index])
        if self._used is not None:
            self._used.put(slot, self._components[index])
        elif self._bounds is not None:
            self._bounds.put(slot, self._bounds.components(unit[index : index + 1])[0])

    @property
    def _margin(self) -> float:
        """The most by which the bound of the nearest vector can lie below a known float32 cosine."""
        return BOUND_ERROR + 2 * self.store.error

    def _bounds_for(self, batch: int) -> CosineBounds | None:
        """Returns the bounds; None while they pause."""
        if self._without_bounds >= batch:
            self._without_bounds -= batch
            return None
        self._without_bounds = 0
        return self._bounds

    def _rows_at_once(self, used: int, bounds: CosineBounds | None) -> int:
        return max(1, (CELLS if bounds is None else BOUND_CELLS) // max(1, used))

    def _compared(
        self, unit: Vectors, rows: list[int], used: int, excluded: Indices, bounds: CosineBounds | None
    ) -> Vectors:
        """Returns the float32 cosines of some vectors with all slots, or their bounds; ABSENT for excluded slots."""
        # A slice needs no copy.
        every = len(rows) == len(unit)
        if bounds is None:
            out = np.empty((len(rows), used), np.float32)
            self.store.multiply(unit if every else unit[rows], out)
        else:
            # Memory is kept for the next bounds, because new pages take longer than they do.
            if len(rows) * used > self._memory.size:
                self._memory = np.empty(len(rows) * used, np.float32)
            out = self._memory[: len(rows) * used].reshape(len(rows), used)
            bounds.of(self._components if every else self._components[rows], used, out=out)
        if excluded.size:
            out[:, excluded] = ABSENT
        return out

    def _with_exact(self, found: list[Near | None], unit: Vectors) -> list[Near | None]:
        """Computes the float64 cosines of those vectors to which a single slot can be the nearest."""
        single = [(row, near) for row, near in enumerate(found) if near is not None and near.slots.size == 1]
        for start in range(0, len(single), PIECE_ROWS):
            piece = single[start : start + PIECE_ROWS]
            vectors = self.store.exact(np.concatenate([near.slots for _, near in piece]))
            cosines = _cosines(vectors, unit[[row for row, _ in piece]])
            for (row, near), cosine in zip(piece, cosines.tolist(), strict=True):
                found[row] = near._replace(exact=cosine)
        return found

    def _pause_bounds(self, batch: int) -> None:
        """Lets the next vectors be compared without bounds, because they have stopped to save time."""
        self._credit = 0
        self._without_bounds = batch * self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _saved_time(self, vectors: int) -> None:
        self._credit += vectors
        if self._credit >= _MOST_CREDIT:
            self._credit = _MOST_CREDIT
            self._pause = _FIRST_PAUSE

    def _near_by_bounds(self, bounds: npt.NDArray[np.float32], unit: Vectors, oldest: int, scan_cost: int) -> Near:
        """Returns the slots that can be the nearest, and changes the credit of the bounds."""
        # Its cosine with every vector is 0.
        if not unit.any():
            return Near(np.flatnonzero(bounds > ABSENT), 0.0)
        likely = _largest_of_blocks(bounds)
        if not likely.size:
            return Near(likely, ABSENT)
        margin = self._margin
        known = float((self.store[likely] @ unit).max())
        slots = (bounds >= known - margin).nonzero()[0]
        if slots.size > PIECE_ROWS and known > 1.0 - margin:
            copies = _oldest_first(slots, oldest)[:FIRST_ROWS]
            if _cosines(self.store.exact(copies), unit).max() >= 1.0:
                return Near(np.sort(copies), 1.0)
        if slots.size * _VECTOR_COST > bounds.size:
            self._credit -= scan_cost
            similarities = np.empty((1, bounds.size), np.float32)
            self.store.multiply(unit[None], similarities)
            similarities[0, bounds == ABSENT] = ABSENT
            return _near_ties(similarities[0], self.near_tie)
        self._saved_time(1)
        near = _near_ties(self.store[slots] @ unit, self.near_tie)
        return Near(slots[near.slots], near.cosine)

    def _largest(self, near: Near, unit: Vectors, oldest: int) -> tuple[int, float] | None:
        """Returns the oldest of these slots with the largest float64 cosine."""
        if not near.slots.size:
            return None
        if near.exact is not None:
            return int(near.slots[0]), near.exact
        if near.slots.size == 1:
            return int(near.slots[0]), _cosine(self.store.exact(near.slots)[0], unit)
        slots = _oldest_first(near.slots, oldest)
        nearest = int(slots[0])
        cosine = ABSENT
        # An agent that repeats itself fills the cache with copies: the first piece then already contains a cosine of
        # 1.
        start = 0
        size = FIRST_ROWS
        while start < slots.size:
            piece = slots[start : start + size]
            cosines = _cosines(self.store.exact(piece), unit)
            index = int(cosines.argmax())
            if cosines[index] > cosine:
                nearest = int(piece[index])
                cosine = float(cosines[index])
            start = start + size
            size = PIECE_ROWS
            if cosine >= 1.0 or (start < slots.size and not unit.any()):
                break
        return nearest, cosine


def _near_ties(similarities: npt.NDArray[np.float32], near_tie: float) -> Near:
    """Returns the positions of the similarities that are at most `near_tie` below the largest."""
    if not similarities.size:
        return Near(np.empty(0, np.intp), ABSENT)
    # Faster than `max`.
    best = float(similarities[similarities.argmax()])
    if best == ABSENT:
        return Near(np.empty(0, np.intp), ABSENT)
    return Near((similarities >= best - near_tie).nonzero()[0], best)


def _largest_of_blocks(bounds: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Returns the slot with the largest bound in each block of slots, without slots that must not be compared."""
    width = -(-bounds.size // _BLOCKS)
    starts = range(0, bounds.size, width)
    largest = np.array([start + bounds[start : start + width].argmax() for start in starts], np.intp)
    compared: npt.NDArray[np.intp] = largest[bounds[largest] > ABSENT]
    return compared


def _is_nearer(one: tuple[int, float], other: tuple[int, float], oldest: int) -> bool:
    """Returns whether a slot has a larger cosine than another, or the same and a greater age."""
    return (one[1], other[0] < oldest, other[0]) > (other[1], one[0] < oldest, one[0])


def _oldest_first(slots: npt.NDArray[np.intp], oldest: int) -> npt.NDArray[np.intp]:
    """Sorts ascending slots by age."""
    first = np.searchsorted(slots, oldest)
    return np.concatenate((slots[first:], slots[:first]))


def _cosines(rows: Vectors, unit: Vectors) -> npt.NDArray[np.float64]:
    """Returns cosines of rows with one vector, or each with its own, in float64, at most 1.

    Each sum covers a single row, so a cosine does not depend on other rows.
    """
    a = rows.astype(np.float64)
    b = unit.astype(np.float64)
    dots: npt.NDArray[np.float64] = (a * b).sum(axis=1)
    # The square root of the product makes a vector's cosine with its copy exactly 1; a product of two roots does not.
    lengths: npt.NDArray[np.float64] = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=-1))
    lengths[lengths == 0] = 1.0
    cosines: npt.NDArray[np.float64] = np.minimum(dots / lengths, 1.0)
    return cosines


def _cosine(row: Vectors, unit: Vectors) -> float:
    """Returns what `_cosines` returns for a single row, bit for bit, in less time."""
    a = row.astype(np.float64)
    b = unit.astype(np.float64)
    length = math.sqrt(np.add.reduce(a * a) * np.add.reduce(b * b)) or 1.0
    return min(float(np.add.reduce(a * b)) / length, 1.0)

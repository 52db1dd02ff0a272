"""Finds the vectors that can be the nearest to each of many vectors, by bounds, a panel of slots at a time.

The bounds of a panel fit into the processor's cache. The largest cosine that is known rises from panel to panel, so
that few slots of later panels have a bound above it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.cosine_bounds import CosineBounds
from traceweir.scorers.metrics.vector_store import VectorStore

Indices = npt.NDArray[np.intp]

PANEL_CELLS = 524_288
"""Bounds of a panel (2 MB). In a smaller panel the calls of numpy cost more, a larger one leaves the processor's cache."""
CROWD, LEAST_CROWD = 16, 256
"""A vector is left to another search if more than a 16th of the slots, and more than 256, can be the nearest."""
_PAIRS = 4_096
"""Pairs of a vector and a slot whose vectors are read at once (12 MB with 384 dimensions)."""


class Near(NamedTuple):
    """The slots that can be the nearest to a vector, in ascending order, and the largest float32 cosine among them."""

    slots: Indices
    cosine: float
    exact: float | None = None
    """The float64 cosine with the only slot; None if it is not computed yet."""


class _Pairs(NamedTuple):
    """Pairs of a vector, by row, and a slot, with their bound."""

    rows: Indices
    slots: Indices
    bounds: Vectors

    def only(self, kept: npt.NDArray[np.bool_]) -> _Pairs:
        return _Pairs(self.rows[kept], self.slots[kept], self.bounds[kept])


class PanelSearch:
    """Compares many vectors with the slots below `used`, without those that are excluded.

    Args:
        store: The vectors by slot.
        bounds: Their bounds.
        used: Number of slots.
        excluded: Slots that must not be compared, in ascending order.
        margin: The most by which a bound can lie below a cosine that is computed in float32.
    """

    def __init__(self, store: VectorStore, bounds: CosineBounds, used: int, excluded: Indices, margin: float) -> None:
        self._store = store
        self._bounds = bounds
        self._used = used
        self._excluded = excluded
        self._margin = margin

    def near(self, unit: Vectors, components: Vectors, near_tie: float) -> list[Near | None]:
        """Returns, for each vector, its slots whose cosine is at most `near_tie` below the largest.

        None: too many slots can be the nearest, as for a vector of which there are many copies, or a vector of zeros.

        Args:
            unit: One row per vector, each of length 1 or 0.
            components: Their components, from the same bounds.
            near_tie: Several times the error of a float32 cosine.
        """
        known = np.full(len(unit), -np.inf, np.float32)
        # The cosine of a zero vector is 0 with every vector.
        crowded = np.array(~unit.any(axis=1), np.bool_)
        pairs = self._above(unit, components, known, crowded)
        pairs = pairs.only((pairs.bounds >= known[pairs.rows] - self._margin) & ~crowded[pairs.rows])
        cosines = self._cosines(pairs, unit)
        best = np.full(len(unit), -np.inf, np.float32)
        np.maximum.at(best, pairs.rows, cosines)
        pairs = pairs.only(cosines >= best[pairs.rows] - near_tie)
        # The slots of a row stay in ascending order.
        order = np.argsort(pairs.rows, kind="stable")
        slots = pairs.slots[order]
        ends = np.searchsorted(pairs.rows[order], np.arange(len(unit) + 1)).tolist()
        return [
            None if left else Near(slots[start:end], cosine)
            for left, start, end, cosine in zip(crowded.tolist(), ends, ends[1:], best.tolist(), strict=False)
        ]

    def _above(self, unit: Vectors, components: Vectors, known: Vectors, crowded: npt.NDArray[np.bool_]) -> _Pairs:
        """Returns all pairs whose bound is above the cosine that was known then; raises `known`, and marks `crowded`."""
        width = max(1, PANEL_CELLS // len(unit))
        most = max(LEAST_CROWD, self._used // CROWD)
        memory, copies = np.empty((2, len(unit), min(width, self._used)), np.float32)
        every = np.arange(len(unit))
        record = known.copy()
        count = np.zeros(len(unit), np.intp)
        found = [_Pairs(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0, np.float32))]
        for start in range(0, self._used, width):
            if crowded.all():
                break
            end = min(self._used, start + width)
            panel = self._bounds.between(components, start, end, out=memory[:, : end - start])
            first, last = np.searchsorted(self._excluded, (start, end))
            if last > first:
                panel[:, self._excluded[first:last] - start] = -np.inf
            slots = panel.argmax(axis=1)
            largest = panel[every, slots]
            newer = np.flatnonzero((largest > record) & ~crowded)
            if newer.size:
                record[newer] = largest[newer]
                likely = _Pairs(newer, slots[newer] + start, largest[newer])
                known[newer] = np.maximum(known[newer], self._cosines(likely, unit))
            near = np.flatnonzero((largest >= known - self._margin) & (largest > -np.inf) & ~crowded)
            bounds = panel.take(near, axis=0, out=copies[: near.size, : end - start], mode="clip")
            # With two indices, `nonzero` takes nearly as long as the product.
            above = np.flatnonzero(bounds >= (known[near] - self._margin)[:, None])
            rows, columns = np.divmod(above, end - start)
            count += np.bincount(near[rows], minlength=len(unit))
            crowded |= count > most
            found.append(_Pairs(near[rows], columns + start, bounds.ravel()[above]))
        return _Pairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _cosines(self, pairs: _Pairs, unit: Vectors) -> Vectors:
        cosines = np.empty(pairs.rows.size, np.float32)
        for start in range(0, cosines.size, _PAIRS):
            piece = slice(start, start + _PAIRS)
            np.einsum("ij,ij->i", self._store[pairs.slots[piece]], unit[pairs.rows[piece]], out=cosines[piece])
        return cosines

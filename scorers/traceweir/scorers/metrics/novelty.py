"""Computes the novelty of a trace: 1 minus its largest cosine similarity with the traces that its scope remembers.

The cache of one scope is a ring buffer: the newest vector overwrites the oldest, and a lookup does not change the age
of a vector. The formula is that of KnowledgePulse's `evaluateValue` (packages/sdk/src/scoring.ts and hnsw-cache.ts),
computed here for a batch at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors

UNKNOWN_NOVELTY = 0.5
"""Novelty of a trace that cannot be compared: the first trace of its scope, or a trace without an embedding."""

MAX_CAPACITY = 100_000

_ABSENT = -2.0
"""Marks a slot that must not be compared; less than every cosine."""

_NEAR_TIE = 1e-5
"""Several times the error of a float32 dot product of two unit vectors of a few hundred dimensions."""

_PIECE_ROWS, _PIECE_CELLS = 256, 8_000_000
"""Maximum number of traces compared at once, and of float32 similarities computed at once (32 MB)."""


@dataclass(frozen=True, slots=True)
class Novelty:
    """Holds the novelty of one trace at the time of its measurement, and the position of its vector in the cache."""

    value: float
    """1 - similarity, from 0 (seen before) to 2 (the opposite of everything seen); 0.5 if the cache was empty."""
    nearest: str | None
    """Trace id of the most similar vector, the oldest of equally similar vectors; None if the cache was empty."""
    similarity: float | None
    """Cosine with the nearest vector, from -1 to 1; 0 if either vector is a zero vector."""
    slot: int
    """Position in the ring buffer, from 0 to capacity - 1. A later vector of the same call can have overwritten it."""
    sequence: int
    """Number of vectors added before this vector, or before the vector that it replaces."""


class NoveltyCache:
    """Stores the last `capacity` vectors of a scope, normalised, in one matrix that grows with their number.

    Measuring a batch returns the same values, bit for bit, as measuring its traces separately: a float32 product
    selects the rows that can be the nearest, and the reported similarity is computed from these rows only, in float64.

    >>> cache = NoveltyCache(dimensions=2)
    >>> for novelty in cache.measure_and_add(np.array([[1, 0], [3, 4], [0, 2]], np.float32), ["a", "b", "c"]):
    ...     print(novelty.nearest, round(novelty.value, 6))
    None 0.5
    a 0.4
    b 0.2
    """

    def __init__(self, capacity: int = 1000, dimensions: int = 384) -> None:
        if not 1 <= capacity <= MAX_CAPACITY:
            raise ValueError(f"novelty capacity must lie between 1 and {MAX_CAPACITY}, not {capacity}")
        self.capacity = capacity
        self.dimensions = dimensions
        self._vectors = np.empty((0, dimensions), np.float32)
        self._sequences: list[int] = []  # by slot; -1 for a slot that `restore` has not filled
        self._ids: list[str] = []
        self._slot_of: dict[str, int] = {}
        self._gaps = 0
        self._next_slot = 0
        self._next_sequence = 0

    def __len__(self) -> int:
        return len(self._ids) - self._gaps

    def measure_and_add(self, vectors: npt.ArrayLike, ids: Sequence[str], *, replace: bool = False) -> list[Novelty]:
        """Compares each vector with all vectors before it, those of the same call included, and adds it to the cache.

        Args:
            vectors: One row per trace, of any finite Euclidean length; zero is allowed.
            ids: The trace id of each row.
            replace: Treats an id that the cache contains as a revision of that trace: the trace is not compared with
                its own old vector, and the new vector overwrites the old vector in its slot and keeps its age. If
                false, every row is a new vector, also if the cache contains its id.

        Raises:
            ValueError: Wrong number of dimensions or ids, or a value that is not finite. The cache is then unchanged.
        """
        unit = self._normalised(vectors, ids)
        size = min(_PIECE_ROWS, max(1, _PIECE_CELLS // max(1, len(self._ids))))
        measured: list[Novelty] = []
        for start in range(0, len(ids), size):
            measured += self._measure_piece(unit[start : start + size], ids[start : start + size], replace)
        return measured

    def vector(self, slot: int) -> Vectors:
        """Returns a copy of the normalised vector in a slot, for a later `restore`."""
        vector: Vectors = self._vectors[slot].copy()
        return vector

    def restore(self, slot: int, sequence: int, trace_id: str, vector: npt.ArrayLike) -> None:
        """Restores a vector of an earlier cache; vectors can be restored in any order.

        Args:
            slot: The slot of the vector in the earlier cache.
            sequence: The sequence number of the vector in the earlier cache.
            trace_id: The trace id of the vector.
            vector: The result of `vector(slot)`. It is stored unchanged, so that later values are equal bit for bit.

        Raises:
            ValueError: Wrong number of dimensions, or a slot beyond the capacity, which has been reduced since.
        """
        if not 0 <= slot < self.capacity:
            raise ValueError(
                f"slot {slot} of trace {trace_id!r} does not fit a novelty cache of {self.capacity} vectors"
            )
        row = np.asarray(vector, np.float32)
        self._expect_dimensions(row.shape[-1] if row.ndim == 1 else row.size)
        self._make_room(slot + 1)
        for _ in range(len(self._ids), slot + 1):
            self._ids.append("")
            self._sequences.append(-1)
            self._gaps += 1
        self._put(slot, sequence, trace_id, row)
        if sequence >= self._next_sequence:
            self._next_sequence = sequence + 1
            self._next_slot = (slot + 1) % self.capacity

    def _measure_piece(self, unit: Vectors, ids: Sequence[str], replace: bool) -> list[Novelty]:
        """Compares all rows with the matrix at once, then compares each row with the rows before it."""
        used = len(self._ids)
        room = min(self.capacity, used + len(ids))
        self._make_room(room)
        similarities = np.full((len(ids), room), _ABSENT, np.float32)
        _multiply(unit, self._vectors[:used], similarities[:, :used])
        if self._gaps:
            similarities[:, [slot for slot in range(used) if self._sequences[slot] < 0]] = _ABSENT
        among = unit @ unit.T
        measured = []
        for i, trace_id in enumerate(ids):
            own = self._slot_of.get(trace_id) if replace else None
            if own is not None:
                similarities[i, own] = _ABSENT
            nearest = self._nearest(similarities[i, : len(self._ids)], unit[i])
            slot, sequence = (self._next_slot, self._next_sequence) if own is None else (own, self._sequences[own])
            self._put(slot, sequence, trace_id, unit[i])
            if own is None:
                self._next_slot = (slot + 1) % self.capacity
                self._next_sequence += 1
            similarities[i + 1 :, slot] = among[i + 1 :, i]
            if nearest is None:
                measured.append(Novelty(UNKNOWN_NOVELTY, None, None, slot, sequence))
            else:
                measured.append(Novelty(1.0 - nearest[1], nearest[0], nearest[1], slot, sequence))
        return measured

    def _nearest(self, similarities: npt.NDArray[np.float32], unit: Vectors) -> tuple[str, float] | None:
        """Returns the trace id and the cosine of the nearest slot. Call this method before `_put` stores the row."""
        best = similarities.max(initial=_ABSENT)
        if best == _ABSENT:
            return None
        slots = np.flatnonzero(similarities >= best - _NEAR_TIE)
        if slots.size > 1:  # oldest first: the oldest slot of the ring buffer is the slot that is overwritten next
            oldest = np.searchsorted(slots, self._next_slot)
            slots = np.concatenate((slots[oldest:], slots[:oldest]))
        nearest, cosine = int(slots[0]), _ABSENT
        # An agent that repeats itself fills the cache with copies: the first piece then already contains a cosine of
        # 1.
        for start in range(0, slots.size, _PIECE_ROWS):
            piece = slots[start : start + _PIECE_ROWS]
            cosines = _cosines(self._vectors[piece], unit)
            index = int(cosines.argmax())
            if cosines[index] > cosine:
                nearest, cosine = int(piece[index]), float(cosines[index])
            if cosine >= 1.0 or not unit.any():
                break
        return self._ids[nearest], max(-1.0, min(1.0, cosine))

    def _put(self, slot: int, sequence: int, trace_id: str, unit: Vectors) -> None:
        if slot == len(self._ids):
            self._ids.append(trace_id)
            self._sequences.append(sequence)
        else:
            self._gaps -= self._sequences[slot] < 0
            if self._slot_of.get(self._ids[slot]) == slot:
                del self._slot_of[self._ids[slot]]
            self._ids[slot] = trace_id
            self._sequences[slot] = sequence
        self._slot_of[trace_id] = slot
        self._vectors[slot] = unit

    def _make_room(self, rows: int) -> None:
        if rows > len(self._vectors):
            grown = np.zeros((min(self.capacity, max(rows, 16, 2 * len(self._vectors))), self.dimensions), np.float32)
            grown[: len(self._vectors)] = self._vectors
            self._vectors = grown

    def _normalised(self, vectors: npt.ArrayLike, ids: Sequence[str]) -> Vectors:
        rows = np.asarray(vectors, np.float32).astype(np.float64)
        if rows.ndim != 2 or len(rows) != len(ids):
            raise ValueError(f"expected one vector for each of {len(ids)} traces, got an array of shape {rows.shape}")
        self._expect_dimensions(rows.shape[1])
        lengths = np.sqrt((rows * rows).sum(axis=1))
        if not np.isfinite(lengths).all():
            broken = ids[int(np.isfinite(lengths).argmin())]
            raise ValueError(f"the vector of trace {broken!r} has a value that is not a finite number")
        return (rows / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)

    def _expect_dimensions(self, got: int) -> None:
        if got != self.dimensions:
            raise ValueError(f"expected {self.dimensions} dimensions, got {got}")


def _multiply(unit: Vectors, vectors: Vectors, out: npt.NDArray[np.float32]) -> None:
    # A matrix product repacks the whole cache first; for fewer than four rows, a separate product per row is faster.
    if len(unit) < 4:
        for row, similarities in zip(unit, out, strict=True):
            np.dot(vectors, row, out=similarities)
    else:
        np.matmul(unit, vectors.T, out=out)


def _cosines(rows: Vectors, unit: Vectors) -> npt.NDArray[np.float64]:
    """Returns cosines in float64. Each sum covers a single row, so a cosine does not depend on the other rows."""
    a, b = rows.astype(np.float64), unit.astype(np.float64)
    dots: npt.NDArray[np.float64] = (a * b).sum(axis=1)
    # The square root of the product makes a vector's cosine with its copy exactly 1; a product of two roots does not.
    lengths: npt.NDArray[np.float64] = np.sqrt((a * a).sum(axis=1) * (b * b).sum())
    lengths[lengths == 0] = 1.0
    cosines: npt.NDArray[np.float64] = dots / lengths
    return cosines

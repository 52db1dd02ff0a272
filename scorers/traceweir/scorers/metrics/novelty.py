"""Computes the novelty of a trace: 1 minus its largest cosine similarity with the traces that its scope remembers.

The cache of one scope is a ring buffer: the newest vector overwrites the oldest, and a lookup does not change the age
of a vector. The formula is that of KnowledgePulse's `evaluateValue` (packages/sdk/src/scoring.ts and hnsw-cache.ts),
computed here for a batch at once. `nearest_search` finds the nearest vector.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.nearest_search import ABSENT, PIECE_ROWS, NearestSearch
from traceweir.scorers.metrics.novelty_value import UNKNOWN_NOVELTY, Novelty
from traceweir.scorers.metrics.panel_search import Near
from traceweir.scorers.metrics.vector_store import CodedVectors, ReadVector, VectorMatrix

MAX_CAPACITY = 1_000_000

BOUNDS_FROM = 8_192
"""Number of vectors in the cache from which bounds are faster than a scan."""


class NoveltyCache:
    """Stores the last `capacity` vectors of a scope, normalised, in one matrix that grows with their number.

    Measuring a batch returns the same values, bit for bit, as measuring its traces separately: bounds and a float32
    product select the rows that can be the nearest, and the reported similarity is computed from these rows only, in
    float64.

    >>> cache = NoveltyCache(dimensions=2)
    >>> for novelty in cache.measure_and_add(np.array([[1, 0], [3, 4], [0, 2]], np.float32), ["a", "b", "c"]):
    ...     print(novelty.nearest, round(novelty.value, 6))
    None 0.5
    a 0.4
    b 0.2
    """

    def __init__(
        self,
        capacity: int = 1000,
        dimensions: int = 384,
        *,
        read: ReadVector | None = None,
        bounds_from: int = BOUNDS_FROM,
    ) -> None:
        """Creates an empty cache.

        Args:
            capacity: Maximum number of vectors, from 1 to 1,000,000.
            dimensions: The length of every vector.
            read: Returns the vector of a slot. With it, the cache keeps a vector of 384 dimensions in 0.8 kB in place of
                1.5 kB, and reads those that can be the nearest. None: the cache keeps the vectors.
            bounds_from: Number of vectors from which bounds select the vectors to compare. It changes the time, and no
                result.
        """
        if not 1 <= capacity <= MAX_CAPACITY:
            raise ValueError(f"novelty capacity must lie between 1 and {MAX_CAPACITY}, not {capacity}")
        self.capacity = capacity
        self.dimensions = dimensions
        store = VectorMatrix(dimensions) if read is None else CodedVectors(dimensions, read)
        self._search = NearestSearch(store, bounds_from)
        # By slot; -1 for a slot that `restore` has not filled.
        self._sequences = array("q")
        self._ids: list[str] = []
        self._slot_of: dict[str, int] = {}
        self._gaps = 0
        self._next_slot = 0
        self._next_sequence = 0

    def __len__(self) -> int:
        return len(self._ids) - self._gaps

    @property
    def bounded(self) -> bool:
        """Whether bounds select the vectors to compare. False for a small cache, and if bounds would not save time."""
        return self._search.bounded

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
        return [
            novelty
            for start in range(0, len(ids), PIECE_ROWS)
            for novelty in self._measure_piece(
                unit[start : start + PIECE_ROWS], ids[start : start + PIECE_ROWS], replace
            )
        ]

    def vector(self, slot: int) -> Vectors:
        """Returns a copy of the normalised vector in a slot, for a later `restore`."""
        vector: Vectors = self._search.store.exact(np.array([slot]))[0]
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
        row = np.asarray(vector, np.float32)
        self._expect_dimensions(row.shape[-1] if row.ndim == 1 else row.size)
        self.restore_all([slot], [sequence], [trace_id], [row])

    def restore_all(
        self, slots: Sequence[int], sequences: Sequence[int], trace_ids: Sequence[str], vectors: Sequence[Vectors]
    ) -> None:
        """Restores many vectors, like `restore`."""
        for slot, trace_id in zip(slots, trace_ids, strict=True):
            if not 0 <= slot < self.capacity:
                raise ValueError(
                    f"slot {slot} of trace {trace_id!r} does not fit a novelty cache of {self.capacity} vectors"
                )
        rows = np.stack(vectors)
        self._expect_dimensions(rows.shape[1])
        end = max(slots) + 1
        self._make_room(end)
        missing = max(0, end - len(self._ids))
        self._ids += [""] * missing
        self._sequences.extend([-1] * missing)
        self._gaps += missing
        for slot, sequence, trace_id in zip(slots, sequences, trace_ids, strict=True):
            self._name(slot, sequence, trace_id)
            if sequence >= self._next_sequence:
                self._next_sequence = sequence + 1
                self._next_slot = (slot + 1) % self.capacity
        self._search.store.put_back(np.array(slots, np.intp), rows)
        self._search.forget()

    def release(self, slots: Iterable[int]) -> None:
        """Says that `read` now returns the vectors of these slots, as they are in the cache."""
        self._search.store.release(slots)

    def _measure_piece(self, unit: Vectors, ids: Sequence[str], replace: bool) -> list[Novelty]:
        """Compares all rows with the slots that stay as they are, then each row with those that the rows before it change."""
        search = self._search
        used = len(self._ids)
        if search.learns(len(self), self._next_sequence):
            search.learn(self._slots_by_age(), self._next_sequence)
        self._make_room(min(self.capacity, used + len(ids)))
        changing = self._changing(ids, replace)
        column_of = {slot: column for column, slot in enumerate(changing.tolist())}
        similarities = self._with_slots(unit, changing)
        among = unit @ unit.T if len(ids) > 1 else unit
        excluded = changing[changing < used]
        if self._gaps:
            excluded = np.union1d(excluded, np.flatnonzero(np.asarray(self._sequences) < 0))
        measured: list[Novelty] = []
        for i, near in enumerate(search.near(unit, used, excluded, self._next_slot)):
            own = self._slot_of.get(ids[i]) if replace else None
            if own is not None:
                similarities[i, column_of[own]] = ABSENT
            groups = _near_of_both(near, changing, similarities[i], search.near_tie)
            nearest = search.nearest(groups, unit[i], self._next_slot)
            similar = None if nearest is None else self._ids[nearest[0]]
            slot, sequence = (self._next_slot, self._next_sequence) if own is None else (own, self._sequences[own])
            self._name(slot, sequence, ids[i])
            search.put(slot, unit, i)
            if own is None:
                self._next_slot = (slot + 1) % self.capacity
                self._next_sequence += 1
            if i + 1 < len(ids):
                similarities[i + 1 :, column_of[slot]] = among[i + 1 :, i]
            if nearest is None:
                measured.append(Novelty(UNKNOWN_NOVELTY, None, None, slot, sequence))
            else:
                measured.append(Novelty(1.0 - nearest[1], similar, nearest[1], slot, sequence))
        return measured

    def _changing(self, ids: Sequence[str], replace: bool) -> npt.NDArray[np.intp]:
        """Returns at least the slots that a row of the piece changes before another row, or that a revision skips."""
        slots = {(self._next_slot + number) % self.capacity for number in range(len(ids) - 1)}
        if replace:
            slots.update(self._slot_of[each] for each in ids if each in self._slot_of)
        return np.array(sorted(slots), np.intp)

    def _with_slots(self, unit: Vectors, slots: npt.NDArray[np.intp]) -> Vectors:
        """Returns the float32 cosines of the rows with some slots; ABSENT for slots without a vector."""
        similarities = np.full((len(unit), slots.size), ABSENT, np.float32)
        if not slots.size:
            return similarities
        filled = [column for column, slot in enumerate(slots.tolist()) if self._is_filled(slot)]
        if filled:
            similarities[:, filled] = unit @ self._search.store[slots[filled]].T
        return similarities

    def _is_filled(self, slot: int) -> bool:
        return slot < len(self._ids) and self._sequences[slot] >= 0

    def _slots_by_age(self) -> npt.NDArray[np.intp]:
        slots = np.flatnonzero(np.asarray(self._sequences) >= 0)
        return np.roll(slots, -int(np.searchsorted(slots, self._next_slot)))

    def _name(self, slot: int, sequence: int, trace_id: str) -> None:
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

    def _make_room(self, rows: int) -> None:
        if rows > self._search.store.rows:
            self._search.reserve(min(self.capacity, max(rows, 16, 2 * self._search.store.rows)))

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


def _near_of_both(
    near: Near, changing: npt.NDArray[np.intp], similarities: npt.NDArray[np.float32], near_tie: float
) -> tuple[Near, ...]:
    """Returns the slots that can be the nearest: of those that stay, and of those that change."""
    if not similarities.size:
        return (near,)
    # Faster than `max`.
    best = float(similarities[similarities.argmax()])
    if best == ABSENT or best < near.cosine - near_tie:
        return (near,)
    changed = Near(changing[similarities >= max(best, near.cosine) - near_tie], best)
    return (changed,) if near.cosine < best - near_tie else (near, changed)

"""Keeps the novelty scopes of one partition with their vectors and decided traces; drops the least recently used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import orjson

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.novelty import Novelty, NoveltyCache
from traceweir.streams.gate.novelty_scope_rows import (
    DECISION,
    SCOPE,
    VECTOR,
    Decided,
    Version,
    pack_vector,
    scope_digest,
    slot_key,
    split_slot_key,
    unpack_vector,
)
from traceweir.streams.stages.base import Rows


class NoveltyScope:
    """Holds the vectors and decisions of one scope, and the rows that changed since the last call of `rows`."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name, self.digest, self.capacity = name, scope_digest(name), capacity
        self.vectors: NoveltyCache | None = None
        self.decided: OrderedDict[str, Decided] = OrderedDict()
        self.numbers = 0
        self.used = 0
        self._rows: dict[bytes, bytes | None] = {}

    def measure_and_add(self, vectors: Vectors, trace_ids: list[str]) -> list[Novelty]:
        """Returns the novelty of each vector, in order. A known trace is a revision and replaces its own vector.

        Raises:
            ValueError: The vectors' length differs from the scope's, or a value is not finite. No vector is then added.
        """
        cache = self.vectors or NoveltyCache(self.capacity, vectors.shape[1])
        measured = cache.measure_and_add(vectors, trace_ids, replace=True)
        self.vectors = cache
        for trace_id, novelty in zip(trace_ids, measured, strict=True):
            row = pack_vector(novelty.sequence, trace_id, cache.vector(novelty.slot))
            self._rows[slot_key(VECTOR, self.digest, novelty.slot)] = row
        return measured

    def supersedes(self, trace_id: str, version: Version) -> bool:
        """Returns whether a later version of this trace is already decided.

        This happens if a replayed session is scored long after its next revision.
        """
        known = self.decided.get(trace_id)
        return known is not None and known.version > version

    def remember(self, trace_id: str, session_id: str, version: Version, accepted: bool) -> None:
        """Stores a decision, and drops the oldest decision beyond the capacity.

        A new decision on a known trace does not change the trace's age.
        """
        old = self.decided.get(trace_id)
        number = old.number if old else self.numbers
        self.numbers = max(self.numbers, number + 1)
        decided = self.decided[trace_id] = Decided(trace_id, session_id, accepted, number, *version)
        self._rows[slot_key(DECISION, self.digest, number % self.capacity)] = decided.pack()
        while len(self.decided) > self.capacity:
            self.decided.popitem(last=False)

    def restore(self, key: bytes, row: bytes) -> None:
        """Restores a row of a vector or a decision."""
        _, slot = split_slot_key(key)
        if key.startswith(VECTOR):
            sequence, trace_id, vector = unpack_vector(row)
            if slot < self.capacity:
                self.vectors = self.vectors or NoveltyCache(self.capacity, len(vector))
                self.vectors.restore(slot, sequence, trace_id, vector)
        else:
            decided = Decided.unpack(row)
            self.decided[decided.trace_id] = decided
            self.numbers = max(self.numbers, decided.number + 1)

    def settle(self) -> None:
        """Orders the decisions by age, after rows were restored in any order."""
        self.decided = OrderedDict(sorted(self.decided.items(), key=lambda item: item[1].number))

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        about = orjson.dumps({"name": self.name, "used": self.used})
        rows, self._rows = [(SCOPE + self.digest, about), *self._rows.items()], {}
        return rows

    def tombstones(self) -> Rows:
        """Returns the deletions of all rows of this scope."""
        slots = range(min(self.capacity, max(self.numbers, len(self.vectors) if self.vectors else 0)))
        keys = [slot_key(kind, self.digest, slot) for kind in (VECTOR, DECISION) for slot in slots]
        return [(key, None) for key in (SCOPE + self.digest, *keys)]


class NoveltyScopes:
    """Holds the scopes of a partition; at most `limit`."""

    def __init__(self, capacity: int, limit: int) -> None:
        self._capacity, self._limit = capacity, limit
        self._scopes: OrderedDict[str, NoveltyScope] = OrderedDict()
        self._changed: dict[str, NoveltyScope] = {}
        self._dropped: dict[bytes, None] = {}
        self._uses = 0

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the scopes from the rows of the last finished checkpoint."""
        about = {key[1:]: orjson.loads(row) for key, row in rows.items() if key.startswith(SCOPE)}
        by_digest = {}
        for digest, found in sorted(about.items(), key=lambda item: item[1]["used"]):
            scope = by_digest[digest] = self._scopes[found["name"]] = NoveltyScope(found["name"], self._capacity)
            scope.used = self._uses = found["used"]
        for key, row in rows.items():
            if key[:1] in (VECTOR, DECISION):
                by_digest[key[1:17]].restore(key, row)
        for scope in self._scopes.values():
            scope.settle()

    def drops_one_for(self, name: str) -> bool:
        """Returns whether `get` would drop a scope."""
        return name not in self._scopes and len(self._scopes) >= self._limit

    def get(self, name: str) -> NoveltyScope:
        """Returns the scope of this name, created if new, and marks it as the most recently used scope."""
        scope = self._scopes.get(name)
        if scope is None:
            scope = self._scopes[name] = NoveltyScope(name, self._capacity)
        self._scopes.move_to_end(name)
        self._uses += 1
        scope.used = self._uses
        self._changed[name] = scope
        while len(self._scopes) > self._limit:
            oldest, dropped = self._scopes.popitem(last=False)
            self._changed.pop(oldest, None)
            self._dropped |= dict.fromkeys(key for key, _ in dropped.tombstones())
        return scope

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        written = {key: row for scope in self._changed.values() for key, row in scope.rows()}
        rows: Rows = [(key, None) for key in self._dropped if key not in written]
        self._changed, self._dropped = {}, {}
        return [*rows, *written.items()]

"""Keeps the novelty scopes of one partition with their vectors and decided traces, within a limit.

A scope is on trial until enough candidates have come, then established. Only a scope on trial is dropped, the least
recently used first: an agent that invents task domains drops its own. The order of the candidates decides alone.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING

import orjson

from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.novelty_value import Novelty
from traceweir.streams.base.stages.base import Read, Rows
from traceweir.streams.pipeline.gate.novelty_scope_rows import (
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

if TYPE_CHECKING:
    from traceweir.scorers.metrics.novelty import NoveltyCache

ESTABLISHED_AT = 10
"""Candidates of a scope. A scope on trial asks for an established place at each multiple of this number."""
TRIAL_SHARE = 5
"""One of so many places, at least one place, is left to scopes on trial, so that a new task domain can be established."""
KEPT_PER_CANDIDATE = 100
"""Candidates of the partition for which each candidate of a scope lengthens the scope's stay in an established place."""
COUNTED = 1_000
"""Candidates of a scope that lengthen its stay; more do not, so that a domain that has ended leaves at last."""


EXACT_UP_TO = 100_000
"""Capacity up to which the vectors of a scope are in memory as they are. Larger scopes read some of them from rows."""
_RESTORED_TOGETHER = 1_024


class NoveltyScope:
    """Holds the vectors and decisions of one scope, and the rows that changed since the last call of `rows`."""

    def __init__(self, name: str, capacity: int, read: Read | None = None) -> None:
        """Creates an empty scope. With `read`, memory has codes of the vectors, and rows are read."""
        self.name = name
        self.digest = scope_digest(name)
        self.capacity = capacity
        self._read = read
        self.vectors: NoveltyCache | None = None
        self.decided: OrderedDict[str, Decided] = OrderedDict()
        self.numbers = 0
        self.used = 0
        """Number of the partition's candidate that used the scope last, or took its established place."""
        self.candidates = 0
        """Number of candidates of this scope since its creation."""
        self._rows: dict[bytes, bytes | None] = {}
        self._unreadable: set[int] = set()
        """Slots of the vectors in the last cut. Their rows can be read at the next cut."""

    def measure_and_add(self, vectors: Vectors | Sequence[Vectors], trace_ids: list[str]) -> list[Novelty]:
        """Returns the novelty of each vector, in order. A known trace is a revision and replaces its own vector.

        Raises:
            ValueError: the vectors' length differs from the scope's, or a value is not finite. No vector is then added.
        """
        cache = self.vectors or self._new_cache(len(vectors[0]))
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

    def restore_vectors(self, rows: Mapping[int, bytes]) -> None:
        """Restores vectors from their rows, by slot. A slot beyond the capacity, which was reduced, is left out."""
        kept = {slot: unpack_vector(row) for slot, row in rows.items() if slot < self.capacity}
        if kept:
            sequences, trace_ids, vectors = zip(*kept.values(), strict=True)
            self.vectors = self.vectors or self._new_cache(len(vectors[0]))
            self.vectors.restore_all(list(kept), sequences, trace_ids, vectors)

    def restore_decision(self, row: bytes) -> None:
        """Restores a decision from its row."""
        decided = Decided.unpack(row)
        self.decided[decided.trace_id] = decided
        self.numbers = max(self.numbers, decided.number + 1)

    def settle(self) -> None:
        """Orders the decisions by age, after rows were restored in any order."""
        self.decided = OrderedDict(sorted(self.decided.items(), key=lambda item: item[1].number))

    @property
    def worth(self) -> tuple[int, int]:
        """The rank among established scopes; the lowest loses its place first. No two scopes have the same rank."""
        return self.used + KEPT_PER_CANDIDATE * min(self.candidates, COUNTED), self.used

    def rows(self, *, established: bool) -> Rows:
        """Returns the changed rows since the last call."""
        about = orjson.dumps(
            {"name": self.name, "used": self.used, "candidates": self.candidates, "established": established}
        )
        if self.vectors is not None:
            slots = {split_slot_key(key)[1] for key in self._rows if key.startswith(VECTOR)}
            self.vectors.release(self._unreadable - slots)
            self._unreadable = slots
        rows = [(SCOPE + self.digest, about), *self._rows.items()]
        self._rows = {}
        return rows

    def tombstones(self) -> Rows:
        """Returns the deletions of all rows of this scope."""
        slots = range(min(self.capacity, max(self.numbers, len(self.vectors) if self.vectors else 0)))
        keys = [slot_key(kind, self.digest, slot) for kind in (VECTOR, DECISION) for slot in slots]
        return [(key, None) for key in (SCOPE + self.digest, *keys)]

    def _new_cache(self, dimensions: int) -> NoveltyCache:
        from traceweir.scorers.metrics.novelty import NoveltyCache

        return NoveltyCache(self.capacity, dimensions, read=None if self._read is None else self._read_vector)

    def _read_vector(self, slot: int) -> Vectors:
        row = self._read(slot_key(VECTOR, self.digest, slot)) if self._read is not None else None
        if row is None:
            raise LookupError(f"the vector in slot {slot} of the novelty scope {self.name!r} has no row")
        return unpack_vector(row)[2]


class NoveltyScopes:
    """Holds the scopes of a partition; at most `limit`."""

    def __init__(self, capacity: int, limit: int, read: Read | None = None, *, exact_up_to: int = EXACT_UP_TO) -> None:
        """Creates an empty partition.

        Args:
            capacity: Maximum number of vectors, and of decisions, of a scope.
            limit: Maximum number of scopes.
            read: Returns a row as of the last cut. None: all vectors are in memory.
            exact_up_to: The capacity above which vectors are read.
        """
        self._capacity = capacity
        self._limit = limit
        self._read = read if capacity > exact_up_to else None
        self._established_limit = limit - max(1, limit // TRIAL_SHARE)
        self._established: dict[str, NoveltyScope] = {}
        self._ranking: list[tuple[tuple[int, int], str]] = []
        """A heap of established scopes by their worth when it was last looked at; a scope's worth never falls."""
        self._on_trial: OrderedDict[str, NoveltyScope] = OrderedDict()
        """By `used`, the least recently used first."""
        self._changed: dict[str, NoveltyScope] = {}
        self._dropped: dict[bytes, None] = {}
        self._uses = 0

    def __len__(self) -> int:
        return len(self._established) + len(self._on_trial)

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the scopes from the rows of the last finished checkpoint."""
        about = {key[1:]: orjson.loads(row) for key, row in rows.items() if key.startswith(SCOPE)}
        scopes = {digest: NoveltyScope(found["name"], self._capacity, self._read) for digest, found in about.items()}
        vectors: defaultdict[bytes, dict[int, bytes]] = defaultdict(dict)
        for key, row in rows.items():
            if key.startswith(DECISION):
                scopes[key[1:17]].restore_decision(row)
            elif key.startswith(VECTOR):
                digest, slot = split_slot_key(key)
                vectors[digest][slot] = row
                if len(vectors[digest]) == _RESTORED_TOGETHER:
                    scopes[digest].restore_vectors(vectors.pop(digest))
        for digest, some in vectors.items():
            scopes[digest].restore_vectors(some)
        established = []
        for digest, scope in scopes.items():
            found = about[digest]
            scope.settle()
            scope.used = found["used"]
            self._uses = max(self._uses, scope.used)
            # Rows of earlier versions have neither number nor place. They are rewritten together, because the places of
            # some would depend on the places of the others.
            scope.candidates = found.get("candidates", scope.numbers)
            if "established" not in found:
                self._changed[scope.name] = scope
            if found.get("established", scope.candidates >= ESTABLISHED_AT):
                established.append(scope)
        established.sort(key=lambda scope: scope.worth, reverse=True)
        self._established = {scope.name: scope for scope in established[: self._established_limit]}
        self._ranking = sorted((scope.worth, scope.name) for scope in self._established.values())
        self._changed |= {scope.name: scope for scope in established[self._established_limit :]}
        on_trial = [scope for scope in scopes.values() if scope.name not in self._established]
        self._on_trial = OrderedDict((scope.name, scope) for scope in sorted(on_trial, key=lambda scope: scope.used))

    def drops_one_for(self, name: str) -> bool:
        """Returns whether `get` would drop a scope."""
        return self._known(name) is None and len(self._established) + len(self._on_trial) >= self._limit

    def get(self, name: str) -> NoveltyScope:
        """Returns the scope of a candidate, created if new, and counts the candidate."""
        scope = self._known(name) or NoveltyScope(name, self._capacity, self._read)
        self._uses += 1
        scope.used = self._uses
        scope.candidates += 1
        self._changed[name] = scope
        if name not in self._established:
            self._on_trial[name] = scope
            self._on_trial.move_to_end(name)
            if scope.candidates % ESTABLISHED_AT == 0:
                self._establish(scope)
        while len(self._established) + len(self._on_trial) > self._limit:
            oldest, dropped = self._on_trial.popitem(last=False)
            self._changed.pop(oldest, None)
            self._dropped |= dict.fromkeys(key for key, _ in dropped.tombstones())
        return scope

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        written = {
            key: row
            for name, scope in self._changed.items()
            for key, row in scope.rows(established=name in self._established)
        }
        rows: Rows = [(key, None) for key in self._dropped if key not in written]
        self._changed = {}
        self._dropped = {}
        return [*rows, *written.items()]

    def _known(self, name: str) -> NoveltyScope | None:
        return self._established.get(name) or self._on_trial.get(name)

    def _establish(self, scope: NoveltyScope) -> None:
        """Gives a scope on trial an established place, if one is free or its scope is worth less."""
        if len(self._established) < self._established_limit:
            heappush(self._ranking, (scope.worth, scope.name))
        else:
            weakest = self._weakest()
            if weakest is None or weakest.worth >= scope.worth:
                return
            heapreplace(self._ranking, (scope.worth, scope.name))
            del self._established[weakest.name]
            # Its trial begins now.
            weakest.used = self._uses
            self._on_trial[weakest.name] = self._changed[weakest.name] = weakest
        del self._on_trial[scope.name]
        self._established[scope.name] = scope

    def _weakest(self) -> NoveltyScope | None:
        """Returns the first of the ranking, after correcting the entries of scopes that were used since."""
        while self._ranking:
            worth, name = self._ranking[0]
            scope = self._established[name]
            if scope.worth == worth:
                return scope
            heapreplace(self._ranking, (scope.worth, name))
        return None

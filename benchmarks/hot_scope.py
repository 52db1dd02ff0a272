"""Measures candidates per second of the gate for one domain with all traffic, by number of vectors in its scope.

No broker: the stage itself, from a candidate's bytes to the rows and outputs of its decision. Two kinds of vectors:
similar ones, which have most of their length in a few directions, as embeddings of texts of one kind have; and
independent random ones, for which bounds gain nothing. Each figure stands beside that of a cache that scans all its
vectors, measured in turn. All rates are per second of CPU; run it with one thread, because waiting threads of
OpenBLAS use CPU too: `OPENBLAS_NUM_THREADS=1 python -m benchmarks hot-scope`.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from benchmarks.cosine import DIMENSIONS, unit_vectors
from benchmarks.stages import topology_of_one_partition
from benchmarks.workload import record
from traceweir.schemas.candidate import Candidate, Embedding
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.embedding import Vectors
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.metrics.novelty import BOUNDS_FROM, NoveltyCache
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.topics import Topics
from traceweir.streams.pipeline.gate.novelty_scopes import NoveltyScopes
from traceweir.streams.pipeline.gate.stage import GateStage

Draw = Callable[..., Vectors]
"""Returns unit vectors: `draw(rows, seed=1)`."""

TOPICS = Topics.of()
SCOPE = "travel@benchmark"
BATCHES = (1, 16, 256)
AT_MOST, BUDGET_S = 1_500, 2.0
ROUNDS = 3


class Record(NamedTuple):
    """The attributes of a record that the stage reads."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


def run() -> None:
    """Prints candidates per second, each the best of three rounds in turn, and the time to load the scope again."""
    for vectors in (similar_vectors, unit_vectors):
        for held in (1_000, 20_000, 100_000):
            print(f"  {held:,} {vectors.__name__.replace('_', ' ')}:", flush=True)
            gate, rows, loaded_s = _filled(held, vectors)
            candidates = _candidates(held, vectors)
            for batch in BATCHES:
                rate = max(_rate(gate, candidates, batch) for _ in range(ROUNDS))
                print(f"    batches of {batch}: {rate:,.0f} candidates per CPU second by the gate", flush=True)
            print(f"    {len(rows):,} rows loaded in {loaded_s:.1f} s of CPU", flush=True)
            del gate, rows
            for line in _novelty_alone(held, vectors):
                print(f"    {line}", flush=True)


def similar_vectors(rows: int, seed: int = 1) -> Vectors:
    """Returns unit vectors of which 76 % of the square of the length lies in 32 directions, of shape (rows, 384).

    The largest cosine with 100,000 others is 0.81 at the 5th percentile, 0.94 at the median and 0.99 at the 95th. For
    3,694 vectors of all-MiniLM-L6-v2, of texts from recorded sessions of one domain and of the same texts with other
    names and numbers, extended to 100,000 by their differences, the share is 78 %, and the cosines are 0.79, 0.95 and
    0.99.
    """
    fixed, drawn = np.random.default_rng(0), np.random.default_rng(seed)
    lengths = (1.0 + np.arange(DIMENSIONS)) ** -0.62
    texts = fixed.standard_normal((2_000, DIMENSIONS)) * lengths
    vectors = texts[drawn.integers(len(texts), size=rows)]
    vectors += drawn.uniform(0.1, 0.7, (rows, 1)) * lengths * drawn.standard_normal((rows, DIMENSIONS))
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _novelty_alone(held: int, vectors: Draw) -> Iterator[str]:
    """Yields candidates per second of CPU of two caches in turn: one with bounds, one that scans all its vectors."""
    caches = [NoveltyCache(held, DIMENSIONS, bounds_from=count) for count in (BOUNDS_FROM, held + 1)]
    names = [f"held-{number}" for number in range(held)]
    for cache in caches:
        cache.restore_all(range(held), range(held), names, list(vectors(held)))
        cache.measure_and_add(vectors(1, seed=2), ["first"])
    fresh = vectors(ROUNDS * 256 * len(BATCHES), seed=3)
    for batch in BATCHES:
        best = [0.0, 0.0]
        for _ in range(ROUNDS):
            some, fresh = fresh[:256], fresh[256:]
            for number, cache in enumerate(caches):
                began = time.process_time()
                for start in range(0, 256, batch):
                    cache.measure_and_add(some[start : start + batch], names[:batch])
                best[number] = max(best[number], 256 / (time.process_time() - began))
        yield f"batches of {batch}: {best[0]:,.0f} by novelty alone, {best[1]:,.0f} by a scan, per CPU second"


def _rate(gate: GateStage, candidates: Iterator[Record], batch: int) -> float:
    count, took = 0, 0.0
    while count < AT_MOST and took < BUDGET_S:
        records = [next(candidates) for _ in range(batch)]
        began = time.process_time()
        gate.apply(TOPICS.candidates, records)
        gate.cut()
        took += time.process_time() - began
        count += batch
    return count / took


def _filled(held: int, vectors: Draw) -> tuple[GateStage, dict[bytes, bytes], float]:
    """Returns a gate with a full scope, as after a restart."""
    scopes = NoveltyScopes(held, limit=1)
    scope = scopes.get(SCOPE)
    names = [f"kp:trace:held-{number}" for number in range(held)]
    scope.measure_and_add(vectors(held), names)
    for name in names:
        scope.remember(name, name, (0, 0, 0), accepted=True)
    rows = {key: row for key, row in scopes.rows() if row is not None}
    gate = _gate(held)
    began = time.process_time()
    gate.load(rows)
    return gate, rows, time.process_time() - began


def _gate(held: int) -> GateStage:
    plan = read_plan(b'{"gate": {"cache_size": %d}}' % held)
    gate = topology_of_one_partition(plan).spec("gate").new(0, lambda key: None, lambda: None)
    assert isinstance(gate, GateStage)
    return gate


def _candidates(held: int, vectors: Draw) -> Iterator[Record]:
    """Yields candidates of new traces, without end."""
    now = utc_now() - timedelta(seconds=60)
    trace = ReasoningTrace.model_validate_json(record("session", 9, now)[1])
    count = ROUNDS * len(BATCHES) * (AT_MOST + max(BATCHES))
    for number, vector in enumerate(vectors(count, seed=held)):
        name = f"kp:trace:{held}-{number}"
        candidate = Candidate(
            candidate_id=name,
            session_id=name,
            segment=0,
            revision=0,
            scope=SCOPE,
            trace=trace.model_copy(update={"id": name}),
            required={},
            embedding=Embedding.of("benchmark", np.asarray(vector)),
            occurred_at=now,
        )
        yield Record(number, 0, SCOPE.encode(), candidate.model_dump_json(by_alias=True, exclude_unset=True).encode())
    raise RuntimeError(f"the benchmark used all {count} candidates; increase the number of vectors")

"""Measures candidates per second of the gate for one domain with all traffic, by number of vectors in its scope.

No broker: the stage itself, from a candidate's bytes to the rows and outputs of its decision. Run it with `python -m
benchmarks hot-scope`.
"""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from benchmarks.cosine import unit_vectors
from benchmarks.stages import topology_of_one_partition
from benchmarks.workload import record
from traceweir.schemas.candidate import Candidate, Embedding
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.clock import utc_now
from traceweir.streams.gate.novelty_scopes import NoveltyScopes
from traceweir.streams.gate.stage import GateStage
from traceweir.streams.topics import Topics

TOPICS = Topics.of()
SCOPE = "travel@benchmark"
BATCHES = (1, 16, 256)
AT_MOST, BUDGET_S = 3_000, 4.0
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
    for held in (1_000, 20_000, 100_000):
        gate, rows, loaded_s = _filled(held)
        candidates = _candidates(held)
        rates = {batch: max(_rate(gate, candidates, batch) for _ in range(ROUNDS)) for batch in BATCHES}
        figures = ", ".join(f"{rate:,.0f} in batches of {batch}" for batch, rate in rates.items())
        print(f"  {held:,} vectors: {figures} candidates/s; {len(rows):,} rows loaded in {loaded_s:.1f} s", flush=True)


def _rate(gate: GateStage, candidates: Iterator[Record], batch: int) -> float:
    count, took = 0, 0.0
    while count < AT_MOST and took < BUDGET_S:
        records = [next(candidates) for _ in range(batch)]
        began = time.perf_counter()
        gate.apply(TOPICS.candidates, records)
        gate.cut()
        took += time.perf_counter() - began
        count += batch
    return count / took


def _filled(held: int) -> tuple[GateStage, dict[bytes, bytes], float]:
    """Returns a gate with a full scope, as after a restart."""
    scopes = NoveltyScopes(held, limit=1)
    scope = scopes.get(SCOPE)
    names = [f"kp:trace:held-{number}" for number in range(held)]
    scope.measure_and_add(unit_vectors(held), names)
    for name in names:
        scope.remember(name, name, (0, 0, 0), accepted=True)
    rows = {key: row for key, row in scopes.rows() if row is not None}
    gate = _gate(held)
    began = time.perf_counter()
    gate.load(rows)
    return gate, rows, time.perf_counter() - began


def _gate(held: int) -> GateStage:
    plan = read_plan(b'{"gate": {"cache_size": %d}}' % held)
    gate = topology_of_one_partition(plan).spec("gate").new(0, lambda key: None, lambda: None)
    assert isinstance(gate, GateStage)
    return gate


def _candidates(held: int) -> Iterator[Record]:
    """Yields candidates of new traces, without end."""
    now = utc_now() - timedelta(seconds=60)
    trace = ReasoningTrace.model_validate_json(record("session", 9, now)[1])
    count = ROUNDS * len(BATCHES) * (AT_MOST + max(BATCHES))
    for number, vector in enumerate(unit_vectors(count, seed=held)):
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

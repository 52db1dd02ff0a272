"""The bound on memory: what a worker may still hold when everything is scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from tests.simulation.worker import SimulatedWorker
from tests.simulation.world import World

from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.pipeline.collect.stage import CollectStage
from traceweir.streams.pipeline.gate.stage import GateStage
from traceweir.streams.pipeline.score.stage import ScoreStage

TASKS, TASKS_PER_PARTITION = 70, 8
"""The most tasks of a worker. A task that is left behind for each rebalance or each checkpoint exceeds them."""
ROWS_PER_RECORD, BYTES_PER_BYTE = 1, 1
"""The most rows in the table for each record that was sent, and the most bytes for each byte that was sent."""
ROWS, BYTES = 60, 30_000
"""The rows and bytes of an empty partition: offsets, counters, watermarks, and the scopes of the gate."""
HANDLES = 200
"""The most timers of the world for each worker."""


def broken_bounds(world: World, sent_records: int, sent_bytes: int) -> Iterator[str]:
    """Yields a sentence for each bound that does not hold at rest, when no record, session or trace waits.

    Args:
        world: The world at rest.
        sent_records: Number of records that were sent to the inputs, also those that stages have written.
        sent_bytes: Bytes of these records.
    """
    living = {name: each for name, each in world.workers.items() if each.process.alive and each.checkpoints is not None}
    holders = Counter(number for worker in living.values() for number in worker.checkpoints.lanes)
    for name, worker in living.items():
        lanes = worker.checkpoints.lanes
        if any(holders[number] > 1 for number in lanes):
            continue  # one of the two stands still, and its watchdog has not noticed yet
        tasks, most = len(world.loop.tasks_of(worker.process)), TASKS + TASKS_PER_PARTITION * len(lanes)
        if tasks > most:
            yield f"{name} has {tasks} tasks; {most} are enough for {len(lanes)} partitions"
        yield from (f"{name}: {line}" for line in _of_scoring(worker))
        for number, lane in lanes.items():
            yield from (f"{name}, partition {number}: {line}" for line in _of_lane(lane))
            rows = worker.checkpoints._table.rows(number)
            yield from (f"{name}, partition {number}: {line}" for line in _of_scopes(lane, rows))
            size = sum(len(key) + len(row) for key, row in rows.items())
            if len(rows) > (most_rows := ROWS + ROWS_PER_RECORD * sent_records):
                yield f"{name}, partition {number}: {len(rows)} rows; at most {most_rows} are allowed"
            if size > (most_bytes := BYTES + BYTES_PER_BYTE * sent_bytes):
                yield f"{name}, partition {number}: rows of {size} bytes; at most {most_bytes} are allowed"
    timers, most = len(world.loop.timers()), HANDLES * (1 + len(world.workers))
    if timers > most:
        yield f"{timers} timers are set; at most {most} are allowed"


def _of_scoring(worker: SimulatedWorker) -> Iterator[str]:
    scoring = worker.scoring
    if scoring is not None and (scoring.in_flight or scoring.suspects):
        yield f"{scoring.in_flight} sessions are in flight, {scoring.suspects} suspects"


def _of_scopes(lane: Any, rows: Collection[bytes]) -> Iterator[str]:
    """The gate has a row for each scope, vector and decision in memory, and one for its counters."""
    for stage in lane.stages.values():
        if isinstance(stage, GateStage):
            scopes = [*stage._scopes._established.values(), *stage._scopes._on_trial.values()]
            most = 1 + sum(1 + len(scope.vectors or ()) + len(scope.decided) for scope in scopes)
            if (found := sum(key.startswith(b"gate/") for key in rows)) > most:
                yield f"the gate has {found} rows; at most {most} are allowed"


def _of_lane(lane: Any) -> Iterator[str]:
    waiting = sum(len(queue) for inbox in lane._inboxes.values() for queue in inbox.waiting.values())
    if waiting or lane.pending:
        yield f"{waiting} records wait, {lane.pending} are not committed"
    for stage in lane.stages.values():
        if isinstance(stage, AssembleStage) and stage.open_sessions:
            yield f"{stage.open_sessions} sessions are open"
        if isinstance(stage, CollectStage) and stage.open_traces:
            yield f"{stage.open_traces} traces are open"
        if isinstance(stage, ScoreStage) and (len(stage._offsets) or stage._bytes):
            yield f"{len(stage._offsets)} sessions of {stage._bytes} bytes are in flight"

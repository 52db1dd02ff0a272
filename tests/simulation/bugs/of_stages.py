"""Bugs of the stages, of the scoring supervisor and of the consumer."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from tests.simulation.bugs.registry import bug, put
from tests.simulation.scorer import SimulatedScoringProcess
from tests.simulation.world import World

from traceweir.schemas.session import ClosingReason
from traceweir.streams.base import service_tasks
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.assemble.closed_sessions import ClosedSessions
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.pipeline.assemble.session_rows import Guard
from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.pipeline.gate.novelty_scopes import NoveltyScope, NoveltyScopes
from traceweir.streams.pipeline.gate.stage import GateStage
from traceweir.streams.pipeline.score.candidate_changes import CandidateChanges
from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker
from traceweir.streams.pipeline.score.revision_queue import RevisionQueue
from traceweir.streams.pipeline.score.stage import ScoreStage
from traceweir.streams.scoring.isolation.open_requests import OpenRequests
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.worker.app import WorkerApp
from traceweir.streams.worker.kafka import faust_adapter
from traceweir.streams.worker.runtime.lane import Lane

# The stage assemble


@bug
def dedupe_is_forgotten_at_reload(world: World) -> None:
    """The identities of an open session's records are not restored."""
    restore = OpenSession.restore

    def forget(self: Any, *args: Any) -> None:
        restore(self, *args)
        self.identities.clear()

    put(OpenSession, "restore", forget)
    put(OpenSession, "knows", lambda self, identity: self.identities.find(identity) >= 0)


@bug
def closing_reason_is_lost_at_reload(world: World) -> None:
    """An open session does not know after a restart that it has ended. Its deadline is restored."""
    restore = OpenSession.restore

    def lose(self: Any, *args: Any) -> None:
        restore(self, *args)
        self.closes_because = ClosingReason.IDLE

    put(OpenSession, "restore", lose)


@bug
def guards_are_forgotten_at_reload(world: World) -> None:
    """Closed sessions are not remembered after a restart."""
    load = ClosedSessions.load
    put(ClosedSessions, "load", lambda self, guards, contents, rows, **how: load(self, [], [], rows, **how))


@bug
def guard_knows_nothing(world: World) -> None:
    """A repeated record of a closed session counts as new."""
    put(Guard, "knows", lambda self, identity: False)


@bug
def counters_are_not_restored(world: World) -> None:
    """The counters of a stage are not restored."""
    put(Counters, "load", lambda self, rows: None)


@bug
def strays_are_forwarded_twice(world: World) -> None:
    """A record for another partition is written twice."""
    forward = AssembleStage._forward

    def twice(self: Any, *args: Any) -> None:
        forward(self, *args)
        self._outputs.append(self._outputs[-1])

    put(AssembleStage, "_forward", twice)


@bug
def closed_session_is_published_again(world: World) -> None:
    """A session that was closed before a restart is published once more."""
    load = AssembleStage.load

    def again(self: Any, rows: Any) -> None:
        load(self, {key: row for key, row in rows.items() if not key.startswith(b"g")})

    put(AssembleStage, "load", again)


# The stages score and gate


@bug
def finished_sessions_are_scored_again(world: World) -> None:
    """The sessions that were done above the committed offset are not restored."""
    put(OffsetTracker, "load", lambda self, row: None)


@bug
def revisions_are_scored_at_the_same_time(world: World) -> None:
    """A revision does not wait for the one before it."""
    put(RevisionQueue, "admit", lambda self, record: (True, None))
    put(RevisionQueue, "release", lambda self, record: None)


@bug
def sent_candidates_are_forgotten(world: World) -> None:
    """After a restart each trace of a revision is a candidate again."""
    put(CandidateChanges, "load", lambda self, rows: None)


@bug
def novelty_is_not_restored(world: World) -> None:
    """The gate begins without its scopes after a restart."""
    put(NoveltyScopes, "load", lambda self, rows: None)


@bug
def decided_traces_are_forgotten(world: World) -> None:
    """After a restart the gate does not know which traces it has decided.

    A candidate that is older than a decision would show it too, but no seed has one: it needs a replay of a session that a
    later revision has overtaken.
    """
    put(NoveltyScope, "restore_decision", lambda self, row: None)


@bug
def gate_takes_a_part(world: World) -> None:
    """The gate takes one of many candidates, and the offset of all."""
    apply = GateStage.apply

    def careless(self: Any, topic: str, records: Any) -> None:
        apply(self, topic, records[:1] if len(records) > 3 else records)

    put(GateStage, "apply", careless)


@bug
def sessions_of_a_dead_scorer_are_lost(world: World) -> None:
    """The sessions that were in flight when a scoring process died are never answered."""

    async def scored(self: Any, raw: bytes, known: Any, attempt: int, configs: Any) -> Any:
        await self._ready.wait()
        try:
            return await self._process.ask(raw, known, attempt, configs)
        except Exception as error:  # the bug
            if isinstance(error, SessionRejected):
                raise
            await asyncio.Event().wait()

    put(ScoringSupervisor, "_scored", scored)


@bug
def nobody_notices_that_the_scoring_process_is_not_watched(world: World) -> None:
    """The watch over the scoring process is cancelled at its first look, which is neither reported nor a late duty."""
    put(service_tasks, "TaskCancelledError", lambda text: asyncio.CancelledError())
    put(WorkerApp, "duties", lambda self: self.checkpoints.duties())

    def cancelled(self: Any, limits: Any) -> None:
        raise asyncio.CancelledError

    put(SimulatedScoringProcess, "kill_if_stuck", cancelled)


# Memory


@bug
def bytes_in_flight_are_not_given_back(world: World) -> None:
    """The stage score counts the bytes of sessions that are done."""
    finish = ScoreStage._finish

    def leak(self: Any, record: Any) -> None:
        finish(self, record)
        self._bytes += len(record.value or b"")

    put(ScoreStage, "_finish", leak)


@bug
def each_assignment_leaves_tasks_behind(world: World) -> None:
    """Each lane starts tasks that never end."""
    init = Lane.__init__

    def leak(self: Lane, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        left.extend(asyncio.get_running_loop().create_task(asyncio.Event().wait()) for _ in range(20))

    left: list[Any] = []
    put(Lane, "__init__", leak)


@bug
def cancelled_work_is_forgotten(world: World) -> None:
    """A task of the pool that is cancelled leaves its session unfinished, and says nothing."""
    ended = WorkPool._ended

    def silent(self: Any, task: Any) -> None:
        if task.cancelled():
            self._tasks.discard(task)
        else:
            ended(self, task)

    put(WorkPool, "_ended", silent)


@bug
def second_answer_ends_the_scoring_process(world: World) -> None:
    """A scoring process that answers a request twice is given up, and all its sessions in flight count a death."""
    take = OpenRequests.take

    def strict(self: Any, answer: Any) -> Any:
        if answer.number not in self._waiting:
            raise KeyError(answer.number)
        return take(self, answer)

    put(OpenRequests, "take", strict)


@bug
def changed_scopes_leave_rows_behind(world: World) -> None:
    """Each change of a row of the gate's scopes leaves one more row in the table."""
    rows, numbers = NoveltyScopes.rows, count()

    def more(self: Any, *args: Any) -> Any:
        found = rows(self, *args)
        return found + [(b"leak%d" % next(numbers), value) for _, value in found if value is not None]

    put(NoveltyScopes, "rows", more)


# The consumer


@bug
def inputs_are_read_uncommitted(world: World) -> None:
    """Stages read the records of transactions that were aborted."""
    create = faust_adapter._Thread._create_worker_consumer

    def lenient(self: Any, transport: Any) -> Any:
        consumer = create(self, transport)
        consumer._isolation_level = "read_uncommitted"
        return consumer

    put(faust_adapter._Thread, "_create_worker_consumer", lenient)

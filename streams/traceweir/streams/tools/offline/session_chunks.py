"""Scores a few sessions at a time with the real stage, and returns what the stage sends, session by session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.resources import ScoringResources
from traceweir.streams.pipeline.topology import Resources, Topology
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import Scoring, ScoringResult
from traceweir.streams.tools.offline.in_process_stages import TOPICS, StageRecord, new_stage, one_partition


class ChunkSession(NamedTuple):
    """A session that is to be scored."""

    id: bytes
    value: bytes
    """The session as on the topic `sessions`."""


class Unscored(NamedTuple):
    """Why a session could not be scored."""

    reason: str
    """The reason of the dead letter that the worker would write."""
    detail: str


@dataclass(slots=True)
class SessionOutputs:
    """What the score stage sends for a session."""

    scores: list[bytes] = field(default_factory=list)
    """The scores of the criteria, as on the topic `results`."""
    candidates: list[bytes] = field(default_factory=list)
    """The traces for the gate, as on the topic `candidates`."""
    unscored: Unscored | None = None
    """Why the session has neither scores nor candidates; None if it was scored."""


class ChunkScoring:
    """Runs the score stage on chunks of sessions; several chunks can be scored at the same time.

    Each chunk has a stage of its own, because what a stage remembers of sessions would grow with the input. A chunk
    contains all segments of its sessions, so the stage remembers nothing that another chunk needs.

    Args:
        settings: The limits of scoring; the settings of Kafka are ignored.
        plan: The criteria.
        scoring: Scores a session.
        clock: Returns the time of the scores.
        processes: Number of processes that score. For each of them, as many sessions as the settings say are in flight
            here; `ScoringProcesses` divides how many are scored at the same time among them.
    """

    def __init__(
        self, settings: Settings, plan: Plan, scoring: Scoring, clock: Callable[[], datetime], processes: int = 1
    ) -> None:
        self._scoring = scoring
        self._scored = b""
        self._waiting: set[asyncio.Future[None]] = set()
        pool = WorkPool(processes * settings.score_concurrency, self.fail)
        # No earlier state is restored and the clock does not advance, so there is no earlier spending and no rescoring.
        resources = ScoringResources(self._score, pool, record_spend=lambda paid: None, read_record=_nothing)
        self._topology = Topology.of(one_partition(settings), plan, Resources(clock, resources))

    async def __call__(self, sessions: Sequence[ChunkSession]) -> list[SessionOutputs]:
        """Returns the outputs of each session.

        Raises:
            BaseException: an error that would end a worker.
        """
        found = [SessionOutputs() for _ in sessions]
        places = {id(session.value): place for place, session in enumerate(sessions)}
        left = len(sessions)
        done = asyncio.get_running_loop().create_future()

        def changed() -> None:
            nonlocal left
            [stage] = stages
            for output in stage.cut().outputs:
                value = output.value or b""
                if output.topic == TOPICS.dead_letters:
                    letter = DeadLetter.read(output.key, output.value, output.headers)
                    found[letter.offset].unscored = Unscored(letter.reason, letter.detail)
                else:
                    # The stage calls `changed` before any other session can end.
                    outputs = found[places[id(self._scored)]]
                    (outputs.scores if output.topic == TOPICS.results else outputs.candidates).append(value)
            left -= 1
            if not left and not done.done():
                done.set_result(None)

        stages = [new_stage(self._topology, "score", changed=changed)]
        self._waiting.add(done)
        try:
            records = [StageRecord(place, session.id, session.value) for place, session in enumerate(sessions)]
            stages[0].apply(TOPICS.sessions, records)
            await done
        finally:
            self._waiting.discard(done)
            # The stage refers to `changed` and `changed` to the stage, and such a cycle lives until the garbage collection.
            stages.clear()
        return found

    async def _score(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        try:
            return await self._scoring(raw, known, attempt)
        finally:
            self._scored = raw

    def fail(self, error: BaseException) -> None:
        """Ends all scoring of chunks with an error that no session has caused."""
        for done in self._waiting:
            if not done.done():
                done.set_exception(error)


async def _nothing(topic: str, partition: int, offset: int) -> None:
    return None

"""Sessions that are not selected are done at once, are counted once, and delay and publish nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.base.topics import Topics
from traceweir.streams.pipeline.score.resources import ScoringResources
from traceweir.streams.pipeline.topology import Resources, Topology
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.tools.testing.memory import Message

TOPICS = Topics.of()


def record(offset: int) -> Message:
    return Message(TOPICS.sessions, 0, offset, 1_000, b"s%d" % offset, b"{}", ())


def stage_with(answers: asyncio.Future[ScoringResult], pool: WorkPool) -> Any:
    async def score(raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        return await answers

    async def read(topic: str, partition: int, offset: int) -> None:
        return None

    scoring = ScoringResources(score, pool, lambda paid: None, read, selects=lambda record: record.offset == 1)
    topology = Topology.of(Settings(partitions=1), read_plan({}), Resources(utc_now, scoring))
    return topology.spec("score").new(0, lambda key: None, lambda: None)


async def test_a_session_that_is_left_out_is_counted_once_though_it_is_read_again() -> None:
    never: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
    stage = stage_with(never, WorkPool(8))
    stage.apply(TOPICS.sessions, [record(0), record(1), record(2)])
    cut = stage.cut()
    assert (cut.outputs, cut.offsets) == ([], {TOPICS.sessions: 1})  # session 1 is being scored
    rows = {key: value for key, value in cut.rows if value is not None}

    pool = WorkPool(8)
    again = stage_with(never, pool)
    again.load(rows)
    again.apply(TOPICS.sessions, [record(1), record(2)])
    assert (again.counters["left_out"], again.counters["consumed"]) == (2, 2)

    result = ScoringResult(0, 0, 0, 1_000, [b"{}"], [], {"PASSED": 1})
    never.set_result(result)
    await pool.idle()
    cut = again.cut()
    assert ([output.key for output in cut.outputs], cut.offsets) == ([b"s1"], {TOPICS.sessions: 3})

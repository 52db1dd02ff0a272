"""Sessions that are not selected are done at once, are counted once, and delay and publish nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from traceweir.schemas.judge_config import VerdictCache
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.score.judge_rows import JudgeRows
from traceweir.streams.score.stage import ScoreStage
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.testing.memory import Message
from traceweir.streams.topics import Topics

TOPICS = Topics.of()


def record(offset: int) -> Message:
    return Message(TOPICS.sessions, 0, offset, 1_000, b"s%d" % offset, b"{}", ())


def stage_with(answers: asyncio.Future[ScoringResult], pool: WorkPool) -> ScoreStage:
    async def score(raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        return await answers

    return ScoreStage(
        0,
        1,
        TOPICS,
        score,
        pool,
        lambda: None,
        window=100,
        revised_within_ms=0,
        judge_rows=JudgeRows(VerdictCache()),
        retry_policy=None,
        selects=lambda record: record.offset == 1,
    )


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

"""The work of challengers on a partition that moves away."""

from __future__ import annotations

from typing import Any

from tests.support.flow import TOPICS

from traceweir.schemas.judge_config import VerdictCache
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.challenger_rows import ChallengerRows, HeldBytes
from traceweir.streams.pipeline.score.challenger_work import ChallengerWork
from traceweir.streams.pipeline.score.challengers import Challengers, ChallengerScoring
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.testing import Message


async def test_what_a_partition_has_cost_is_subtracted_once_however_often_it_is_dropped() -> None:
    spent: list[tuple[str, Paid]] = []

    async def nothing(*arguments: Any) -> Any:
        raise AssertionError("no session waits")

    record, result = (
        Message("sessions", 0, 0, 0, b"s", bytes(10)),
        ScoringResult(0, 0, 0, 0, [], [], {}, challenger="v2"),
    )
    how = ChallengerScoring(
        nothing, lambda challenger: True, lambda name: True, lambda *each: spent.append(each), nothing, WorkPool(1)
    )
    challengers = Challengers(None, None, how)
    challengers.held_bytes = HeldBytes(10)
    work = ChallengerWork(
        0, TOPICS, challengers, JudgeRows(VerdictCache()), Counters(), lambda: None, lambda: False, RecordLimits()
    )
    before = ChallengerRows(HeldBytes())
    before.pay("v2", [Paid(1, 10, 0.5)])
    work.load({key: row for key, row in before.rows() if row is not None})
    work.note(record, result)
    assert not challengers.held_bytes.take(1)
    work.drop()
    work.drop()
    assert challengers.held_bytes.take(10)  # the records are no longer in memory
    assert spent == [("v2", Paid(1, 10, 0.5)), ("v2", Paid(1, -10, -0.5))]

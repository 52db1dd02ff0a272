"""A scoring that is in flight is taken only if the session then has one answer to each question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from traceweir.streams.scoring.isolation.in_flight import ScoringInFlight
from traceweir.streams.scoring.judges.verdicts import JudgeUsage, JudgeVerdict
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult

SAFE, UNSAFE = JudgeVerdict(b"question", 1, "safe"), JudgeVerdict(b"question", 2, "unsafe")
OTHER = JudgeVerdict(b"another", 3, "safe")


def ended(learned: Sequence[JudgeVerdict], *, rejected: bool) -> asyncio.Future[ScoringResult]:
    found: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
    if rejected:
        found.set_exception(SessionRejected("too_large", "it is too large", JudgeUsage(learned)))
        found.exception()
    else:
        found.set_result(ScoringResult(0, 0, 0, 0, [], [], {}, JudgeUsage(learned)))
    return found


@pytest.mark.parametrize("rejected", [False, True])
@pytest.mark.parametrize(
    ("former", "learned", "known", "agrees"),
    [
        pytest.param([], [], [], True, id="no question"),
        pytest.param([], [SAFE], [], True, id="a new answer"),
        pytest.param([SAFE], [], [SAFE], True, id="the same known answer"),
        pytest.param([SAFE], [], [SAFE, OTHER], True, id="an answer to another question came meanwhile"),
        pytest.param([], [SAFE], [UNSAFE], False, id="another answer came meanwhile"),
        pytest.param([SAFE], [], [UNSAFE], False, id="the known answer was never committed, and another one was"),
        pytest.param([SAFE], [], [], False, id="the known answer was never committed, so that nobody would store it"),
    ],
)
async def test_a_scoring_is_taken_only_with_the_same_answers(
    former: list[JudgeVerdict], learned: list[JudgeVerdict], known: list[JudgeVerdict], *, agrees: bool, rejected: bool
) -> None:
    assert ScoringInFlight(ended(learned, rejected=rejected), former).agrees(known) is agrees

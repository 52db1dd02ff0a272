"""Tests that each request of a scoring process gets its first answer, and that nothing comes of a second one."""

from __future__ import annotations

import logging

import pytest

from traceweir.streams.scoring.isolation.open_requests import OpenRequests
from traceweir.streams.scoring.isolation.protocol import Answer, ScoringRefusal
from traceweir.streams.scoring.judges.verdicts import JudgeUsage
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult

JUDGED = JudgeUsage()


def result(attempt: int = 0) -> ScoringResult:
    return ScoringResult(0, 0, attempt, 0, [], [], {}, JUDGED)


async def test_a_request_gets_the_answer_of_its_number() -> None:
    requests = OpenRequests()
    (one, first), (two, second) = requests.begin(), requests.begin()
    assert requests.take(Answer(two, result(2))) is JUDGED
    assert not first.done()
    requests.take(Answer(one, result(1)))
    assert ((await first).attempt, (await second).attempt) == (1, 2)
    assert (len(requests), requests.asked) == (0, 2)


async def test_a_refusal_reaches_the_task_that_waits() -> None:
    requests = OpenRequests()
    number, answer = requests.begin()
    assert requests.take(ScoringRefusal(number, "unreadable_session", "no id", JUDGED)) is JUDGED
    with pytest.raises(SessionRejected, match="no id"):
        await answer


async def test_a_second_answer_changes_nothing_and_is_not_paid(caplog: pytest.LogCaptureFixture) -> None:
    requests = OpenRequests()
    (number, answer), (_, other) = requests.begin(), requests.begin()
    requests.take(Answer(number, result(1)))
    with caplog.at_level(logging.WARNING):
        assert requests.take(Answer(number, result(2))) is None
        assert requests.take(ScoringRefusal(number, "unreadable_session", "no id", JUDGED)) is None
        assert requests.take(Answer(99, result())) is None
    assert (await answer).attempt == 1
    assert not other.done()
    assert len(requests) == 1
    assert [record.message.split(",")[0] for record in caplog.records] == [
        "the scoring process answered request 1 of 2",
        "the scoring process answered request 1 of 2",
        "the scoring process answered request 99 of 2",
    ]


async def test_an_answer_that_no_task_waits_for_any_more_is_paid() -> None:
    requests = OpenRequests()
    number, answer = requests.begin()
    answer.cancel()
    assert requests.take(Answer(number, result())) is JUDGED


async def test_the_end_returns_all_open_requests_in_their_order() -> None:
    requests = OpenRequests()
    (_, first), (number, second), (_, third) = (requests.begin() for _ in range(3))
    requests.take(Answer(number, result()))
    assert requests.end() == [first, third]
    assert second.done()
    assert len(requests) == 0

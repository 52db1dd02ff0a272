"""What a broker said counts as unknown once no broker has answered for some time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.silence import (
    ASK_EVERY_S,
    UNKNOWN_AFTER_S,
    LastAnswer,
    asking_bootstrap_servers,
    until_lost,
)

MODULE = "traceweir.streams.worker.kafka.silence"
LIMIT_S = 30.0

SILENT = "no Kafka broker has answered for more than 15 s: check that the brokers run"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_age_is_that_of_the_last_answer_and_unknown_before_the_first(clock: Clock) -> None:
    last = LastAnswer(clock)
    assert last.age_s is None
    last.note(answered=True)
    clock.s += 3
    last.note(answered=False)
    assert last.age_s == 3


def test_silence_is_a_problem_once_it_is_long_and_until_the_next_answer(clock: Clock) -> None:
    last = LastAnswer(clock)
    last.note(answered=True)
    clock.s += UNKNOWN_AFTER_S - 1
    assert last.problem is None
    clock.s += 1
    assert last.problem == SILENT
    last.note(answered=True)
    assert last.problem is None


def test_brokers_that_have_never_answered_are_a_problem_too(clock: Clock) -> None:
    last = LastAnswer(clock)
    assert last.problem is None
    clock.s += UNKNOWN_AFTER_S
    assert last.problem == SILENT


def test_unanswered_questions_are_added_up_until_the_next_answer(clock: Clock) -> None:
    last = LastAnswer(clock)
    for _ in range(3):
        last.note(answered=False)
    assert last.unanswered_s == 3 * ASK_EVERY_S
    last.note(answered=True)
    assert last.unanswered_s == 0


class SilentConsumer:
    """A consumer that knows no node any more; a question takes `asking_s` of the clock."""

    def __init__(self, clock: Clock, asking_s: float) -> None:
        self._clock, self._asking_s = clock, asking_s
        self.client = self.cluster = self

    def brokers(self) -> list[object]:
        self._clock.s += self._asking_s
        return []


async def test_before_a_client_has_started_the_bootstrap_servers_are_asked(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question is not an answer."""
    last, answered, refused = LastAnswer(clock), asyncio.Event(), asyncio.Event()
    runs = False
    loop = asyncio.get_running_loop()

    def reach(settings: Settings, timeout_s: float) -> None:
        if not runs:
            loop.call_soon_threadsafe(refused.set)
            raise KafkaUnreachableError("no broker answers")
        if last.age_s is not None:
            loop.call_soon_threadsafe(answered.set)

    monkeypatch.setattr(f"{MODULE}.ASK_EVERY_S", 0.0)
    monkeypatch.setattr(f"{MODULE}.reach", reach)
    clock.s += UNKNOWN_AFTER_S
    async with asking_bootstrap_servers(Settings(), last):
        await asyncio.wait_for(refused.wait(), LIMIT_S)
        assert (last.age_s, last.problem) == (None, SILENT)
        runs = True
        await asyncio.wait_for(answered.wait(), LIMIT_S)
        assert (last.age_s, last.problem) == (0, None)


async def test_who_waits_for_records_says_once_that_no_broker_answers(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = SilentConsumer(clock, asking_s=UNKNOWN_AFTER_S)
    with caplog.at_level(logging.INFO):
        lost = await until_lost(consumer, lost_after_s=0.001, last=LastAnswer(clock))
    assert "the client starts again" in lost
    assert [record.getMessage() for record in caplog.records] == [f"{SILENT}; waiting"]

"""Watchdogs: what stands still is late, what moves or has nothing to do never is, and a pause of the process counts for nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

from traceweir.streams.runtime.failure import in_words
from traceweir.streams.runtime.watchdog import (
    ASK_EVERY_S,
    LOOK_EVERY_S,
    LOST_AFTER_S,
    Duty,
    StuckError,
    Watch,
    Watchdogs,
)

LIMIT_S = 10.0
LOOKS = int(LIMIT_S / LOOK_EVERY_S)
"""After the first one, so many may find nothing new."""


def late_after(dogs: Watchdogs, duty: Duty, looks: int) -> list[list[str]]:
    return [dogs.look([duty]) for _ in range(looks)]


def test_what_is_due_and_stands_still_is_late_after_the_limit_and_not_before() -> None:
    *before, at_last = late_after(Watchdogs(LIMIT_S), Duty("fetching", True, 1), LOOKS + 2)
    assert before == [[]] * (LOOKS + 1)
    assert at_last == ["fetching has made no progress for more than 10 s"]


def test_what_moves_is_never_late_however_long_it_takes() -> None:
    dogs = Watchdogs(LIMIT_S)
    for step in range(20):
        assert late_after(dogs, Duty("catching up", True, step), LOOKS) == [[]] * LOOKS


def test_what_has_nothing_to_do_is_never_late_and_begins_anew_when_it_has() -> None:
    dogs = Watchdogs(LIMIT_S)
    assert late_after(dogs, Duty("a checkpoint", False, 1), 5 * LOOKS) == [[]] * 5 * LOOKS
    assert late_after(dogs, Duty("a checkpoint", True, 1), LOOKS) == [[]] * LOOKS
    assert dogs.look([Duty("a checkpoint", False, 1)]) == []
    assert late_after(dogs, Duty("a checkpoint", True, 1), LOOKS) == [[]] * LOOKS


def test_what_is_gone_for_a_moment_begins_anew() -> None:
    dogs, duty = Watchdogs(LIMIT_S), Duty("fetching", True, 1)
    late_after(dogs, duty, LOOKS)
    dogs.look([])
    assert late_after(dogs, duty, LOOKS) == [[]] * LOOKS


def test_one_that_moves_does_not_cover_one_that_stands_still() -> None:
    dogs = Watchdogs(LIMIT_S)
    for step in range(LOOKS + 2):
        late = dogs.look([Duty("partition 0", True, step), Duty("partition 1", True, None)])
    assert late == ["partition 1 has made no progress for more than 10 s"]


# --- the watch


class Ended:
    """What the watch was told to end the worker with."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    async def __call__(self, error: BaseException) -> None:
        self.errors.append(error)


def make_watch(duties: Iterable[Duty], ended: Ended) -> Watch:
    async def ask() -> bool:
        return True

    return Watch(lambda: duties, ended, ask, "kafka:9092", LIMIT_S)


async def test_what_is_late_ends_the_worker_in_words() -> None:
    ended = Ended()
    watch = make_watch([Duty("partition 3: fetching traces", True, 1)], ended)
    for _ in range(LOOKS + 2):
        await watch.look()
    (error,) = ended.errors
    assert isinstance(error, StuckError)
    assert in_words(error) == "partition 3: fetching traces has made no progress for more than 10 s"
    assert watch.problems == [str(error)]


async def test_while_no_broker_answers_nothing_else_is_counted() -> None:
    ended = Ended()
    watch = make_watch([Duty("partition 3: the next checkpoint", True, 1)], ended)
    for _ in range(LOOKS):
        await watch.look()
    assert not watch.note_answer(answered=False)
    for _ in range(5 * LOOKS):
        await watch.look()
    assert ended.errors == []


async def test_a_question_that_is_not_answered_now_and_then_hides_nothing_that_stands_still() -> None:
    ended = Ended()
    watch = make_watch([Duty("partition 3: the next checkpoint", True, 1)], ended)
    for _ in range(LOOKS + 2):
        assert not watch.note_answer(answered=False)
        await watch.look()
        assert not watch.note_answer(answered=True)
        await watch.look()
    assert len(ended.errors) >= 1


async def test_kafka_is_lost_after_a_minute_without_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    watch = make_watch([], Ended())
    tries = int(LOST_AFTER_S / ASK_EVERY_S)
    assert not any(watch.note_answer(answered=False) for _ in range(tries))
    assert not watch.note_answer(answered=True)
    assert not any(watch.note_answer(answered=False) for _ in range(tries))
    with caplog.at_level(logging.ERROR):
        assert watch.note_answer(answered=False)
    assert "no Kafka broker has answered at kafka:9092 for 60 s" in caplog.text

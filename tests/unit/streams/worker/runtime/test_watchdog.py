"""Tests watchdogs: a duty without progress is late after the limit; a duty with progress or without work never is."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

from traceweir.streams.worker.kafka.silence import ASK_EVERY_S, LOST_AFTER_S, UNKNOWN_AFTER_S, LastAnswer
from traceweir.streams.worker.runtime.failure import in_words
from traceweir.streams.worker.runtime.watchdog import LOOK_EVERY_S, Duty, StuckError, Watch, Watchdogs

LIMIT_S = 10.0
LOOKS = int(LIMIT_S / LOOK_EVERY_S)
"""Number of looks after the first look that can find no progress before a duty is late."""


def late_after(dogs: Watchdogs, duty: Duty, looks: int) -> list[list[str]]:
    return [dogs.look([duty]) for _ in range(looks)]


def test_a_due_duty_without_progress_is_late_after_the_limit_and_not_before() -> None:
    *before, at_last = late_after(Watchdogs(LIMIT_S), Duty("fetching", True, 1), LOOKS + 2)
    assert before == [[]] * (LOOKS + 1)
    assert at_last == ["fetching has made no progress for more than 10 s"]


def test_a_duty_that_has_waited_for_half_of_the_limit_is_logged_once_with_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late_after(Watchdogs(LIMIT_S), Duty("catching up", True, 1), LOOKS)
    assert [record.getMessage() for record in caplog.records] == [
        "catching up has made no progress for 5 s; the worker ends after 10 s (TRACEWEIR_STUCK_AFTER_S)"
    ]


def test_a_duty_with_progress_is_never_late() -> None:
    dogs = Watchdogs(LIMIT_S)
    for step in range(20):
        assert late_after(dogs, Duty("catching up", True, step), LOOKS) == [[]] * LOOKS


def test_a_duty_that_is_not_due_is_never_late_and_its_limit_starts_when_it_is_due() -> None:
    dogs = Watchdogs(LIMIT_S)
    assert late_after(dogs, Duty("a checkpoint", False, 1), 5 * LOOKS) == [[]] * 5 * LOOKS
    assert late_after(dogs, Duty("a checkpoint", True, 1), LOOKS) == [[]] * LOOKS
    assert dogs.look([Duty("a checkpoint", False, 1)]) == []
    assert late_after(dogs, Duty("a checkpoint", True, 1), LOOKS) == [[]] * LOOKS


def test_the_limit_of_a_duty_that_disappears_and_returns_starts_again() -> None:
    dogs, duty = Watchdogs(LIMIT_S), Duty("fetching", True, 1)
    late_after(dogs, duty, LOOKS)
    dogs.look([])
    assert late_after(dogs, duty, LOOKS) == [[]] * LOOKS


def test_progress_of_one_duty_does_not_hide_another_duty_without_progress() -> None:
    dogs = Watchdogs(LIMIT_S)
    for step in range(LOOKS + 2):
        late = dogs.look([Duty("partition 0", True, step), Duty("partition 1", True, None)])
    assert late == ["partition 1 has made no progress for more than 10 s"]


# --- the watch


class RecordedErrors:
    """Records the errors with which the watch ends the worker."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    async def __call__(self, error: BaseException) -> None:
        self.errors.append(error)


def make_watch(duties: Iterable[Duty], ended: RecordedErrors, last: LastAnswer | None = None) -> Watch:
    async def ask() -> bool:
        return True

    return Watch(lambda: duties, ended, ask, "kafka:9092", LIMIT_S, last=last)


async def test_a_late_duty_ends_the_worker_with_a_readable_error() -> None:
    ended = RecordedErrors()
    watch = make_watch([Duty("partition 3: fetching traces", True, 1)], ended)
    for _ in range(LOOKS + 2):
        await watch.look()
    (error,) = ended.errors
    assert isinstance(error, StuckError)
    assert in_words(error) == "partition 3: fetching traces has made no progress for more than 10 s"
    assert watch.problems == [str(error)]


async def test_no_duty_is_late_while_no_broker_answers() -> None:
    ended = RecordedErrors()
    watch = make_watch([Duty("partition 3: the next checkpoint", True, 1)], ended)
    for _ in range(LOOKS):
        await watch.look()
    assert not watch.note_answer(answered=False)
    for _ in range(5 * LOOKS):
        await watch.look()
    assert ended.errors == []


async def test_single_unanswered_requests_do_not_hide_a_duty_without_progress() -> None:
    ended = RecordedErrors()
    watch = make_watch([Duty("partition 3: the next checkpoint", True, 1)], ended)
    for _ in range(LOOKS + 2):
        assert not watch.note_answer(answered=False)
        await watch.look()
        assert not watch.note_answer(answered=True)
        await watch.look()
    assert len(ended.errors) >= 1


async def test_kafka_counts_as_lost_after_60_s_without_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    watch = make_watch([], RecordedErrors())
    tries = int(LOST_AFTER_S / ASK_EVERY_S)
    assert not any(watch.note_answer(answered=False) for _ in range(tries))
    assert not watch.note_answer(answered=True)
    assert not any(watch.note_answer(answered=False) for _ in range(tries))
    with caplog.at_level(logging.ERROR):
        assert watch.note_answer(answered=False)
    assert "no Kafka broker has answered at kafka:9092 for more than 60 s" in caplog.text


async def test_the_silence_of_the_brokers_is_a_problem_long_before_it_ends_the_worker() -> None:
    seconds = [0.0]
    watch = make_watch([], RecordedErrors(), LastAnswer(lambda: seconds[0]))
    watch.note_answer(answered=True)
    assert watch.problems == []
    seconds[0] = UNKNOWN_AFTER_S
    assert not watch.note_answer(answered=False)
    await watch.look()
    assert watch.problems == ["no Kafka broker has answered for more than 15 s: check that the brokers run"]
    watch.note_answer(answered=True)
    assert watch.problems == []


async def test_a_slow_start_of_the_worker_is_no_silence_of_the_brokers() -> None:
    seconds = [0.0]
    watch = make_watch([], RecordedErrors(), LastAnswer(lambda: seconds[0]))
    seconds[0] += 2 * UNKNOWN_AFTER_S  # models are loaded before the watch starts
    await watch.start()
    try:
        assert watch.problems == []
        seconds[0] += UNKNOWN_AFTER_S
        assert len(watch.problems) == 1
    finally:
        # `async with` would also reset the service: the thread of the watch would go on, and end this process.
        await watch.stop()

"""The health of a dashboard is red where something does not work, and where nothing was learnt lately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.health import OLD_AFTER_S, HealthWatch, Workers
from traceweir.streams.board.store.errors import StoreUnavailableError
from traceweir.streams.board.store.standing import Standing
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.workers import STILL_AFTER_S
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.group_states import GroupState, GroupStates
from traceweir.streams.worker.kafka.silence import UNKNOWN_AFTER_S, LastAnswer

T = TypeVar("T")
RUNNING = Finding("workers", "ok", "traceweir.assemble-score-gate: 1 worker, 0 records behind (a 0)")


class Around:
    """What a health sees; a test changes it."""

    def __init__(self) -> None:
        self.s = 0.0
        self.state = FeedState(behind=0)
        self.workers: Sequence[Finding] | Exception = [RUNNING]
        self.standing: Standing | Exception = Standing(0, 0, 12, {})
        self.last_answer = LastAnswer(lambda: self.s)
        self.health = HealthWatch(
            lambda: self.state,
            self.last_answer,
            lambda: _given(self.workers),
            lambda: _given(self.standing),
            clock=lambda: self.s,
        )

    async def looked(self) -> dict[str, Finding]:
        self.last_answer.note(answered=True)
        await self.health.look()
        return self.parts()

    def parts(self) -> dict[str, Finding]:
        return {part.check: part for part in self.health.parts()}


def _given(what: T | Exception) -> T:
    if isinstance(what, Exception):
        raise what
    return what


@pytest.fixture
def around() -> Around:
    return Around()


def failed(parts: dict[str, Finding]) -> list[str]:
    return [check for check, part in parts.items() if part.state == "failure"]


async def test_all_is_well_where_everything_answers(around: Around) -> None:
    parts = await around.looked()
    around.s = 3
    parts = around.parts()
    assert {part.state for part in parts.values()} == {"ok"}
    assert parts["broker"].text == "answered 3 s ago"
    assert parts["workers"] == RUNNING


def test_before_the_first_look_everything_that_is_asked_is_unknown(around: Around) -> None:
    around.state = FeedState()
    assert failed(around.parts()) == ["broker", "store", "workers", "losses"]


async def test_silent_brokers_make_the_workers_unknown_although_they_were_well(around: Around) -> None:
    await around.looked()
    around.s = UNKNOWN_AFTER_S
    parts = around.parts()
    assert failed(parts) == ["broker", "workers"]
    assert parts["broker"].text.endswith("the last answer was 15 s ago")
    assert parts["workers"].text == "unknown while no broker answers"


async def test_an_answer_to_a_look_is_none_to_the_feed_whose_nodes_can_be_gone(around: Around) -> None:
    await around.looked()
    around.s = UNKNOWN_AFTER_S
    await around.health.look()
    assert "broker" in failed(around.parts())


async def test_a_look_that_is_old_says_nothing_about_now(around: Around) -> None:
    await around.looked()
    around.s = OLD_AFTER_S
    around.last_answer.note(answered=True)
    assert failed(around.parts()) == ["workers", "losses"]


async def test_an_error_of_a_look_is_said_and_the_next_look_counts(around: Around) -> None:
    around.workers = KafkaUnreachableError("Kafka at kafka:9092 did not say where\x1b the groups are")
    around.standing = StoreUnavailableError("the disk is full")
    parts = await around.looked()
    assert parts["workers"].text == "unknown: Kafka at kafka:9092 did not say where\\x1b the groups are"
    assert parts["losses"].text == "unknown: the disk is full"
    around.workers = [RUNNING]
    assert (await around.looked())["workers"] == RUNNING


async def test_losses_are_red_and_what_waits_for_a_person_is_a_warning(around: Around) -> None:
    around.standing = Standing(2, 3, 100, {"error": 4, "budget": 1})
    around.state = FeedState(behind=7, unreadable={"traceweir.results": 2})
    parts = await around.looked()
    assert parts["losses"].state == "failure"
    assert "2 gaps in inputs in the last day" in parts["losses"].text
    assert parts["dead letters"] == Finding(
        "dead letters", "warning", "3 dead letters not replayed: see `traceweir dlq list`"
    )
    assert parts["scorers and judges"] == Finding(
        "scorers and judges", "warning", "5 of 100 results of the last hour have no value (error 4, budget 1)"
    )
    assert parts["store"] == Finding(
        "store", "warning", "7 records not stored yet; 2 since the start could not be read"
    )


async def test_a_feed_with_a_problem_is_red_with_its_sentence(around: Around) -> None:
    around.state = FeedState(problem="topic 'results' does not exist", behind=0)
    assert (await around.looked())["store"] == Finding(
        "store", "failure", "nothing is stored: topic 'results' does not exist"
    )


def test_offsets_that_move_are_no_sign_of_a_missing_worker(around: Around) -> None:
    place, at = Place("traceweir.traces", 0), [0]

    def look() -> GroupStates:
        group = GroupState({place: at[0]}, None)
        return GroupStates(True, {place: 0}, {place: 9}, {"traceweir.assemble-score-gate": group})

    workers = Workers(Settings(), look, lambda: around.s)
    states = []
    for at[0] in (1, 2, 2):
        states.append(workers()[0].state)
        around.s += STILL_AFTER_S
    assert states == ["not checked", "not checked", "failure"]


def test_the_first_record_after_a_long_rest_is_no_sign_of_a_missing_worker(around: Around) -> None:
    place, end = Place("traceweir.traces", 0), [0]

    def look() -> GroupStates:
        group = GroupState({place: 9}, None)
        return GroupStates(True, {place: 0}, {place: end[0]}, {"traceweir.assemble-score-gate": group})

    workers = Workers(Settings(), look, lambda: around.s)
    states = []
    for around.s, end[0] in ((0, 9), (3_600, 9), (3_610, 10), (3_610 + STILL_AFTER_S, 11)):
        states.append(workers()[0].state)
    assert states == ["not checked", "not checked", "not checked", "failure"]

"""A stage of a shadow ends with its range, and writes to the topics of the shadow only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from tests.support.shadows import make_definition

from traceweir.streams.base.stages.base import Cut, Output, Record
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.lab.shadow.stage import ShadowStage, selection
from traceweir.streams.tools.testing.memory import Message

SESSIONS, RESULTS = "sessions", "results.shadow.v2"
BEHIND = {SESSIONS: 0.0}


class Slow:
    """A stage whose records are done when the test says so. Each record gives a score, and a dead letter."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.taken: list[int] = []
        self._done: set[int] = set()
        self._outputs: list[Output] = []

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        self.counters.load(rows)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        self.taken += [record.offset for record in records]

    def reject(self, topic: str, record: Record, why: RecordRejected) -> None:
        self.taken.append(record.offset)
        self.finish(record.offset)

    def finish(self, offset: int) -> None:
        self._done.add(offset)
        self._outputs += [Output(RESULTS, 0, None, b"{}"), Output("dead-letters", 0, None, b"{}")]

    def tick(self, now: float, behind: Mapping[str, float]) -> None: ...

    def full(self) -> bool:
        return False

    def has_outputs(self) -> bool:
        return bool(self._outputs)

    def cut(self) -> Cut:
        outputs, self._outputs = self._outputs, []
        open_offsets = [offset for offset in self.taken if offset not in self._done]
        mark = min(open_offsets) if open_offsets else self.taken[-1] + 1 if self.taken else None
        return Cut(self.counters.rows(), outputs, {} if mark is None else {SESSIONS: mark})

    def drop(self) -> None: ...


def record(offset: int, key: str = "s", app: str | None = None) -> Message:
    value = json.dumps({"events": [{"app_name": app}] if app else []}).encode()
    return Message(SESSIONS, 0, offset, 1_000, key.encode(), value, ())


def shadow_of(stage: Slow, end: int | None) -> ShadowStage:
    return ShadowStage(stage, frozenset((RESULTS,)), SESSIONS, end)


def test_records_after_the_end_stay_unread_and_the_end_is_committed_when_all_before_it_are_done() -> None:
    slow = Slow()
    stage = shadow_of(slow, end=5)
    stage.apply(SESSIONS, [record(3), record(6)])
    assert (slow.taken, stage.full()) == ([3], True)
    assert stage.cut().offsets == {SESSIONS: 3}
    slow.finish(3)
    assert stage.cut().offsets == {SESSIONS: 5}


def test_a_range_whose_last_offsets_have_no_record_ends_when_the_topic_is_read_to_its_end() -> None:
    slow = Slow()
    stage = shadow_of(slow, end=5)
    stage.apply(SESSIONS, [record(3)])
    slow.finish(3)
    stage.tick(0, BEHIND)
    assert (stage.cut().offsets, stage.full()) == ({SESSIONS: 4}, False)
    stage.tick(0, {})
    assert (stage.cut().offsets, stage.full()) == ({SESSIONS: 5}, True)


def test_a_partition_without_records_in_the_range_ends_at_once() -> None:
    stage = shadow_of(Slow(), end=5)
    stage.tick(0, {})
    assert stage.cut().offsets == {SESSIONS: 5}


def test_an_input_without_an_end_is_read_on() -> None:
    slow = Slow()
    stage = shadow_of(slow, end=None)
    stage.tick(0, {})
    stage.apply(SESSIONS, [record(3), record(6)])
    assert (slow.taken, stage.full()) == ([3, 6], False)


def test_outputs_to_other_topics_are_dropped_and_counted_with_the_checkpoint() -> None:
    slow = Slow()
    stage = shadow_of(slow, end=5)
    stage.reject(SESSIONS, record(3), RecordRejected("poison", "it raises"))
    cut = stage.cut()
    assert [output.topic for output in cut.outputs] == [RESULTS]
    again = Counters()
    again.load({key: row for key, row in cut.rows if row is not None})
    assert again == {"withheld": 1}


def test_a_sample_holds_the_same_sessions_always_and_a_larger_sample_holds_them_too() -> None:
    sessions = [record(number, f"session-{number}") for number in range(1_000)]
    small, large = ({each.key for each in sessions if selection(make_definition(sample=s))(each)} for s in (0.1, 0.3))
    assert small < large
    assert 60 < len(small) < 140
    assert small == {each.key for each in sessions if selection(make_definition(sample=0.1))(each)}


@pytest.mark.parametrize(("app", "is_scored"), [("shop", True), ("bank", False), (None, False)])
def test_a_session_belongs_to_an_app_that_one_of_its_events_names(app: str | None, is_scored: bool) -> None:
    assert selection(make_definition(app="shop"))(record(1, app=app)) is is_scored


def test_an_event_that_another_replaces_names_no_app() -> None:
    events = [{"event_id": "a", "app_name": "shop"}, {"event_id": "a~2", "replaces": ["a"], "app_name": "bank"}]
    session = Message(SESSIONS, 0, 1, 1_000, b"s", json.dumps({"events": events}).encode(), ())
    assert selection(make_definition(app="bank"))(session) is True
    assert selection(make_definition(app="shop"))(session) is False


def test_a_record_that_is_no_session_is_of_no_app() -> None:
    broken = Message(SESSIONS, 0, 1, 1_000, b"\xff", b"{", ())
    assert selection(make_definition(app="shop"))(broken) is False
    assert isinstance(selection(make_definition(sample=0.5))(broken), bool)

"""Collect: an event that late spans have changed is published again, and one that no longer exists is withdrawn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from traceweir.schemas.events import EVENT
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES
from traceweir.streams.base.stages.record_limits import SMALLEST_BATCH_BYTES
from traceweir.streams.pipeline.collect import late_events as module
from traceweir.streams.pipeline.collect.late_events import late_events


def event(name: str, /, *, session: str = "s", kind: str = "tool.called", **fields: Any) -> dict[str, Any]:
    return {"event_id": name, "session_id": session, "type": kind, **fields}


def withdrawal(name: str, *others: str, session: str = "s") -> dict[str, Any]:
    return event(name, session=session, kind="invocation.started", replaces=[*others, name])


def test_an_event_that_says_the_same_is_not_published_again() -> None:
    assert late_events([event("a", name="x")], [event("a", name="x")], {"a"}.__contains__) == []
    assert late_events([event("a", x=1, y=2)], [event("a", y=2, x=1)], {"a"}.__contains__) == []


def test_a_changed_event_replaces_its_last_version() -> None:
    found = late_events([event("a", name="x")], [event("a", name="y")], {"a", "a~2"}.__contains__)
    assert found == [event("a~3", name="y", replaces=["a~2"])]


def test_dimensions_alone_are_told_by_the_end_of_the_invocation() -> None:
    before = [event("a"), event("b", kind="invocation.completed")]
    after = [event("a", agent_name="x"), event("b", kind="invocation.completed", agent_name="x")]
    (found,) = late_events(before, after, {"a", "b"}.__contains__)
    assert found == {**after[1], "event_id": "b~2", "replaces": ["b"]}


def test_a_dimension_that_no_longer_exists_is_taken_from_each_event() -> None:
    found = late_events([event("a", labels={"x": "y"})], [event("a")], {"a"}.__contains__)
    assert found == [event("a~2", replaces=["a"])]


def test_a_dimension_that_no_longer_exists_is_taken_from_the_end_of_an_invocation() -> None:
    before, after = event("a", kind="invocation.completed", user_id="u"), event("a", kind="invocation.completed")
    assert late_events([before], [after], {"a"}.__contains__) == [{**after, "event_id": "a~2", "replaces": ["a"]}]


def test_the_model_of_a_model_call_is_no_dimension() -> None:
    before, after = (event("a", kind="model.called", model=model) for model in ("unknown", "gpt"))
    assert late_events([before], [after], {"a"}.__contains__) == [{**after, "event_id": "a~2", "replaces": ["a"]}]


def test_an_event_that_no_longer_exists_is_withdrawn_by_one_that_replaces_itself() -> None:
    found = late_events([event("a"), event("b")], [event("a")], {"a", "b", "b~2"}.__contains__)
    assert found == [withdrawal("b~2~withdrawn", "b~2")]


def test_an_event_comes_back_under_a_new_id() -> None:
    assert late_events([], [event("a")], {"a", "a~2"}.__contains__) == [event("a~3")]


def test_an_event_that_moves_to_another_session_is_withdrawn_from_the_first() -> None:
    found = late_events([event("a", session="one")], [event("a", session="two")], {"a"}.__contains__)
    assert found == [
        event("a~2", session="two"),
        withdrawal("a~withdrawn", "a", session="one"),
    ]


def test_an_event_that_was_not_published_replaces_nothing() -> None:
    assert late_events([event("a", name="x")], [event("a", name="y")], set[str]().__contains__) == [
        event("a", name="y")
    ]


def test_the_end_of_a_session_stays_as_it_was_published() -> None:
    before, after = (event("a", kind="session.ended", expects={"events": n, "traces": 1}) for n in (3, 4))
    assert late_events([before], [after], {"a"}.__contains__) == []
    assert late_events([before], [], {"a"}.__contains__) == []


def test_one_event_withdraws_a_limited_number_of_others() -> None:
    before = [event(f"{number:04}") for number in range(module.MAX_WITHDRAWN + 1)]
    found = late_events(before, [], {each["event_id"] for each in before}.__contains__)
    assert [len(each["replaces"]) for each in found] == [module.MAX_WITHDRAWN + 1, 2]


def test_what_withdraws_events_with_long_ids_fits_every_topic() -> None:
    before = [event(f"{number:04}" + "é" * 500) for number in range(200)]
    found = late_events(before, [], {each["event_id"] for each in before}.__contains__)
    assert max(len(json.dumps(each, ensure_ascii=False).encode()) for each in found) < SMALLEST_BATCH_BYTES
    assert {name for each in found for name in each["replaces"]} >= {each["event_id"] for each in before}


@pytest.mark.slow
def test_what_withdraws_large_events_has_their_envelope_alone_and_fits_a_record() -> None:
    id_of_span = f"otel:{'7' * 32}:{'7' * 16}"
    before = [
        event(
            f"{id_of_span}:returned#{number:04}~2",
            invocation_id=f"{'7' * 32}:{'7' * 16}",
            occurred_at="2026-01-31T12:00:00Z",
            name="x" * (MAX_OUTPUT_BYTES - 1_000),
            labels={"x": "y"},
        )
        for number in range(module.MAX_WITHDRAWN)
    ]

    found, *others = late_events(before, [], {each["event_id"] for each in before}.__contains__)

    assert all(len(json.dumps(each)) < MAX_OUTPUT_BYTES // 4 for each in (found, *others))
    assert EVENT.validate_json(json.dumps(found)).replaces == found["replaces"]
    assert found.keys() == {"event_id", "session_id", "invocation_id", "occurred_at", "type", "replaces"}
    assert found["invocation_id"] == before[0]["invocation_id"]
    assert found["occurred_at"] == before[0]["occurred_at"]

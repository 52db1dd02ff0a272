"""Tests the ids and the times of the records of a chat transcript."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.support.openai_chat import (
    BOOKING,
    NOON,
    assistant_message,
    convert,
    events_of,
    trace_of,
    user_message,
)
from tests.support.scoring import make_session

from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.turns import turns_of


def test_event_times_increase_by_milliseconds_from_the_base_time() -> None:
    moments = [event.occurred_at for event in events_of(convert(BOOKING))]
    assert all((later - earlier).total_seconds() in (0.001, 0.002) for earlier, later in pairwise(moments))
    assert 0 <= (moments[0] - NOON).total_seconds() < 0.01


@pytest.mark.parametrize("created_at", ["0001-01-01T00:00:00Z", "9999-12-30T23:59:59.999Z"])
def test_a_transcript_at_the_first_or_last_possible_date_is_read(created_at: str) -> None:
    records = convert(BOOKING, created_at=created_at)
    assert events_of(records)[0].occurred_at - datetime.fromisoformat(created_at) == timedelta(milliseconds=1)
    assert trace_of(records).created_at.year in (1, 9999)


@pytest.mark.parametrize(
    "created", [1772366400, 1772366400.0, 1772366400000, "2026-03-01T12:00:00Z", "2026-03-01T21:00:00+09:00"]
)
@pytest.mark.parametrize("name", ["created", "created_at"])
def test_the_creation_time_of_a_transcript_replaces_the_base_time(name: str, created: Any) -> None:
    records = convert(BOOKING, base_time=datetime(2020, 1, 1, tzinfo=UTC), **{name: created})
    assert events_of(records)[0].occurred_at == events_of(convert(BOOKING))[0].occurred_at


def test_the_records_of_a_file_do_not_depend_on_its_folder() -> None:
    assert convert(BOOKING, source="chats.json") == convert(BOOKING, source="/data/in/chats.json")


def test_ids_do_not_depend_on_the_base_time() -> None:
    earlier, later = (convert(BOOKING, base_time=time) for time in (NOON, datetime(2030, 1, 1, tzinfo=UTC)))
    assert [event.event_id for event in events_of(earlier)] == [event.event_id for event in events_of(later)]
    assert trace_of(earlier).id == trace_of(later).id


@pytest.mark.parametrize(
    "other",
    [{"index": 2}, {"source": "other.json"}, {"task_id": 1}, {"trial": 1}, {"session_id": "s"}],
    ids=lambda other: next(iter(other)),
)
def test_a_different_transcript_has_a_different_session_and_different_ids(other: dict[str, Any]) -> None:
    common: dict[str, Any] = {"task_id": 0, "trial": 0}
    changed: dict[str, Any] = common | other
    one, two = convert(BOOKING, **common), convert(BOOKING, **changed)
    assert one[0].session_id != two[0].session_id
    assert not {event.event_id for event in events_of(one)} & {event.event_id for event in events_of(two)}
    assert trace_of(one).id != trace_of(two).id


def test_no_two_events_of_a_transcript_share_an_id() -> None:
    again = [user_message("go"), assistant_message("ok"), user_message("go"), assistant_message("ok")]
    ids = [event.event_id for event in events_of(convert(again))]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", ["session_id", "id", "conversation_id"])
def test_the_id_in_a_transcript_is_its_session_id(name: str) -> None:
    for given in ("7", 7):
        own: dict[str, Any] = {name: given}
        assert convert(BOOKING, **own)[0].session_id == "7"


def test_each_invocation_has_the_usable_dimensions_of_its_transcript_and_never_labels() -> None:
    known: dict[str, Any] = {"model": "large", "agent_name": "desk", "user": "ada", "labels": {"won": "yes"}}
    records = convert(BOOKING, **known, metadata={"environment": "test", "agent_version": 7, "model": "small"})
    events = events_of(records)
    session = make_session(events=events)
    found = [turn.dimensions for turn in turns_of(session)]
    assert found == [Dimensions(model="large", agent_name="desk", user_id="ada", environment="test")] * len(found)
    assert [event.agent_name for event in events].count("desk") == len(found) > 0


def test_the_case_of_an_eval_set_is_the_only_label_of_a_transcript() -> None:
    events = events_of(convert(BOOKING, labels={"case_id": "refund", "won": "yes"}))

    found = [turn.dimensions.labels for turn in turns_of(make_session(events=events))]

    assert found == [{"case_id": "refund"}] * len(found)
    assert convert(BOOKING, labels={"case_id": 7}) == convert(BOOKING)


def test_a_transcript_with_keys_of_another_meaning_is_read_without_dimensions() -> None:
    foreign: dict[str, Any] = {"model": "x" * 400_000, "environment": {"os": "linux"}, "user": 7, "trace_context": "0"}
    assert convert(BOOKING, **foreign) == convert(BOOKING)

"""Tests the events and the trace of a chat transcript."""

from __future__ import annotations

import io
from typing import Any

import orjson
import pytest
from tests.support.openai_chat import (
    BOOKING,
    NOON,
    assistant_message,
    convert,
    events_of,
    session_of,
    steps_of,
    tool_calls,
    tool_result,
    trace_of,
    user_message,
)

from traceweir.schemas.invocation import FunctionCall, FunctionResponse
from traceweir.schemas.turns import turns_of
from traceweir.streams.intake.formats.base import InputContext
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT, transcript_events


def test_a_transcript_becomes_events_then_a_trace_then_the_end_of_the_session() -> None:
    records = convert(BOOKING)

    assert [(event.type, event.invocation_id) for event in events_of(records)] == [
        ("invocation.started", "turn-1"),
        ("response.intermediate", "turn-1"),
        ("tool.called", "turn-1"),
        ("tool.returned", "turn-1"),
        ("tool.called", "turn-1"),
        ("tool.returned", "turn-1"),
        ("invocation.completed", "turn-1"),
        ("invocation.started", "turn-2"),
        ("invocation.completed", "turn-2"),
        ("session.ended", ""),
    ]
    assert [record.kind for record in records[-2:]] == ["trace", "event"]
    assert {record.session_id for record in records} == {records[0].session_id}


def test_each_user_message_becomes_an_invocation_with_its_tools_and_its_answer() -> None:
    first, second = [turn.invocation for turn in turns_of(session_of(convert(BOOKING)))]

    assert first.user_content is not None
    assert first.user_content.text == "A table for two, please."
    assert first.tool_uses == [
        FunctionCall(id="c1", name="find_table", args={"seats": 2}),
        FunctionCall(id="c2", name="find_table", args={"seats": 2, "retry": True}),
    ]
    assert first.intermediate_data is not None
    assert getattr(first.intermediate_data, "tool_responses") == [  # noqa: B009  # one of two kinds
        FunctionResponse(id="c1", name="find_table", response={"error": "Error: the calendar is locked"}),
        FunctionResponse(id="c2", name="find_table", response='{"table": 7}'),
    ]
    assert first.final_response is not None
    assert first.final_response.text == "Table 7 is yours."
    assert second.user_content is not None
    assert second.user_content.text == "Thanks!"
    assert second.final_response is not None
    assert second.final_response.text == "See you."


def test_the_trace_contains_thoughts_tool_calls_observations_and_error_recoveries() -> None:
    assert steps_of(BOOKING) == [
        ("thought", "Let me look.", None),
        ("tool_call", None, "find_table"),
        ("observation", "Error: the calendar is locked", None),
        ("error_recovery", None, "find_table"),
        ("observation", '{"table": 7}', None),
        ("thought", "Table 7 is yours.", None),
        ("thought", "See you.", None),
    ]


def test_the_trace_has_an_id_a_task_an_outcome_and_metadata() -> None:
    records = convert(BOOKING)
    trace = trace_of(records)

    assert trace.id.startswith("kp:trace:")
    assert [step.step_id for step in trace.steps] == list(range(7))
    assert trace.steps[3].input == {"seats": 2, "retry": True}
    assert trace.task.objective == "A table for two, please."
    assert (trace.outcome.result_summary, trace.outcome.confidence) == ("See you.", 1.0)
    about = trace.metadata
    assert (about.framework, about.task_domain, about.success) == ("openai-chat", "general", True)
    assert (about.visibility, about.privacy_level, about.quality_score) == ("network", "aggregated", 0)
    assert about.session_id == records[0].session_id
    assert about.created_at.startswith("2026-03-01T12:00:00.0")


def test_the_key_traj_is_read_like_the_key_messages() -> None:
    records = transcript_events(orjson.loads(orjson.dumps({"traj": BOOKING})), 1, "f", NOON)
    assert trace_of(records).steps == trace_of(convert(BOOKING)).steps


@pytest.mark.parametrize(
    ("messages", "objective"),
    [([user_message(" "), assistant_message("Hello?")], "Hello?"), ([tool_calls(("c", "t", "{}"))], "(no objective)")],
)
def test_a_transcript_without_a_question_still_has_an_objective(messages: list[Any], objective: str) -> None:
    assert trace_of(convert(messages)).task.objective == objective


@pytest.mark.parametrize("place", ["top", "metadata"])
def test_the_transcript_can_set_success_confidence_and_task_domain(place: str) -> None:
    given = {"success": False, "confidence": 0.25, "task_domain": "dining"}
    trace = trace_of(convert(BOOKING, **(given if place == "top" else {"metadata": given})))
    assert (trace.metadata.success, trace.outcome.confidence, trace.metadata.task_domain) == (False, 0.25, "dining")


def test_rewards_and_labels_do_not_change_the_records() -> None:
    labels: dict[str, Any] = {
        "reward": 0.0,
        "info": {"reward": 0.0, "success": False},
        "label": "bad",
        "score": 0,
        "passed": False,
    }
    assert convert(BOOKING, **labels) == convert(BOOKING)


def test_the_option_task_domain_applies_to_a_transcript_without_a_domain() -> None:
    documents = read_documents(io.BytesIO(orjson.dumps({"messages": BOOKING})))
    (found,) = OPENAI_CHAT.read(documents, InputContext("f", task_domain="dining"))
    assert trace_of(found.records).metadata.task_domain == "dining"


@pytest.mark.parametrize("kind", ["document", "file", "video"])
def test_a_record_of_a_tool_with_the_kind_of_a_medium_is_kept(kind: str) -> None:
    record = {"type": kind, "id": "d1", "content": "The capital is Oslo", "format": "text"}
    for content in ([record], record):
        result = {**tool_result("1", ""), "content": content}
        found = convert([user_message("Where?"), tool_calls(("1", "find", "{}")), result])
        (returned,) = (event for event in events_of(found) if event.type == "tool.returned")
        assert isinstance(returned.response, str)
        assert orjson.loads(returned.response) == content


def failed_calls(content: Any, **marks: Any) -> bool:
    result = {**tool_result("1", ""), "content": content, **marks}
    found = convert([user_message("Where?"), tool_calls(("1", "find", "{}")), result])
    (returned,) = (event for event in events_of(found) if event.type == "tool.returned")
    return returned.error is not None


@pytest.mark.parametrize(
    "content",
    [
        '{"error": "none"}',
        '{"error": {}}',
        '{"error": []}',
        '{"error": 0}',
        '{"error": 0.02, "mean": 3}',
        '{"error": "No error"}',
        "Error rate: 3 %",
        "Error: 0",
        "error: none",
        "Error logs: a.txt",
        "error-free build",
        "Errors: 0 found",
    ],
)
def test_a_result_that_only_speaks_of_errors_is_no_failed_call(content: str) -> None:
    assert not failed_calls(content)


@pytest.mark.parametrize(
    ("content", "marks"),
    [
        ("Error: no such user", {}),
        ("KeyError: 'user'", {}),
        ('{"error": "no such user"}', {}),
        ('{"success": false}', {}),
        ("sold out", {"is_error": True}),
        ("sold out", {"isError": True}),
        ("sold out", {"status": "error"}),
        (None, {"error": "sold out"}),
        ("sold out", {"error": True}),
    ],
)
def test_a_result_that_says_so_or_is_marked_is_a_failed_call(content: Any, marks: Any) -> None:
    assert failed_calls(content, **marks)

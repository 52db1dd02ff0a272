"""Tests that a question, its call and the final response stay together, though the user has asked something meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.adk import adk_event, adk_session, events_of, read_as, text
from tests.support.chat_files import Document, answer, invocations, lines
from tests.support.folding import folded
from tests.support.openai_chat import NOON, assistant_message, tool_calls, tool_result, user_message

from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.tool_results import places_of_results
from traceweir.streams.intake.formats.adk_session import ADK_SESSION

PENDING = {"status": "pending", "ticket": "t-1"}


def results_of(invocation: Invocation) -> tuple[list[Any], int]:
    """Returns the result of each call, and the number of results whose call is missing."""
    results = invocation.tool_responses
    places, without_call = places_of_results(invocation.tool_uses, results)
    return [None if place is None else results[place].response for place in places], len(without_call)


@pytest.mark.parametrize("promise", ['{"status": "pending"}', "submitted, see ticket t-1"])
def test_in_a_transcript_the_final_result_joins_its_call_after_another_question(promise: str) -> None:
    messages: list[Document] = [
        user_message("Refund order 7."),
        tool_calls(("c1", "refund", '{"order": 7}')),
        tool_result("c1", promise),
        assistant_message("I asked for the approval."),
        user_message("What time is it?"),
        assistant_message("It is noon."),
        tool_result("c1", '{"status": "approved"}'),
        assistant_message("The refund is approved."),
    ]

    first, second = invocations(lines({"messages": messages}))

    assert results_of(first) == (['{"status": "approved"}'], 0)
    assert [answer(each) for each in (first, second)] == ["The refund is approved.", "It is noon."]
    assert results_of(second) == ([], 0)


@pytest.mark.parametrize("promise", [PENDING, {"ticket": "t-1"}])
def test_in_a_session_of_adk_the_final_response_joins_its_call_after_another_question(promise: Document) -> None:
    events = [
        adk_event("user", text("Refund order 7.")),
        adk_event(
            "root",
            {"functionCall": {"id": "c1", "name": "refund", "args": {}}},
            longRunningToolIds=["c1"],
        ),
        adk_event("root", {"functionResponse": {"id": "c1", "name": "refund", "response": promise}}),
        adk_event("root", text("I asked for the approval.")),
        adk_event(
            "user",
            {"functionResponse": {"id": "c1", "name": "refund", "response": {"status": "approved"}}},
            text("And what time is it?"),
            invocation_id="e-2",
        ),
        adk_event("root", text("Approved, and it is noon."), invocation_id="e-2"),
    ]

    (found,) = read_as(ADK_SESSION, adk_session(*events))
    first, second = folded(events_of(found))

    assert results_of(first) == ([{"status": "approved"}], 0)
    assert results_of(second) == ([], 0)
    assert second.user_content is not None
    assert second.user_content.text == "And what time is it?"


def test_in_events_the_final_response_joins_its_call_after_another_question() -> None:
    def event(number: int, kind: str, invocation_id: str, **more: Any) -> InvocationEvent:
        document = {"type": kind, "session_id": "s", "invocation_id": invocation_id, **more}
        return EVENT.validate_python(document | {"occurred_at": NOON.replace(second=number)})

    events = [
        event(0, "invocation.started", "i1", user_content={"parts": [{"text": "Refund order 7."}]}),
        event(1, "tool.called", "i1", name="refund", args={}, call_id="c1"),
        event(2, "tool.returned", "i1", name="refund", response=PENDING, call_id="c1"),
        event(3, "invocation.completed", "i1", final_response={"parts": [{"text": "Asked."}]}),
        event(4, "invocation.started", "i2", user_content={"parts": [{"text": "What time is it?"}]}),
        event(5, "tool.returned", "i2", name="refund", response={"status": "approved"}, call_id="c1"),
        event(6, "invocation.completed", "i2", final_response={"parts": [{"text": "Noon."}]}),
    ]

    first, second = folded(events)

    assert results_of(first) == ([{"status": "approved"}], 0)
    assert results_of(second) == ([], 0)

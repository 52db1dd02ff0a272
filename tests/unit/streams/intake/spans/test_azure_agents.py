"""The requests of a turn to Azure's agent service are read as one model call, whether its run was read as a stream or not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

THREAD = {"gen_ai.system": "az.ai.agents", "gen_ai.thread.id": "thread_7"}
DONE = {"gen_ai.thread.run.status": "completed", "gen_ai.response.model": "gpt-4o"}
USED = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 9}
CALL = {"id": "call_1", "type": "function", "function": {"name": "hours", "arguments": {"day": "Sunday"}}}
ROOT = span(1, 0, "main", {})


def request(number: int, operation: str, *events: SpanEvent, run: str = "", **more: Any) -> Span:
    told = {"gen_ai.operation.name": operation, **THREAD, **({"gen_ai.thread.run.id": run} if run else {})}
    fields = {key: more.pop(key) for key in ("end_ns", "status", "status_message") if key in more}
    return span(number, 1, operation, {**told, **more}, *events, scope="azure.ai.agents", **fields)


def told(name: str, body: dict[str, Any], at: int = 1, **attributes: Any) -> SpanEvent:
    keys = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return SpanEvent(name, at, {"gen_ai.system": "az.ai.agents", **keys, "gen_ai.event.content": json.dumps(body)})


def user(text: str) -> SpanEvent:
    return told("gen_ai.user.message", {"content": text, "role": "user"})


def listed(role: str, text: str, run: str = "", message: str = "") -> SpanEvent:
    body = {"content": {"text": {"value": text}}, "role": role}
    ids: dict[str, Any] = {"thread__run__id": run} if run else {}
    return told(f"gen_ai.{role}.message", body, message__id=message or text, **ids)


def agent() -> Span:
    names = {"gen_ai.agent.name": "desk", "gen_ai.agent.id": "asst_1"}
    return span(2, 1, "create_agent desk", {"gen_ai.operation.name": "create_agent", **names})


def streamed(*, content: bool = True) -> list[Span]:
    """Returns the spans of a turn whose run was read as a stream."""
    calls = {"tool_calls": [CALL if content else {"id": "call_1", "type": "function"}]}
    result = {"content": "closed" if content else "", "id": "call_1"}
    answer = {"content": {"text": {"value": "No, closed."}}, "role": "assistant"}
    events = [
        told("gen_ai.tool.message", result, 4),
        told("gen_ai.assistant.message", calls, 5),
        told("gen_ai.assistant.message", answer if content else {"role": "assistant"}, 6),
    ]
    ask = user("Open on Sunday?") if content else told("gen_ai.user.message", {"role": "user"})
    run = {**DONE, **USED, "gen_ai.agent.id": "asst_1"}
    return [
        ROOT,
        agent(),
        request(3, "create_thread"),
        request(4, "create_message", ask),
        request(5, "process_thread_run", *events, run="run_1", end_ns=9 * 10**9, **run),
        request(7, "submit_tool_outputs", run="run_1"),
    ]


def polled() -> list[Span]:
    """Returns the spans of a turn whose run was waited for, and whose steps and messages were listed afterwards."""
    steps = [
        told(
            "gen_ai.run_step.message_creation", {}, run_step__start__timestamp="2026-01-01T00:00:09", message__id="m2"
        ),
        told("gen_ai.run_step.tool_calls", {"tool_calls": [CALL]}, run_step__start__timestamp="2026-01-01T00:00:06"),
    ]
    steps = [each._replace(attributes={**each.attributes, "gen_ai.thread.run.id": "run_1"}) for each in steps]
    messages = [listed("assistant", "No, closed.", "run_1", "m2"), listed("user", "Open on Sunday?", message="m1")]
    return [
        ROOT,
        agent(),
        request(4, "create_message", user("Open on Sunday?")),
        request(
            5, "start_thread_run", run="run_1", **{"gen_ai.agent.id": "asst_1", "gen_ai.thread.run.status": "queued"}
        ),
        request(6, "get_thread_run", run="run_1", **{"gen_ai.thread.run.status": "requires_action"}),
        request(
            7, "submit_tool_outputs", told("gen_ai.tool.message", {"content": "closed", "id": "call_1"}), run="run_1"
        ),
        request(8, "get_thread_run", run="run_1", **DONE, **USED),
        request(10, "list_run_steps", *steps, run="run_1"),
        request(11, "list_messages", *messages),
    ]


def only(spans: list[Span], kind: str) -> dict[str, Any]:
    (found,) = [each for each in read_trace(spans).events if each["type"] == kind]
    return found


@pytest.mark.parametrize("spans", [streamed(), polled()], ids=["streamed", "polled"])
def test_the_requests_of_a_turn_are_one_invocation(spans: list[Span]) -> None:
    for each in (spans, spans[::-1]):
        events = read_trace(each).events
        assert {event["session_id"] for event in events} == {"thread_7"}
        assert only(each, "invocation.started")["user_content"]["parts"] == [{"text": "Open on Sunday?"}]
        completed = only(each, "invocation.completed")
        assert completed["final_response"]["parts"] == [{"text": "No, closed."}]
        assert (completed["agent_name"], completed["model"]) == ("desk", "gpt-4o")
        assert "missing" not in completed
        called = only(each, "tool.called")
        assert (called["name"], called["args"], called["call_id"]) == ("hours", {"day": "Sunday"}, "call_1")
        assert only(each, "tool.returned")["response"] == "closed"
        model = only(each, "model.called")
        assert (model["input_tokens"], model["output_tokens"]) == (30, 9)


def test_the_run_of_a_tool_is_that_of_the_call() -> None:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "gen_ai.tool.call.id": "call_1"}
    failed = span(6, 5, "execute_tool hours", names, status="ERROR", status_message="no clock")
    returned = only([*streamed(), failed], "tool.returned")
    assert returned["error"] == "no clock"


def test_runs_of_one_thread_are_turns_of_one_session() -> None:
    more = [
        request(12, "create_message", user("And on Monday?")),
        request(13, "start_thread_run", run="run_2"),
        request(14, "get_thread_run", run="run_2", **DONE, **USED),
        request(15, "list_messages", listed("assistant", "Yes.", "run_2"), listed("user", "And on Monday?")),
    ]
    events = read_trace([*polled(), *more]).events
    said = [each["user_content"]["parts"][0]["text"] for each in events if "user_content" in each]
    answers = [each["final_response"]["parts"][0]["text"] for each in events if "final_response" in each]
    assert (said, answers) == (["Open on Sunday?", "And on Monday?"], ["No, closed.", "Yes."])


def test_a_question_that_only_the_list_of_messages_tells_is_read() -> None:
    spans = [each for each in polled() if each.name != "create_message"]
    assert only(spans, "invocation.started")["user_content"]["parts"] == [{"text": "Open on Sunday?"}]


def test_what_is_in_other_requests_than_those_of_the_trace_is_said_to_be_missing() -> None:
    spans = [each for each in polled() if each.name not in ("create_message", "list_messages", "list_run_steps")]
    assert (
        "the request that adds it to the thread is in another trace" in only(spans, "invocation.started")["missing"][0]
    )
    sentences = " ".join(only(spans, "invocation.completed")["missing"])
    assert "no span of this trace lists the messages of the thread after the run" in sentences
    assert "no span lists the steps of the run" in sentences


def test_a_span_of_an_agent_around_the_requests_hides_no_call_of_unknown_name() -> None:
    named = replace(ROOT, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
    spans = [named if each is ROOT else each for each in polled() if each.name != "list_run_steps"]
    assert "no span lists the steps of the run" in " ".join(only(spans, "invocation.completed")["missing"])


def test_content_that_was_not_recorded_is_said_to_be_missing_with_its_setting() -> None:
    events = read_trace(streamed(content=False)).events
    assert [each["type"] for each in events if each["type"].startswith("tool.")] == []
    sentences = [sentence for each in events for sentence in each.get("missing", ())]
    assert len(sentences) == 3
    parts = {each.partition(" are not")[0].partition(" is not")[0] for each in sentences}
    assert {"the question", "the answer"} <= parts
    assert any(each.startswith("the tool calls") for each in sentences)
    assert all("AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true" in each for each in sentences)


def test_tools_that_the_service_ran_are_calls_with_their_results() -> None:
    search = {"id": "call_2", "type": "file_search", "file_search": {"ranking_options": {}, "results": [{"score": 1}]}}
    spans = streamed()
    events = [
        told("gen_ai.assistant.message", {"tool_calls": [search]}, 5),
        told("gen_ai.assistant.message", {"content": {"text": {"value": "No."}}, "role": "assistant"}, 6),
    ]
    spans[4] = request(5, "process_thread_run", *events, run="run_1", **DONE, **USED)
    assert only(spans, "tool.called")["name"] == "file_search"
    assert only(spans, "tool.returned")["response"] == [{"score": 1}]
    assert only(spans, "invocation.completed")["final_response"]["parts"] == [{"text": "No."}]


def test_a_run_that_failed_is_a_turn_that_failed() -> None:
    spans = [each for each in polled() if each.name not in ("list_messages", "list_run_steps")]
    failed = {"gen_ai.thread.run.status": "failed", "error.type": "rate_limit_exceeded"}
    spans[-1] = request(8, "get_thread_run", run="run_1", status="ERROR", status_message="try later", **failed)
    completed = only(spans, "invocation.completed")
    assert completed["error"] == "rate_limit_exceeded: try later"


def test_a_part_of_the_question_that_is_no_text_is_named() -> None:
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_file", "image_file": {"file_id": "f"}}]
    spans = streamed()
    spans[3] = request(4, "create_message", told("gen_ai.user.message", {"content": content, "role": "user"}))
    started = only(spans, "invocation.started")
    assert started["user_content"]["parts"] == [{"text": "What is this?"}]
    assert started["missing"] == ["not all of the question is text: 1 part of type 'image_file'"]

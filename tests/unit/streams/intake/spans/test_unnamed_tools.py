"""Spans of tools that no convention of a framework tells of, and calls that stand below the span of a model."""

from __future__ import annotations

from tests.support.spans import span
from tests.unit.streams.intake.spans.test_shapes import ASKED, call, chat, events_of

from traceweir.streams.intake.spans.span import Span


def by_hand(*more: Span) -> list[Span]:
    asked = {"role": "assistant", "parts": [call("hours", {"day": "Sunday"}, "c1")]}
    return [
        span(1, 0, "turn", {}),
        chat(2, [ASKED], [asked]),
        span(3, 1, "hours", {}, status="ERROR", status_message="no clock"),
        *more,
    ]


def test_a_span_with_the_name_of_an_asked_tool_is_its_run() -> None:
    [returned] = events_of(by_hand(), "tool.returned")
    assert returned["error"] == "no clock"


def test_a_span_with_the_name_of_a_tool_is_no_second_run_of_it() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "gen_ai.tool.call.result": "10 to 14"}
    for number in (1, 3):
        spans = by_hand(span(4, number, "execute_tool hours", tool))
        assert [each["response"] for each in events_of(spans, "tool.returned")] == ["10 to 14"]


def test_what_a_decorated_function_of_openlit_returned_is_the_result() -> None:
    there = {"function.args": "()", "function.kwargs": "{'day': 'Sunday'}", "gen_ai.output.messages": "10 to 14"}
    spans = by_hand()
    spans[2] = span(3, 1, "hours", there, scope="openlit")
    [returned] = events_of(spans, "tool.returned")
    assert returned["response"] == "10 to 14"


def test_the_calls_that_agentops_writes_below_the_span_of_a_model_are_those_of_the_model() -> None:
    model = {
        "gen_ai.request.model": "m",
        "gen_ai.usage.prompt_tokens": 3,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.finish_reason": "tool_calls",
    }
    asked = {
        "tool.name": "hours",
        "tool.parameters": '{"day": "Sunday"}',
        "tool.call.id": "c1",
        "tool.call.type": "function",
    }
    run = {"agentops.span.kind": "tool", "operation.name": "hours", "agentops.tool.output": '"10 to 14"'}
    spans = [
        span(1, 0, "turn.session", {"agentops.span.kind": "session"}),
        span(2, 1, "openai.chat.completion", model),
        span(3, 2, "tool_call.hours", asked, start_ns=2 * 10**9),
        span(4, 1, "hours.tool", run),
    ]
    [called] = events_of(spans, "tool.called")
    [returned] = events_of(spans, "tool.returned")
    assert (called["args"], called["call_id"], returned["response"]) == ({"day": "Sunday"}, "c1", "10 to 14")


def test_of_spans_inside_each_other_with_the_name_of_a_tool_the_inner_one_is_the_run() -> None:
    [*_, outer] = spans = by_hand()
    inner = span(4, 3, "hours", {"gen_ai.tool.call.result": "10 to 14"})
    http = span(5, 4, "GET", {})
    assert outer.name == inner.name
    assert [each["response"] for each in events_of([*spans, inner, http], "tool.returned")] == ["10 to 14"]

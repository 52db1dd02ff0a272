"""Tests which tool calls of spans are told to be parallel."""

from __future__ import annotations

import json
from typing import Any

from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

AGENT = span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
USER = {"role": "user", "parts": [{"type": "text", "content": "Open?"}]}


def asked(*names: str) -> dict[str, Any]:
    calls = [{"type": "tool_call", "id": name, "name": name, "arguments": {}} for name in names]
    return {"role": "assistant", "parts": calls}


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": name, "response": "open"}]}


def chat(number: int, read: list[dict[str, Any]], *wrote: dict[str, Any], **fields: Any) -> Span:
    told = {"gen_ai.input.messages": json.dumps([USER, *read]), "gen_ai.output.messages": json.dumps(wrote)}
    names = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return span(number, 1, "chat m", {**names, **told}, **fields)


def tool(number: int, name: str) -> Span:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": name}
    return span(number, 1, f"execute_tool {name}", names)


def answers_of(*spans: Span) -> list[tuple[str, str | None]]:
    """Returns the name of each call and the number of its answer, in the order of the answers; None if it has none."""
    events = [each for each in read_trace([AGENT, *spans]).events if each["type"] == "tool.called"]
    numbers: dict[str, str] = {}
    for each in events:
        if "model_call_id" in each:
            numbers.setdefault(each["model_call_id"], f"{len(numbers)}")
    return [(each["name"], numbers.get(each.get("model_call_id", ""))) for each in events]


def test_calls_of_one_answer_are_parallel_and_a_single_call_says_nothing() -> None:
    history = [asked("a", "b"), result("a"), result("b")]
    spans = [chat(2, [], asked("a", "b")), tool(3, "a"), tool(4, "b"), chat(5, history, asked("c")), tool(6, "c")]
    assert answers_of(*spans) == [("a", "0"), ("b", "0"), ("c", None)]


def test_calls_that_only_the_history_tells_are_parallel_if_they_stand_in_one_message() -> None:
    history = [asked("a", "b"), result("a"), result("b"), asked("c"), result("c")]
    said = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}
    assert answers_of(chat(2, [], said), chat(3, history, said)) == [("a", "0"), ("b", "0"), ("c", None)]


def test_the_items_of_one_answer_are_parallel() -> None:
    assert answers_of(chat(2, [], asked("a"), asked("b"))) == [("a", "0"), ("b", "0")]


def test_calls_of_a_span_with_results_between_them_are_not_parallel() -> None:
    assert answers_of(chat(2, [], asked("a"), result("a"), asked("b"))) == [("a", None), ("b", None)]


def test_calls_of_a_span_that_is_around_its_tools_are_not_parallel() -> None:
    around = chat(2, [], asked("a"), asked("b"), end_ns=50 * 10**9)
    assert answers_of(around, tool(3, "a"), tool(4, "b")) == [("a", None), ("b", None)]


def test_calls_of_tool_spans_alone_are_not_parallel() -> None:
    assert answers_of(tool(3, "a"), tool(4, "b")) == [("a", None), ("b", None)]

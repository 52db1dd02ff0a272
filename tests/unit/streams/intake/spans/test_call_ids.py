"""Two runs of tools with one id stay two calls, and one run stays one call, however often it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

ID = "call_0"
AGENT = span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
USER = {"role": "user", "parts": [{"type": "text", "content": "Open?"}]}
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}


def asked(*days: str) -> dict[str, Any]:
    calls = [{"type": "tool_call", "id": ID, "name": "look", "arguments": {"day": day}} for day in days]
    return {"role": "assistant", "parts": calls}


def result(day: str) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": ID, "response": f"{day}: open"}]}


def chat(number: int, read: list[dict[str, Any]], wrote: dict[str, Any], parent: int = 1) -> Span:
    told = {"gen_ai.input.messages": json.dumps([USER, *read]), "gen_ai.output.messages": json.dumps([wrote])}
    return span(number, parent, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **told})


def tool(number: int, day: str, parent: int = 1, **fields: Any) -> Span:
    told = {"gen_ai.tool.call.arguments": json.dumps({"day": day}), "gen_ai.tool.call.result": f"{day}: open"}
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": ID}
    return span(number, parent, "execute_tool look", {**names, **told}, **fields)


def seen_by_another(each: Span) -> Span:
    """Returns the span with which a second instrumentation records the same run."""
    return replace(each, span_id=f"f{each.span_id[1:]}", scope="another", start_ns=each.start_ns + 1)


def calls_of(*spans: Span) -> list[tuple[Any, Any]]:
    """Returns the arguments of each call and its results: those with its id."""
    events = read_trace([AGENT, *spans]).events
    assert len({event["event_id"] for event in events}) == len(events)
    results: dict[str, list[Any]] = {}
    for event in events:
        if event["type"] == "tool.returned":
            results.setdefault(event["call_id"], []).append(event["response"])
    return [
        (event["args"]["day"], results.pop(event["call_id"], [])) for event in events if event["type"] == "tool.called"
    ]


def found(*days: str) -> list[tuple[Any, Any]]:
    return [(day, [f"{day}: open"]) for day in days]


def turn(one: str, two: str) -> tuple[Span, Span, Span]:
    """Returns the model calls of a turn whose model gives both of its calls the same id."""
    first, second = [asked(one), result(one)], [asked(two), result(two)]
    return chat(2, [], asked(one)), chat(4, first, asked(two)), chat(6, first + second, ANSWER)


@pytest.mark.parametrize("days", [("Sunday", "Monday"), ("Sunday", "Sunday")])
def test_two_runs_with_one_id_are_two_calls(days: tuple[str, str]) -> None:
    runs = [tool(3, days[0]), tool(5, days[1])]
    assert calls_of(*turn(*days), *runs) == found(*days)
    assert calls_of(*runs) == found(*days)


def test_two_runs_with_one_id_whose_spans_have_no_content_have_that_of_the_messages() -> None:
    bare = {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
    runs = [tool(3, "Sunday"), tool(5, "Monday")]
    hidden = [replace(each, attributes={k: v for k, v in each.attributes.items() if k not in bare}) for each in runs]
    assert calls_of(*turn("Sunday", "Monday"), *hidden) == found("Sunday", "Monday")


def test_two_calls_with_one_id_that_only_messages_tell_are_two() -> None:
    assert calls_of(*turn("Sunday", "Monday")) == found("Sunday", "Monday")


def test_calls_of_one_answer_with_one_id_are_two() -> None:
    models = [chat(2, [], asked("Sunday", "Monday"))]
    assert calls_of(*models, tool(3, "Sunday"), tool(4, "Monday")) == found("Sunday", "Monday")


def test_one_run_that_spans_and_messages_tell_is_one_call() -> None:
    models = [chat(2, [], asked("Sunday")), chat(6, [asked("Sunday"), result("Sunday")], ANSWER)]
    run = tool(3, "Sunday")
    inner = replace(tool(4, "Sunday", 3), name="running tool")
    assert calls_of(*models, run) == found("Sunday")
    assert calls_of(*models, run, seen_by_another(run)) == found("Sunday")
    assert calls_of(*models, run, inner, seen_by_another(run), seen_by_another(inner)) == found("Sunday")


def test_two_runs_that_two_instrumentations_recorded_are_two_calls() -> None:
    runs = [tool(3, "Sunday"), tool(5, "Sunday")]
    others = [seen_by_another(each) for each in runs]
    assert calls_of(*turn("Sunday", "Sunday"), *runs, *others) == found("Sunday", "Sunday")
    late = [replace(each, start_ns=each.end_ns, end_ns=each.end_ns + 1) for each in others]
    assert calls_of(*turn("Sunday", "Sunday"), *runs, *late) == found("Sunday", "Sunday")


def test_an_agent_as_a_tool_can_repeat_the_id_of_the_call_around_it() -> None:
    outer = tool(3, "Sunday", end_ns=9 * 10**9)
    inner_agent = replace(AGENT, span_id=f"{4:016x}", parent_id=outer.span_id, start_ns=4 * 10**9, end_ns=8 * 10**9)
    inner = [chat(5, [], asked("Monday"), 4), tool(6, "Monday", 4)]
    assert calls_of(chat(2, [], asked("Sunday")), outer, inner_agent, *inner) == found("Sunday", "Monday")

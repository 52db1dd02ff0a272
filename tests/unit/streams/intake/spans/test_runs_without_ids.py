"""Which run of a tool is that of which call, where spans of tools have neither ids of calls nor arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

DAYS = ("Sunday", "Monday")
USER = {"role": "user", "parts": [{"type": "text", "content": "Open?"}]}
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}
CALLS = [{"type": "tool_call", "id": f"c-{day}", "name": "look", "arguments": {"day": day}} for day in DAYS]


def agent(number: int, parent: int, name: str = "desk") -> Span:
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(number, parent, f"invoke_agent {name}", told, end_ns=90 * 10**9)


def chat(number: int, read: list[dict[str, Any]], wrote: dict[str, Any], parent: int = 1) -> Span:
    told = {"gen_ai.input.messages": json.dumps([USER, *read]), "gen_ai.output.messages": json.dumps([wrote])}
    return span(number, parent, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **told})


def asked(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "parts": list(calls)}


def run(number: int, result: str, parent: int = 1, **fields: Any) -> Span:
    """Returns the span of a run of the tool that tells its result alone."""
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.result": result}
    return span(number, parent, "execute_tool look", names, **fields)


def results_of(spans: list[Span]) -> list[tuple[str, Any]]:
    """Returns the day of each call with the result, or with what is said to be missing."""
    events = read_trace(spans).events
    returned = [each for each in events if each["type"] == "tool.returned"]
    results = {each["call_id"]: each.get("response", each.get("missing")) for each in returned}
    return [(each["args"]["day"], results.get(each["call_id"])) for each in events if each["type"] == "tool.called"]


def together(first: str, second: str) -> list[Span]:
    """Returns two runs that begin at the same time; the second one takes longer."""
    return [run(3, first, end_ns=4 * 10**9), run(4, second, start_ns=3 * 10**9, end_ns=5 * 10**9)]


def test_runs_are_those_of_the_calls_in_the_order_of_their_start() -> None:
    runs = [run(3, "closed", end_ns=8 * 10**9), run(4, "open", end_ns=5 * 10**9)]
    for spans in (runs, runs[::-1]):
        found = results_of([agent(1, 0), chat(2, [], asked(*CALLS)), *spans])
        assert found == [("Sunday", "closed"), ("Monday", "open")]


def test_runs_that_begin_together_are_told_apart_by_the_results_that_the_model_read() -> None:
    parts = [
        {"type": "tool_call_response", "id": "c-Sunday", "response": "closed"},
        {"type": "tool_call_response", "id": "c-Monday", "response": "open"},
    ]
    last = chat(9, [asked(*CALLS), {"role": "tool", "parts": parts}], ANSWER)
    found = results_of([agent(1, 0), chat(2, [], asked(*CALLS)), *together("closed", "open"), last])
    assert found == [("Sunday", "closed"), ("Monday", "open")]


def test_of_runs_that_begin_together_the_results_are_unknown_and_this_is_said() -> None:
    found = results_of([agent(1, 0), chat(2, [], asked(*CALLS)), *together("closed", "open")])
    assert [day for day, _ in found] == list(DAYS)
    for _, (sentence,) in found:
        assert sentence.startswith(
            "the result of the call of tool 'look' is not in the spans: calls of the tool began at"
        )
        assert "gen_ai.tool.call.id" in sentence


@pytest.mark.parametrize("days", [("Sunday", "Sunday"), DAYS])
def test_runs_that_begin_together_can_be_exchanged_if_their_calls_or_their_results_are_equal(days: Any) -> None:
    calls = [{**CALLS[0], "id": f"c{place}", "arguments": {"day": day}} for place, day in enumerate(days)]
    second = "open" if days[0] == days[1] else "closed"
    found = results_of([agent(1, 0), chat(2, [], asked(*calls)), *together("closed", second)])
    assert sorted(result for _, result in found) == sorted(["closed", second])


def test_agents_at_the_same_time_have_each_its_own_runs() -> None:
    spans = [agent(1, 0), agent(2, 1, "a"), agent(3, 1, "b")]
    spans += [chat(4, [], asked(CALLS[0]), 2), chat(5, [], asked(CALLS[1]), 3)]
    # The tool of the agent that asked last begins first.
    spans += [run(7, "open", 3), run(8, "closed", 2)]
    assert sorted(results_of(spans)) == [("Monday", "open"), ("Sunday", "closed")]
    with_one_id = [replace(each, attributes={**each.attributes, "gen_ai.tool.call.id": "c0"}) for each in spans[5:]]
    same = [chat(4, [], asked({**CALLS[0], "id": "c0"}), 2), chat(5, [], asked({**CALLS[1], "id": "c0"}), 3)]
    assert sorted(results_of([*spans[:3], *same, *with_one_id])) == [("Monday", "open"), ("Sunday", "closed")]


def test_arguments_that_a_framework_adds_do_not_hide_which_run_is_that_of_the_call() -> None:
    runs = together("closed", "open")
    for each, day in zip(runs, reversed(DAYS), strict=True):
        each.attributes = {**each.attributes, "gen_ai.tool.call.arguments": json.dumps({"day": day, "user": "u1"})}
    found = results_of([agent(1, 0), chat(2, [], asked(*CALLS)), *runs])
    assert found == [("Sunday", "open"), ("Monday", "closed")]


@pytest.mark.parametrize("order", [("open", "closed"), ("closed", "open")])
def test_of_equal_calls_each_has_the_result_that_the_model_read(order: tuple[str, str]) -> None:
    day = {"day": "Sunday"}
    calls = [{"type": "tool_call", "id": name, "name": "look", "arguments": day} for name in ("c1", "c2")]
    given = zip(("c1", "c2"), ("open", "closed"), strict=True)
    read = [{"type": "tool_call_response", "id": name, "result": result} for name, result in given]
    runs = [
        replace(each, attributes={**each.attributes, "gen_ai.tool.call.arguments": json.dumps(day)})
        for each in together(*order)
    ]
    spans = [
        agent(1, 0),
        chat(2, [], asked(*calls)),
        *runs,
        chat(5, [asked(*calls), {"role": "tool", "parts": read}], ANSWER),
    ]
    returned = [each for each in read_trace(spans).events if each["type"] == "tool.returned"]
    assert {each["call_id"]: each["response"] for each in returned} == {"c1": "open", "c2": "closed"}

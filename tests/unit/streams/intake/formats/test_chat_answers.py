"""Tests which tool calls of a transcript are told to be parallel."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.openai_chat import convert, events_of, session_of, tool_calls, tool_result, user_message

from traceweir.schemas.turns import turns_of

ASKED = user_message("Compare two flights.")
BOTH = tool_calls(("1", "a", "{}"), ("2", "b", "{}"))
RESULTS = [tool_result("1", "x"), tool_result("2", "y")]


def groups(messages: list[Any], **more: Any) -> list[str]:
    turns = turns_of(session_of(convert(messages, **more)))
    return ["".join(call.name for call in answer) for turn in turns for answer in turn.invocation.calls_by_answer]


def test_calls_of_one_message_are_parallel() -> None:
    assert groups([ASKED, BOTH, *RESULTS, tool_calls(("3", "c", "{}")), tool_result("3", "z")]) == ["ab", "c"]


@pytest.mark.parametrize("between", [[], [{"role": "assistant", "content": "Once more."}]])
def test_calls_of_two_messages_without_results_between_them_are_not_parallel(between: list[Any]) -> None:
    messages = [ASKED, tool_calls(("1", "a", "{}")), *between, tool_calls(("2", "b", "{}")), *RESULTS]
    assert groups(messages) == ["a", "b"]
    blocks = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": name, "input": {}}]} for name in "ab"
    ]
    assert groups([ASKED, blocks[0], *between, blocks[1]]) == ["a", "b"]


def test_a_message_with_several_calls_takes_no_call_of_its_neighbours() -> None:
    third = tool_calls(("3", "c", "{}"))
    assert groups([ASKED, BOTH, third, *RESULTS]) == ["ab", "c"]
    assert groups([ASKED, third, BOTH, *RESULTS]) == ["c", "ab"]


def test_the_calls_of_one_answer_in_sharegpt_are_parallel() -> None:
    calls = [{"from": "function_call", "value": f'{{"name": "{name}", "arguments": {{}}}}'} for name in "ab"]
    assert groups([{"from": "human", "value": "Compare."}, *calls, {"from": "observation", "value": "x"}]) == ["ab"]


def test_the_items_of_one_answer_of_the_responses_api_are_parallel() -> None:
    def item(name: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": name, "name": name, "arguments": "{}"}

    def output(name: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": name, "output": "x"}

    items = [
        item("a"),
        {"type": "reasoning", "summary": []},
        item("b"),
        output("a"),
        output("b"),
        item("c"),
        output("c"),
    ]
    assert groups([ASKED, *items]) == ["ab", "c"]


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "tool-call", "toolCallId": "1", "toolName": "a", "input": {}},
         {"type": "tool-result", "toolCallId": "1", "toolName": "a", "output": "x"},
         {"type": "tool-call", "toolCallId": "2", "toolName": "b", "input": {}},
         {"type": "tool-result", "toolCallId": "2", "toolName": "b", "output": "y"}],
    ],
)  # fmt: skip
def test_calls_of_a_message_with_results_between_them_are_not_parallel(parts: list[Any]) -> None:
    assert groups([ASKED, {"role": "assistant", "content": parts}]) == ["a", "b"]


def test_calls_on_two_sides_of_a_message_of_the_user_are_not_parallel() -> None:
    go_on = user_message("Go on.")
    messages = [ASKED, tool_calls(("1", "a", "{}")), go_on, tool_calls(("2", "b", "{}")), *RESULTS]
    assert groups(messages) == ["a", "b"]


def test_a_file_that_was_sent_before_keeps_the_ids_of_its_events() -> None:
    found = [
        event.event_id for event in events_of(convert([ASKED, BOTH, *RESULTS], id="s")) if event.type == "tool.called"
    ]
    assert found == ["32109490-9d81-5f73-9323-6e3244e0dadf", "ad3f78cd-1e59-52a2-b9c0-3eda70ff4b1b"]

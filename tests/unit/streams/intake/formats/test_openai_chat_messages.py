"""Tests how the messages of a chat transcript become steps: content, tool calls, tool errors and recoveries."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.openai_chat import (
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

from traceweir.schemas.turns import turns_of


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        (
            [{"type": "text", "text": "look:"}, {"type": "image_url", "image_url": {"url": "data:"}}],
            "look:\n[image_url]",
        ),
        (["bare"], "bare"),
    ],
)
def test_content_can_be_a_string_null_or_a_list_of_parts(content: Any, text: str) -> None:
    started = events_of(convert([user_message(content), assistant_message("ok")]))[0]
    assert started.type == "invocation.started"
    assert started.user_content is not None
    assert started.user_content.text == text


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ("[1]", {"arguments": "[1]"}),
        ('{"a": ', {"arguments": '{"a": '}),
        ('{"a": NaN}', {"arguments": '{"a": NaN}'}),
        ("7", {"arguments": "7"}),
        ([1], {"arguments": "[1]"}),
    ],
)
def test_arguments_that_are_not_a_json_object_are_kept_as_text(arguments: Any, kept: dict[str, Any]) -> None:
    records = convert([user_message("go"), tool_calls(("c", "t", arguments))])

    called = events_of(records)[1]
    assert called.type == "tool.called"
    assert called.args == kept
    assert trace_of(records).steps[0].input == kept


@pytest.mark.parametrize(
    ("content", "more", "failed"),
    [
        ("Error: no seats", {}, True),
        ("  ERROR", {}, True),
        ('{"error": "no seats"}', {}, True),
        ('{"error": {"code": 1}}', {}, True),
        ('{"error": null, "table": 7}', {}, False),
        ('{"error": false}', {}, False),
        ('{"error": ""}', {}, False),
        ('{"note": "error"}', {}, False),
        ('["error"]', {}, False),
        ('{"error": ', {}, False),
        ("No error found", {}, False),
        ("", {}, False),
        ("sorry", {"is_error": True}, True),
        ("sorry", {"is_error": False}, False),
        ("sorry", {"status": "error"}, True),
        ("sorry", {"status": "success"}, False),
        ([{"type": "text", "text": "error: no seats"}], {}, True),
    ],
)
def test_the_call_after_a_tool_error_is_a_recovery(content: Any, more: dict[str, Any], failed: bool) -> None:
    records = convert(
        [
            user_message("go"),
            tool_calls(("c1", "t", "{}")),
            tool_result("c1", content, **more),
            tool_calls(("c2", "u", "{}")),
        ]
    )

    returned = events_of(records)[2]
    assert returned.type == "tool.returned"
    assert (returned.error is not None, returned.response is None) == (failed, failed)
    assert trace_of(records).steps[2].type == ("error_recovery" if failed else "tool_call")


def test_only_the_first_call_after_an_error_is_a_recovery() -> None:
    failing = [user_message("go"), tool_calls(("c1", "t", "{}")), tool_result("c1", "Error: x")]
    after = [
        assistant_message("hm"),
        user_message("try again"),
        tool_calls(("c2", "t", "{}"), ("c3", "u", "{}")),
        tool_result("c2", "ok"),
    ]

    types = [kind for kind, _, _ in steps_of([*failing, *after, tool_calls(("c4", "t", "{}"))])]

    assert types == ["tool_call", "observation", "thought", "error_recovery", "tool_call", "observation", "tool_call"]


def test_results_of_parallel_calls_are_matched_by_id_and_not_by_position() -> None:
    messages = [
        user_message("go"),
        tool_calls(("a", "first", "{}"), ("b", "second", "{}")),
        tool_result("b", "2"),
        tool_result("a", "1"),
    ]
    returned = [event for event in events_of(convert(messages)) if event.type == "tool.returned"]
    assert [(event.call_id, event.name, event.response) for event in returned] == [
        ("b", "second", "2"),
        ("a", "first", "1"),
    ]


def test_messages_with_the_deprecated_function_call_are_read() -> None:
    messages = [
        user_message("go"),
        assistant_message(None, function_call={"name": "t", "arguments": '{"a": 1}'}),
        {"role": "function", "name": "t", "content": "done"},
    ]
    records = convert(messages)

    assert [event.type for event in events_of(records)][1:3] == ["tool.called", "tool.returned"]
    assert steps_of(messages) == [("tool_call", None, "t"), ("observation", "done", None)]
    assert trace_of(records).steps[0].input == {"a": 1}


def test_a_refusal_counts_as_the_text_of_the_message() -> None:
    assert steps_of([user_message("go"), assistant_message(None, refusal="No.")]) == [("thought", "No.", None)]


def test_the_last_text_of_a_turn_is_the_final_response_even_beside_a_tool_call() -> None:
    records = convert(
        [
            user_message("go"),
            assistant_message("First."),
            tool_calls(("c", "t", "{}"), content="Last."),
            tool_result("c", "done"),
        ]
    )
    (turn,) = turns_of(session_of(records))
    assert turn.invocation.final_response is not None
    assert turn.invocation.final_response.text == "Last."
    types = [event.type for event in events_of(records)]
    assert types[1:] == [
        "response.intermediate",
        "tool.called",
        "tool.returned",
        "invocation.completed",
        "session.ended",
    ]


def test_a_turn_without_a_final_response_is_not_completed() -> None:
    records = convert([user_message("go"), assistant_message("ok"), user_message("and?")])
    types = [event.type for event in events_of(records)]
    assert types == ["invocation.started", "invocation.completed", "invocation.started", "session.ended"]


def test_a_message_of_the_agent_before_any_user_message_has_an_invocation_of_its_own() -> None:
    records = convert([assistant_message("Hello?"), user_message("Hi."), assistant_message("Good.")])
    greeting, talk = turns_of(session_of(records))
    assert (greeting.invocation.invocation_id, greeting.invocation.user_content) == ("turn-0", None)
    assert talk.invocation.invocation_id == "turn-1"
    assert trace_of(records).task.objective == "Hi."

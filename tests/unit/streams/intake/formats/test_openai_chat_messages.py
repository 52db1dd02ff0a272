"""Tests how the messages of a chat transcript become steps: content, tool calls, tool errors and recoveries."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.openai_chat import (
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

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import IntermediateData, TokenUsage
from traceweir.schemas.turns import turns_of
from traceweir.streams.intake.formats.chat_times import NO_DURATION
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.openai_chat import transcript_events


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
            "look:",
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
        ('{"a": NaN, "b": 1}', {"a": None, "b": 1}),
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
        ("Errors: 0 found", {}, False),
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


def turns(*messages: Any, **more: Any) -> list[tuple[str | None, str | None, list[tuple[str, object]]]]:
    """Returns the question, the answer, and the calls with their responses of each invocation."""
    session = session_of(convert(list(messages), **more))
    found = []
    for turn in turns_of(session):
        asked, said = turn.invocation.user_content, turn.invocation.final_response
        data = turn.invocation.intermediate_data
        assert isinstance(data, IntermediateData)
        responses = {each.id: each.response for each in data.tool_responses}
        calls: list[tuple[str, object]] = [(use.name, responses.get(use.id)) for use in data.tool_uses]
        found.append((asked.text if asked else None, said.text if said else None, calls))
    return found


WEATHER = [("Weather?", "12 C.", [("weather", "12 C, rain")])]


@pytest.mark.parametrize(
    "messages",
    [
        [
            user_message("Weather?"),
            assistant_message([{"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "Oslo"}}]),
            user_message([{"type": "tool_result", "tool_use_id": "t", "content": "12 C, rain"}]),
            assistant_message([{"type": "thinking", "thinking": "Easy."}, {"type": "text", "text": "12 C."}]),
        ],
        [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "t", "name": "weather", "args": {"city": "Oslo"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "t", "name": "weather", "response": "12 C, rain"}}]},
            {"role": "model", "parts": [{"text": "Easy.", "thought": True}, {"text": "12 C."}]},
        ],
        [
            {"role": "user", "content": [{"text": "Weather?"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "weather", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "12 C, rain"}]}}]},
            {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {}}}, {"text": "12 C."}]},
        ],
        [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "t", "toolName": "weather", "args": {}}],
            },
            {
                "role": "tool",
                "content": [{"type": "tool-result", "toolCallId": "t", "toolName": "weather", "result": "12 C, rain"}],
            },
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "text": "Easy."}, {"type": "text", "text": "12 C."}],
            },
        ],
        [
            {"role": "user", "content": "Weather?"},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "t", "id": "fc", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": "12 C, rain"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "12 C."}]},
        ],
        [
            user_message("Weather?"),
            assistant_message("", tool_calls=[{"id": "t", "name": "weather", "arguments": {}}]),
            {"role": "tool", "id": "t", "content": "12 C, rain"},
            assistant_message("<think>\nEasy.\n</think>\n\n12 C."),
        ],
        [
            {"type": "human", "content": "Weather?"},
            {"type": "ai", "content": "", "tool_calls": [{"id": "t", "name": "weather", "args": {}}]},
            {"type": "tool", "data": {"content": "12 C, rain", "tool_call_id": "t"}},
            {"type": "ai", "content": "12 C."},
        ],
    ],
    ids=["Anthropic", "Gemini", "Bedrock", "AI SDK", "Responses", "flat calls", "LangChain"],
)
def test_one_conversation_is_the_same_in_the_messages_of_every_provider(messages: list[Any]) -> None:
    assert turns(*messages) == WEATHER


def test_a_conversation_of_sharegpt_is_read() -> None:
    said: list[JsonValue] = [
        {"from": "human", "value": "Weather?"},
        {"from": "function_call", "value": '{"name": "weather", "arguments": {}}'},
        {"from": "observation", "value": "12 C, rain"},
        {"from": "gpt", "value": "12 C."},
    ]
    records = transcript_events({"conversations": said}, 1, "chats.json", NOON)
    assert [event.type for event in events_of(records)] == [
        "invocation.started",
        "tool.called",
        "tool.returned",
        "invocation.completed",
        "session.ended",
    ]


def test_results_without_an_id_and_a_name_are_those_of_the_calls_before_them_in_order() -> None:
    calls: list[JsonValue] = [
        {"from": "function_call", "value": f'{{"name": "{name}", "arguments": {{}}}}'} for name in ("get", "put")
    ]
    results: list[JsonValue] = [{"from": "observation", "value": value} for value in ("12", "ok")]
    said: list[JsonValue] = [{"from": "human", "value": "q"}, *calls, *results, {"from": "gpt", "value": "a"}]
    returned = [event for event in events_of(convert(said)) if event.type == "tool.returned"]
    assert [(event.name, event.response) for event in returned] == [("get", "12"), ("put", "ok")]


def test_a_stored_completion_has_its_answer_and_its_tokens() -> None:
    records = convert(
        [user_message("q")],
        choices=[
            {"message": {"role": "assistant", "content": "a"}},
            {"message": {"role": "assistant", "content": "b"}},
        ],
        usage={"prompt_tokens": 3, "completion_tokens": 2},
    )
    (turn,) = turns_of(session_of(records))
    assert turn.invocation.final_response is not None
    assert turn.invocation.final_response.text == "a"
    assert turn.invocation.reported_tokens == TokenUsage(input_tokens=3, output_tokens=2)
    assert "1 further choice of the model was not read" in (turn.invocation.unread or [])


def test_a_stored_response_is_read() -> None:
    output: list[JsonValue] = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    ]
    document: JsonObject = {
        "object": "response",
        "id": "r",
        "input": "q",
        "output": output,
        "usage": {"input_tokens": 3},
    }
    (turn,) = turns_of(session_of(transcript_events(document, 1, "chats.json", NOON)))
    assert turn.invocation.reported_tokens == TokenUsage(input_tokens=3)
    assert [content and content.text for content in (turn.invocation.user_content, turn.invocation.final_response)] == [
        "q",
        "a",
    ]


@pytest.mark.parametrize(
    ("question", "answer", "unread"),
    [
        (
            [{"type": "text", "text": "look"}, {"type": "image_url"}],
            "ok",
            ["not all of the question is text: 1 part of type 'image_url'"],
        ),
        (
            [{"type": "image_url"}, {"type": "image_url"}],
            "ok",
            ["the question is no text: 2 parts of type 'image_url'"],
        ),
        ("draw", [{"type": "image"}], ["the answer is no text: 1 part of type 'image'"]),
    ],
)
def test_a_part_that_is_no_text_is_named_and_counted(question: Any, answer: Any, unread: list[str]) -> None:
    (turn,) = turns_of(
        session_of(convert([user_message(question), tool_calls(("c", "t", "{}")), assistant_message(answer)]))
    )
    assert [each for each in turn.invocation.unread or [] if "times" not in each] == unread


def test_a_transcript_without_times_has_no_latency_and_one_with_times_has_its_own() -> None:
    without, timed = (
        turns_of(session_of(convert([user_message("q") | asked, assistant_message("a") | said])))[0].invocation
        for asked, said in (({}, {}), ({"created_at": 1767225600}, {"created_at": 1767225602.5}))
    )
    assert without.latency_seconds is None
    assert without.unread == ["the times of the messages are not in the transcript"]
    assert (timed.latency_seconds, timed.unread) == (2.5, None)


def answers(*messages: Any) -> list[str | None]:
    return [said for _, said, _ in turns(*messages)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>\n<think>b</think>ok", "ok"),
        ("so...\n</think>\n\nok", "ok"),
        (
            "Models end their thoughts with </think> and then answer.",
            "Models end their thoughts with </think> and then answer.",
        ),
        ("Write <think> first.", "Write <think> first."),
    ],
)
def test_reasoning_at_the_beginning_of_a_text_is_left_out_and_a_text_about_it_is_not(text: str, answer: str) -> None:
    assert answers(user_message("q"), assistant_message(text)) == [answer]


def test_a_call_that_stands_in_two_places_of_a_message_is_one_call() -> None:
    block = {"type": "tool_use", "id": "t", "name": "get", "input": {}}
    both = assistant_message([block], tool_calls=[{"id": "t", "name": "get", "args": {}}])
    assert turns(user_message("q"), both, tool_result("t", "12"), assistant_message("a")) == [
        ("q", "a", [("get", "12")])
    ]


def test_the_own_id_of_a_tool_message_is_no_id_of_a_call() -> None:
    result = {"id": "m3", "role": "tool", "name": "get", "content": "12"}
    records = convert([user_message("q"), tool_calls(("c1", "get", "{}")), result, assistant_message("a")])
    (returned,) = [event for event in events_of(records) if event.type == "tool.returned"]
    assert (returned.call_id, returned.name) == (None, "get")


def test_choices_of_a_test_beside_the_messages_are_no_choices_of_a_model() -> None:
    records = convert([user_message("q"), assistant_message("A")], choices=["Yes", "No"], target="A")
    assert [event.type for event in events_of(records)][-2:] == ["invocation.completed", "session.ended"]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ({"created_at": "2026-01-31T12:00:10Z"}, "the time of a text is before that of the text before it"),
        ({"created_at": "9999-12-31T23:59:59Z"}, "the time of a text is before that of the text before it"),
        (
            {"timestamp": "2026-01-31T11:00:00"},
            "messages[0].timestamp is '2026-01-31T11:00:00', which is no number since 1970 and no date-time with its zone",
        ),
    ],
)
def test_times_count_only_if_every_text_has_one_and_none_is_before_the_former(first: dict[str, Any], why: str) -> None:
    records = convert(
        [
            assistant_message("Welcome") | first,
            user_message("q") | {"created_at": "2026-01-31T12:00:00Z"},
            assistant_message("a") | {"created_at": "2026-01-31T12:00:09Z"},
        ]
    )
    turn = turns_of(session_of(records))[-1].invocation
    assert turn.latency_seconds is None
    assert turn.unread == [f"the times of the messages are not used: {why}"]


@pytest.mark.parametrize("at", [0, 0.0, 12.5, "1970-01-01T00:00:00Z"])
def test_a_time_on_the_first_day_of_1970_stands_for_an_unknown_one(at: Any) -> None:
    messages = [user_message("q") | {"created_at": at}, assistant_message("a") | {"created_at": at}]
    (turn,) = (each.invocation for each in turns_of(session_of(convert(messages))))
    assert turn.latency_seconds is None
    assert turn.unread is not None
    assert turn.unread[0].startswith("the times of the messages are not used: messages[0].created_at is ")
    assert turn.unread[0].endswith(", which stands for an unknown time")


def test_an_answer_with_the_time_of_its_question_says_nothing_about_the_latency() -> None:
    same = {"created_at": "2026-01-31T12:00:00Z"}
    messages = [
        *(user_message("q") | same, assistant_message("a") | same),
        user_message("then?") | {"created_at": "2026-01-31T12:01:00Z"},
        assistant_message("b") | {"created_at": "2026-01-31T12:01:02Z"},
    ]
    first, second = (each.invocation for each in turns_of(session_of(convert(messages))))
    assert first.latency_seconds is None
    assert first.unread == [NO_DURATION]
    assert (second.latency_seconds, second.unread) == (2.0, None)


def test_texts_before_the_first_time_can_be_without_and_no_later_one() -> None:
    timed = [
        user_message("q") | {"created_at": "2026-01-31T12:00:00Z"},
        assistant_message("a") | {"created_at": "2026-01-31T12:00:09Z"},
    ]
    before = [user_message("first"), assistant_message("so")]
    earlier, turn = (each.invocation for each in turns_of(session_of(convert(before + timed))))
    assert (earlier.latency_seconds, turn.latency_seconds) == (None, 9.0)
    assert earlier.unread == ["the times of the messages are not in the transcript"]
    (untimed,) = {each.invocation.latency_seconds for each in turns_of(session_of(convert(timed + before)))}
    assert untimed is None


def test_messages_as_langchain_writes_their_constructors_are_read() -> None:
    def constructor(name: str, **kwargs: Any) -> JsonObject:
        path: list[JsonValue] = ["langchain", "schema", "messages", name]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}

    messages = [
        constructor("SystemMessage", content="You help."),
        constructor("HumanMessage", content="Weather?"),
        constructor("AIMessageChunk", content="", tool_calls=[{"id": "t", "name": "get", "args": {}}]),
        constructor("ToolMessage", content="12", tool_call_id="t", type="tool"),
        constructor("AIMessage", content="12 C", type="ai"),
    ]
    assert turns(*messages) == [("Weather?", "12 C", [("get", "12")])]


def test_calls_and_results_of_tools_that_the_provider_runs_are_read() -> None:
    items = [
        {"type": "code_interpreter_call", "id": "c", "code": "print(1)", "outputs": [{"type": "logs", "logs": "1"}]},
        {"type": "mcp_call", "id": "m", "name": "ask", "arguments": "{}", "output": "docs"},
    ]
    assert turns(user_message("q"), *items, assistant_message("a")) == [
        ("q", "a", [("code_interpreter", '[{"type":"logs","logs":"1"}]'), ("ask", "docs")])
    ]


def test_a_reminder_beside_results_and_a_call_of_the_user_begin_no_turn_and_are_named() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "12"}
    call = assistant_message([{"type": "tool_use", "id": "t", "name": "get", "input": {}}])
    reminder = {"type": "text", "text": "<system-reminder>Be kind.</system-reminder>"}
    own = {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "reboot", "arguments": {}}]}
    messages = [user_message("q"), call, user_message([result, reminder]), own, assistant_message("a")]
    (turn,) = turns_of(session_of(convert(messages)))
    assert "not all of the answer is text: 1 part of type 'reminder', 1 part of type 'tool call of the user'" in (
        turn.invocation.unread or []
    )


def test_a_message_that_has_its_content_under_a_key_that_no_format_has_is_no_empty_message() -> None:
    asked = {"role": "user", "items": [{"content_type": "text", "text": "Open?"}]}
    result = {"role": "tool", "items": [{"content_type": "function_result", "name": "get", "result": "12"}]}
    events = events_of(convert([asked, result, assistant_message("No.")]))
    assert [event.type for event in events] == ["invocation.started", "invocation.completed", "session.ended"]
    assert events[0].missing == [
        "the question is no text: 1 part of type 'items'",
        "not all of the answer is text: 1 part of type 'items'",
        "the times of the messages are not in the transcript",
        "the tool calls are not known: a message has its content under a key that no format has",
    ]


@pytest.mark.parametrize("depth", [20, 900])
def test_results_in_results_are_read_or_refused_and_never_end_the_run(depth: int) -> None:
    part: Any = "12"
    for _ in range(depth):
        part = [{"type": "tool_result", "tool_use_id": "t", "content": part}]
    document: JsonObject = {"messages": [user_message(part), assistant_message("a")]}
    with suppress(InputError):
        transcript_events(document, 1, "chats.json", NOON)


UI_CALL = {"toolCallId": "c", "toolName": "look", "input": {"city": "Oslo"}}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "ferry"}}
MEDIA: JsonObject = {"type": "image", "source": {"type": "base64", "data": "QUJD"}}


@pytest.mark.parametrize(
    ("messages", "answer", "used"),
    [
        # Only what stands after the last result is the answer.
        (
            [
                assistant_message(
                    [
                        {"type": "text", "text": "I search."},
                        SEARCH,
                        {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"error_code": "too_many"}},
                        {"type": "text", "text": "I cannot search."},
                    ]
                )
            ],
            "I cannot search.",
            [("web_search", {"query": "ferry"}, {"error": "too_many"})],
        ),
        (
            [
                {
                    "role": "model",
                    "parts": [
                        {"executableCode": {"code": "print(2)"}},
                        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
                        {"text": "Two."},
                    ],
                }
            ],
            "Two.",
            [("code_execution", {"code": "print(2)"}, "2")],
        ),
        (
            [
                {"type": "mcp_call", "id": "m", "name": "ask", "arguments": "{}", "error": "denied"},
                assistant_message("No."),
            ],
            "No.",
            [("ask", {}, {"error": "denied"})],
        ),
        (
            [
                {"type": "computer_call", "call_id": "c", "action": {"type": "click"}},
                {"type": "computer_call_output", "call_id": "c", "output": "done"},
                assistant_message("Done."),
            ],
            "Done.",
            [("computer", {"type": "click"}, "done")],
        ),
        (
            [
                assistant_message(
                    [
                        {"type": "tool-look", "state": "output-available", "output": {"t": 4}, **UI_CALL},
                        {"type": "text", "text": "4."},
                    ]
                )
            ],
            "4.",
            [("look", {"city": "Oslo"}, '{"t":4}')],
        ),
        (
            [assistant_message("4.") | {"toolInvocations": [{"state": "result", "result": "4 C", **UI_CALL}]}],
            "4.",
            [("look", {"city": "Oslo"}, "4 C")],
        ),
        (
            [
                assistant_message([{"type": "tool-call", **UI_CALL}]),
                {
                    "role": "tool",
                    "content": [
                        {"type": "tool-result", "toolCallId": "c", "output": {"type": "error-text", "value": "offline"}}
                    ],
                },
                assistant_message("No."),
            ],
            "No.",
            [("look", {"city": "Oslo"}, {"error": "offline"})],
        ),
        (
            [
                {"role": "assistant", "tool_calls": [{"id": "c", "custom": {"name": "run", "input": "ls"}}]},
                tool_result("c", "a.txt"),
                assistant_message("Done."),
            ],
            "Done.",
            [("run", {"arguments": "ls"}, "a.txt")],
        ),
        (
            [
                {"type": "ai", "content": "", "invalid_tool_calls": [{"id": "c", "name": "look", "args": "Oslo"}]},
                {"type": "tool", "tool_call_id": "c", "content": "not JSON", "status": "error"},
                {"type": "ai", "content": "No."},
            ],
            "No.",
            [("look", {"arguments": "Oslo"}, {"error": "not JSON"})],
        ),
        (
            [
                assistant_message([{"toolUse": {"toolUseId": "c", "name": "look", "input": {}}}]),
                user_message([{"toolResult": {"toolUseId": "c", "content": [{"json": {"t": 4}}]}}]),
                assistant_message([{"text": "4."}]),
            ],
            "4.",
            [("look", {}, '{"t":4}')],
        ),
    ],
)
def test_calls_results_and_the_answer_after_them_are_read_in_every_form(
    messages: list[Any], answer: str, used: list[Any]
) -> None:
    (turn,) = turns_of(session_of(convert([user_message("q"), *messages])))
    data = turn.invocation.intermediate_data
    assert isinstance(data, IntermediateData)
    uses = zip(data.tool_uses, data.tool_responses, strict=True)
    assert [(use.name, use.args, response.response) for use, response in uses] == used
    assert turn.invocation.final_response is not None
    assert turn.invocation.final_response.text == answer


@pytest.mark.parametrize(
    ("messages", "question", "answer"),
    [
        (
            [user_message([{"type": "input_audio", "transcript": "Capital?"}]), assistant_message("Oslo.")],
            "Capital?",
            "Oslo.",
        ),
        (
            [user_message("Capital?"), assistant_message(None, audio={"transcript": "Oslo.", "data": "QUJD"})],
            "Capital?",
            "Oslo.",
        ),
        ([{"role": "User", "content": "Capital?"}, {"role": "CHATBOT", "content": "Oslo."}], "Capital?", "Oslo."),
        ([user_message("Capital?"), assistant_message("<thought>Norway</thought>Oslo.")], "Capital?", "Oslo."),
    ],
)
def test_what_is_spoken_or_written_in_another_way_is_read(messages: list[Any], question: str, answer: str) -> None:
    assert turns(*messages) == [(question, answer, [])]


def test_a_part_of_a_result_that_is_no_text_is_named_and_is_no_text() -> None:
    call = assistant_message([{"type": "tool_use", "id": "t", "name": "shot", "input": {}}])
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "see"}, MEDIA]}
    (turn,) = turns_of(session_of(convert([user_message("q"), call, user_message([result]), assistant_message("a")])))
    data = turn.invocation.intermediate_data
    assert isinstance(data, IntermediateData)
    assert [each.response for each in data.tool_responses] == ["see"]
    assert "not all of the result of tool 'shot' is text: 1 part of type 'image'" in (turn.invocation.unread or [])


@pytest.mark.parametrize(
    "document",
    [
        {
            "contents": [{"parts": [{"text": "q"}]}],
            "candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
        },
        {
            "messages": [{"role": "user", "content": [{"text": "q"}]}],
            "output": {"message": {"role": "assistant", "content": [{"text": "a"}]}},
            "usage": {"inputTokens": 3, "outputTokens": 2},
        },
    ],
)
def test_the_stored_answers_of_gemini_and_bedrock_are_read(document: JsonObject) -> None:
    (turn,) = turns_of(session_of(transcript_events(document, 1, "chats.json", NOON)))
    invocation = turn.invocation
    assert invocation.user_content is not None
    assert invocation.final_response is not None
    assert (invocation.user_content.text, invocation.final_response.text) == ("q", "a")
    assert invocation.token_usage == TokenUsage(input_tokens=3, output_tokens=2)


@pytest.mark.parametrize("content", ["parts", "text", "object"])
def test_parts_of_a_tools_result_that_are_no_text_are_named(content: str) -> None:
    drawn: JsonObject = {"type": "image", "data": "QUJDREVG", "mimeType": "image/png"}
    parts: list[JsonValue] = [{"type": "text", "text": "hall 7"}, drawn]
    forms: dict[str, Any] = {"parts": parts, "text": json.dumps({"content": parts}), "object": {"content": parts}}
    records = convert(
        [
            user_message("Draw it."),
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "draw", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": forms[content]},
            assistant_message("Done."),
        ]
    )
    [turn] = turns_of(session_of(records))
    assert [each.response for each in turn.invocation.tool_responses] == ["hall 7"]
    assert (turn.invocation.unread or [])[0] == "not all of the result of tool 'draw' is text: 1 part of type 'image'"


ASKED: JsonObject = {"role": "user", "content": "What is the time?"}
SAID: JsonObject = {"role": "assistant", "content": "It is"}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"messages": [ASKED], "choices": [{"message": SAID, "finish_reason": "length"}]}, "length"),
        (
            {
                "contents": [{"role": "user", "parts": [{"text": "What is the time?"}]}],
                "candidates": [{"content": {"parts": [{"text": "It is"}]}, "finishReason": "MAX_TOKENS"}],
            },
            "MAX_TOKENS",
        ),
        (
            {
                "messages": [{"role": "user", "content": [{"text": "What is the time?"}]}],
                "output": {"message": {"role": "assistant", "content": [{"text": "It is"}]}},
                "stopReason": "max_tokens",
            },
            "max_tokens",
        ),
        (
            {
                "object": "response",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "input": "What is the time?",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is"}]}
                ],
            },
            "max_output_tokens",
        ),
        ({"messages": [ASKED, {**SAID, "stop_reason": "max_tokens"}]}, "max_tokens"),
        ({"messages": [ASKED, {**SAID, "response_metadata": {"finish_reason": "length"}}]}, "length"),
    ],
)
def test_an_answer_that_was_cut_is_the_answer_and_is_said_to_be_cut(document: JsonObject, reason: str) -> None:
    [turn] = turns_of(session_of(transcript_events(document, 1, "log.jsonl", NOON)))
    assert turn.invocation.final_response is not None
    assert turn.invocation.final_response.text == "It is"
    sentence = f"not all of the answer is there: the model stopped at its limit {reason!r}"
    assert sentence in (turn.invocation.unread or [])


def test_an_answer_that_ended_by_itself_is_not_said_to_be_cut() -> None:
    document: JsonObject = {"messages": [ASKED], "choices": [{"message": SAID, "finish_reason": "stop"}]}
    [turn] = turns_of(session_of(transcript_events(document, 1, "log.jsonl", NOON)))
    assert not any("the model stopped" in each for each in turn.invocation.unread or [])

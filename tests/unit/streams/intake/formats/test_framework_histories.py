"""What frameworks keep of a conversation is read as a transcript: Pydantic AI, Llama Stack, Semantic Kernel."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read_traceweir

from traceweir.schemas.invocation import Invocation
from traceweir.streams.intake.formats.recognition import built_in_kind, looks_like

ASKED = {"part_kind": "user-prompt", "content": "Weather?", "timestamp": "2026-01-01T10:00:00Z"}
CALL = {"part_kind": "tool-call", "tool_name": "weather", "tool_call_id": "c", "args": '{"city": "Oslo"}'}
RETURNED = {"part_kind": "tool-return", "tool_name": "weather", "tool_call_id": "c", "content": {"rain": True}}
RETRIED = {"part_kind": "retry-prompt", "tool_name": "weather", "tool_call_id": "c", "content": "no such city"}
ANSWER = {"part_kind": "text", "content": "It rains."}
FORCED = {"part_kind": "tool-call", "tool_name": "final_result", "tool_call_id": "f", "args": '{"rain":true}'}
TAKEN = {
    "part_kind": "tool-return",
    "tool_name": "final_result",
    "tool_call_id": "f",
    "content": "Final result processed.",
}


def request(*parts: Document) -> Document:
    return {"kind": "request", "parts": [*parts]}


def response(*parts: Document, **more: Any) -> Document:
    return {"kind": "response", "parts": [*parts], "timestamp": "2026-01-01T10:00:02Z", **more}


def only(document: Document) -> Invocation:
    (found,) = invocations(lines(document))
    return found


def read(found: Invocation) -> tuple[str | None, list[Any], list[Any], str | None]:
    calls = [(each.name, each.args) for each in found.tool_uses]
    results = [each.response for each in found.tool_responses]
    return found.user_content.text if found.user_content else None, calls, results, answer(found)


IN_OSLO = [("weather", {"city": "Oslo"})]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([response(CALL), request(RETURNED), response(ANSWER)], (IN_OSLO, ['{"rain":true}'], "It rains.")),
        ([response(CALL), request(RETRIED), response(ANSWER)], (IN_OSLO, [{"error": "no such city"}], "It rains.")),
        (
            [response(CALL), request({**RETURNED, "content": "not allowed", "outcome": "denied"}), response(ANSWER)],
            (IN_OSLO, [{"error": "not allowed"}], "It rains."),
        ),
        ([response({"part_kind": "thinking", "content": "Rain?"}, ANSWER)], ([], [], "It rains.")),
        ([response(FORCED), request(TAKEN)], ([], [], '{"rain":true}')),
        (
            [
                response(
                    {**CALL, "part_kind": "builtin-tool-call"},
                    {**RETURNED, "part_kind": "builtin-tool-return"},
                    ANSWER,
                )
            ],
            (IN_OSLO, ['{"rain":true}'], "It rains."),
        ),
    ],
    ids=["call", "retry", "denied", "thinking", "forced answer", "tool of the provider"],
)
def test_messages_of_pydantic_ai_are_read(messages: list[Document], expected: tuple[Any, ...]) -> None:
    system = {"part_kind": "system-prompt", "content": "Be brief."}
    found = only({"id": "s", "messages": [request(system, ASKED), *messages]})

    assert read(found) == ("Weather?", *expected)
    assert found.unread in (None, [])


def test_what_pydantic_ai_has_beside_texts_is_named() -> None:
    prompt = {**ASKED, "content": ["What is it?", {"kind": "image-url", "url": "https://a.example/a.png"}]}
    wrong = request({"part_kind": "retry-prompt", "content": "Plain text is not permitted.", "tool_name": None})
    found = only({"messages": [request(prompt), response(ANSWER), wrong, response({**ANSWER, "content": "A house."})]})

    assert read(found) == ("What is it?", [], [], "A house.")
    assert found.unread == [
        "not all of the question is text: 1 part of type 'image-url'",
        "not all of the answer is text: 1 part of type 'retry-prompt'",
    ]


def test_the_tokens_of_pydantic_ai_are_those_of_each_response() -> None:
    old = response(CALL, usage={"requests": 1, "request_tokens": 10, "response_tokens": 4}, model_name="m")
    new = response(ANSWER, usage={"input_tokens": 20, "output_tokens": 6}, model_name="m")
    found = only({"messages": [request(ASKED), old, request(RETURNED), new]})

    assert found.model_calls == 2
    assert found.reported_tokens is not None
    assert (found.reported_tokens.input_tokens, found.reported_tokens.output_tokens) == (30, 10)


SAID = {"role": "assistant", "content": "It rains.", "stop_reason": "end_of_turn", "tool_calls": []}
ASKING = {
    **SAID,
    "content": "",
    "tool_calls": [{"call_id": "c", "tool_name": "weather", "arguments": {"city": "Oslo"}}],
}
STEPS: list[Document] = [
    {"step_type": "inference", "model_response": ASKING},
    {"step_type": "tool_execution", "tool_responses": [{"call_id": "c", "tool_name": "weather", "content": "rain"}]},
    {"step_type": "inference", "model_response": SAID},
]


def turn(steps: list[Document], output: Document) -> Document:
    asked = [{"role": "user", "content": "Weather?"}]
    return {"turn_id": "t", "input_messages": asked, "steps": steps, "output_message": output}


@pytest.mark.parametrize("steps", [STEPS, STEPS[:2]], ids=["all steps", "without the last"])
def test_each_turn_of_a_session_of_llama_stack_is_read_with_its_answer_once(steps: list[Document]) -> None:
    found = invocations(lines({"session_id": "s", "turns": [turn(steps, SAID), turn([], SAID)]}))

    assert [read(each) for each in found] == [
        ("Weather?", IN_OSLO, ["rain"], "It rains."),
        ("Weather?", [], [], "It rains."),
    ]


def test_a_step_of_llama_stack_that_is_not_read_and_an_answer_that_was_cut_are_named() -> None:
    shield = {"step_type": "shield_call", "violation": None}
    found = only({"session_id": "s", "turns": [turn([shield], {**SAID, "stop_reason": "out_of_tokens"})]})

    assert any("'shield_call'" in each for each in found.unread or [])
    assert any("at its limit" in each for each in found.unread or [])


PYTHON = [
    {"role": "user", "items": [{"content_type": "text", "text": "Weather?"}]},
    {
        "role": "assistant",
        "items": [
            {
                "content_type": "function_call",
                "id": "c",
                "name": "w-get",
                "plugin_name": "w",
                "function_name": "get",
                "arguments": '{"city": "Oslo"}',
            }
        ],
    },
    {
        "role": "tool",
        "items": [
            {
                "content_type": "function_result",
                "id": "c",
                "name": "w-get",
                "plugin_name": "w",
                "function_name": "get",
                "result": "rain",
            }
        ],
    },
    {"role": "assistant", "items": [{"content_type": "text", "text": "It rains."}]},
]
DOTNET = [
    {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": "Weather?"}]},
    {
        "Role": {"Label": "assistant"},
        "Items": [
            {
                "$type": "FunctionCallContent",
                "Id": "c",
                "PluginName": "w",
                "FunctionName": "get",
                "Arguments": {"city": "Oslo"},
            }
        ],
    },
    {
        "Role": {"Label": "tool"},
        "Items": [
            {
                "$type": "FunctionResultContent",
                "CallId": "c",
                "PluginName": "w",
                "FunctionName": "get",
                "Result": "rain",
            }
        ],
    },
    {"Role": {"Label": "assistant"}, "Items": [{"$type": "TextContent", "Text": "It rains."}]},
]


@pytest.mark.parametrize("messages", [PYTHON, DOTNET], ids=["Python", ".NET"])
def test_a_history_of_semantic_kernel_is_read(messages: list[Document]) -> None:
    assert read(only({"messages": messages})) == ("Weather?", [("w-get", {"city": "Oslo"})], ["rain"], "It rains.")


def test_an_image_of_semantic_kernel_is_named() -> None:
    asked = {"role": "user", "items": [{"content_type": "text", "text": "What?"}, {"content_type": "image"}]}
    found = only({"messages": [asked, PYTHON[-1]]})

    assert "not all of the question is text: 1 part of type 'image'" in (found.unread or [])


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (request(ASKED), "a message of Pydantic AI"),
        (DOTNET[0], "a message of a ChatHistory of Semantic Kernel"),
        (PYTHON[0], "a message of a ChatHistory of Semantic Kernel"),
        (turn([], SAID), "a turn of an agent of Llama Stack without its session"),
        (
            {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Hi"}},
            "a line of a log of Claude Code",
        ),
    ],
)
def test_a_part_of_a_conversation_is_refused_by_its_name_with_the_way_on(document: Document, name: str) -> None:
    kind = built_in_kind(document)

    assert kind is not None
    said = looks_like(kind, document)
    assert said.startswith(f"looks like {name}")
    assert "into one object" in said


def test_a_line_with_the_list_of_a_conversation_is_read_as_the_conversation() -> None:
    conversation = [request(ASKED), response(ANSWER)]
    found = invocations("\n".join(json.dumps(each) for each in (conversation, conversation)))

    assert [read(each) for each in found] == [("Weather?", [], [], "It rains.")] * 2


def test_an_answer_in_a_call_without_an_id_leaves_the_other_calls_without_ids() -> None:
    asked, returned, forced, taken = (
        {key: value for key, value in part.items() if key != "tool_call_id"} for part in (CALL, RETURNED, FORCED, TAKEN)
    )
    messages = [request(ASKED), response(asked), request(returned), response(forced), request(taken)]
    _, calls, _, said = read(only({"messages": messages}))

    assert (calls, said) == (IN_OSLO, '{"rain":true}')


@pytest.mark.parametrize("value", [None, 7, "x", [], [[]], {}, {"a": []}])
def test_any_value_at_any_place_ends_no_run(value: Any) -> None:
    def with_value(found: Any, at: list[Any]) -> Any:
        if not at:
            return value
        changed = dict(found) if isinstance(found, dict) else [*found]
        changed[at[0]] = with_value(found[at[0]], at[1:])
        return changed

    def places(found: Any) -> list[list[Any]]:
        keys = list(found) if isinstance(found, dict) else [*range(len(found))] if isinstance(found, list) else []
        return [[key, *rest] for key in keys for rest in [[], *places(found[key])]]

    conversations: list[Document] = [
        {"messages": [request(ASKED), response(CALL), request(RETURNED), response(ANSWER, FORCED), request(TAKEN)]},
        {"session_id": "s", "turns": [turn(STEPS, SAID)]},
        {"messages": PYTHON},
        {"messages": DOTNET},
    ]
    variants = [with_value(each, place) for each in conversations for place in places(each)]
    assert len(read_traceweir(lines(*variants))) == len(variants)

"""The parts of messages, as the APIs of models write them, are read from spans, or are said not to be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.texts_in_values import question_in

Message = dict[str, Any]
ASKED: Message = {"role": "user", "content": "Weather?"}
IMAGE: Message = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}


def events_of(read: list[Message], wrote: list[Message]) -> dict[str, list[dict[str, Any]]]:
    """Returns the events of a model call by their type."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": json.dumps(read),
        "gen_ai.output.messages": json.dumps(wrote),
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for event in read_trace([span(1, 0, "chat", attributes)]).events:
        found.setdefault(event["type"], []).append(event)
    return found


def text_of(content: dict[str, Any] | None) -> str | None:
    return "\n".join(part["text"] for part in content["parts"]) if content else None


def said(role: str, *parts: Any) -> Message:
    return {"role": role, "content": list(parts)}


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (said("assistant", {"type": "refusal", "refusal": "I cannot help."}), "I cannot help."),
        ({"role": "assistant", "content": None, "refusal": "I cannot help."}, "I cannot help."),
        ({"role": "assistant", "content": None, "audio": {"transcript": "Rain.", "data": "QUJD"}}, "Rain."),
        (said("assistant", {"type": "output_audio", "transcript": "Rain."}), "Rain."),
        (
            said(
                "assistant",
                {"type": "text", "text": "It "},
                {"type": "text", "text": "rains.", "citations": [{"cited_text": "rain"}]},
            ),
            "It rains.",
        ),
        ({"role": "assistant", "content": "<think>Oslo...</think>Rain."}, "Rain."),
        ({"role": "assistant", "content": "[THINK]Oslo...[/THINK]Rain."}, "Rain."),
        (said("assistant", {"type": "thinking", "thinking": "Oslo..."}, {"type": "text", "text": "Rain."}), "Rain."),
        (said("assistant", {"reasoningContent": {"reasoningText": {"text": "Oslo"}}}, {"text": "Rain."}), "Rain."),
        (said("model", {"text": "Oslo...", "thought": True}, {"text": "Rain."}), "Rain."),
        (said("assistant", {"type": "compaction", "content": "Asked..."}, {"type": "text", "text": "Rain."}), "Rain."),
    ],
)
def test_an_answer_is_what_the_user_reads(message: Message, answer: str) -> None:
    (completed,) = events_of([ASKED], [message])["invocation.completed"]
    assert text_of(completed["final_response"]) == answer


@pytest.mark.parametrize(
    ("question", "text", "sentence"),
    [
        (said("user", IMAGE), None, "the question is no text: 1 part of type 'image_url'"),
        (
            said("user", {"type": "text", "text": "And this?"}, IMAGE, IMAGE),
            "And this?",
            "not all of the question is text: 2 parts of type 'image_url'",
        ),
        (
            said("user", {"text": "And this?"}, {"inline_data": {"mime_type": "image/png", "data": "QUJD"}}),
            "And this?",
            "not all of the question is text: 1 part of type 'inline_data'",
        ),
        (
            said("user", {"type": "text", "text": "And this?"}, {"type": "acme_widget", "payload": "x"}),
            "And this?",
            "not all of the question is text: 1 part of type 'acme_widget'",
        ),
        (
            said(
                "user", {"text": "And this?"}, {"guardContent": {"text": {"text": "x"}}}, {"cachePoint": {"ttl": "5m"}}
            ),
            "And this?",
            "not all of the question is text: 1 part of type 'guardContent'",
        ),
        (
            said("user", {"text": "And this?"}, {"text": None, "acmeWidget": {"x": 1}, "thoughtSignature": "QUJD"}),
            "And this?",
            "not all of the question is text: 1 part of type 'acmeWidget'",
        ),
    ],
)
def test_parts_of_a_question_that_are_no_text_are_named(question: Message, text: str | None, sentence: str) -> None:
    (started,) = events_of([question], [{"role": "assistant", "content": "Rain."}])["invocation.started"]
    assert (text_of(started.get("user_content")), started["missing"]) == (text, [sentence])


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (said("assistant", {"type": "hologram", "payload": "x"}), "the answer is no text: 1 part of type 'hologram'"),
        (
            {"type": "mcp_approval_request", "id": "a", "name": "delete", "arguments": "{}"},
            "the answer is not in this trace: its last model call asks for tools, whose results it does not contain",
        ),
        (
            {"role": "assistant", "content": "", "finish_reason": "content_filter"},
            "the answer is not in the spans: the model stopped before it, because of 'content_filter'",
        ),
    ],
)
def test_an_answer_without_text_is_said_to_be_one(message: Message, sentence: str) -> None:
    (completed,) = events_of([ASKED], [message])["invocation.completed"]
    assert "final_response" not in completed
    assert sentence in completed["missing"]
    assert not any("set the option" in each for each in completed["missing"])


CALL: Message = {"toolCallId": "c", "toolName": "look", "input": {"city": "Oslo"}}
ARGS = {"city": "Oslo"}


@pytest.mark.parametrize(
    ("history", "name", "args", "result"),
    [
        (
            [said("assistant", {"type": "tool-look", "state": "output-available", "output": {"t": 4}, **CALL})],
            "look",
            ARGS,
            {"response": {"t": 4}},
        ),
        (
            [said("assistant", {"type": "dynamic-tool", "state": "output-error", "errorText": "offline", **CALL})],
            "look",
            ARGS,
            {"error": "offline"},
        ),
        (
            [{"role": "assistant", "content": "", "toolInvocations": [{"state": "result", "result": "4 C", **CALL}]}],
            "look",
            ARGS,
            {"response": "4 C"},
        ),
        (
            [
                said("assistant", {"type": "tool-call", **CALL}),
                said("tool", {"type": "tool-result", "toolCallId": "c", "output": {"type": "json", "value": {"t": 4}}}),
            ],
            "look",
            ARGS,
            {"response": {"t": 4}},
        ),
        (
            [
                said("assistant", {"type": "tool-call", **CALL}),
                said(
                    "tool", {"type": "tool-result", "toolCallId": "c", "output": {"type": "error-text", "value": "x"}}
                ),
            ],
            "look",
            ARGS,
            {"error": "x"},
        ),
        (
            [
                {"type": "computer_call", "call_id": "c", "action": {"type": "click", "x": 1}},
                {"type": "computer_call_output", "call_id": "c", "output": "done"},
            ],
            "computer",
            {"type": "click", "x": 1},
            {"response": "done"},
        ),
        (
            [
                {"role": "assistant", "tool_calls": [{"id": "c", "custom": {"name": "run", "input": "ls"}}]},
                {"role": "tool", "tool_call_id": "c", "content": "a.txt"},
            ],
            "run",
            {"input": "ls"},
            {"response": "a.txt"},
        ),
        (
            [
                {"type": "ai", "content": "", "invalid_tool_calls": [{"id": "c", "name": "look", "args": "Oslo"}]},
                {"type": "tool", "tool_call_id": "c", "content": "not JSON", "status": "error"},
            ],
            "look",
            {"input": "Oslo"},
            {"error": "not JSON"},
        ),
    ],
)
def test_calls_and_results_are_read_in_every_form(
    history: list[Message], name: str, args: dict[str, Any], result: dict[str, Any]
) -> None:
    events = events_of([ASKED, *history], [{"role": "assistant", "content": "Four degrees."}])
    (called,) = events["tool.called"]
    (returned,) = events["tool.returned"]
    assert (called["name"], called["args"]) == (name, args)
    assert {key: returned[key] for key in result} == result


def test_a_tool_of_the_provider_is_read_from_the_blocks_of_langchain() -> None:
    blocks = [
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"q": "x"}},
        {"type": "server_tool_result", "tool_call_id": "s", "status": "success", "output": "found"},
        {"type": "text", "text": "Rain."},
    ]
    events = events_of([ASKED], [{"type": "ai", "content": blocks}])
    (called,) = events["tool.called"]
    (returned,) = events["tool.returned"]
    assert (called["args"], returned["response"]) == ({"q": "x"}, "found")


@pytest.mark.parametrize("kind", [{}, [], {"a": 1}, 7, None])
def test_a_part_whose_kind_is_no_text_ends_no_reading(kind: Any) -> None:
    part = {"type": kind, "value": "closed"}
    call = {"type": "tool_call", "id": "c1", "name": "hours", "arguments": {}}
    told = {"type": "tool_call_response", "id": "c1", "response": part}
    read = [ASKED, said("assistant", call), {"role": "tool", "parts": [told]}]
    read.append({"role": "user", "content": json.dumps([part])})
    found = events_of(read, [said("assistant", {"type": "text", "text": "Rain."})])
    assert text_of(found["invocation.completed"][0]["final_response"]) == "Rain."


@pytest.mark.parametrize(
    "content",
    ["data:image/png;base64,QUJD", [{"type": "text", "text": "data:image/png;base64,QUJD"}]],
    ids=["text", "part"],
)
def test_a_text_that_is_a_data_url_is_no_text(content: Any) -> None:
    events = events_of([{"role": "user", "content": content}], [{"role": "assistant", "content": content}])

    assert "base64" not in json.dumps(events)
    assert events["invocation.started"][0]["missing"][0] == "the question is no text: 1 part of type 'image'"
    assert "the answer is no text: 1 part of type 'image'" in events["invocation.completed"][0]["missing"]


def test_a_result_that_repeats_its_call_is_a_result() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "hours", "arguments": "{}"}}
    asked = {"role": "assistant", "tool_calls": [call]}
    told = {"role": "tool", "tool_call_id": "c1", "tool_calls": [call], "content": "closed"}
    found = events_of([ASKED, asked, told], [said("assistant", {"type": "text", "text": "No."})])
    assert [each["response"] for each in found["tool.returned"]] == ["closed"]


def test_blocks_of_bedrock_in_a_text_are_parts_and_no_text() -> None:
    # Strands writes the content of a message as JSON in an event.
    image = {"image": {"format": "png", "source": {"bytes": "QUJD"}}}
    thought = {"reasoningContent": {"reasoningText": {"text": "Oslo..."}}}
    cited = {"citationsContent": {"content": [{"text": "All day."}], "citations": [{"title": "Forecast"}]}}
    asked = {"role": "user", "content": json.dumps([{"text": "Weather?"}, image])}
    wrote = {"role": "assistant", "content": json.dumps([thought, {"text": "Rain."}, cited])}

    events = events_of([asked], [wrote])

    (started,) = events["invocation.started"]
    (completed,) = events["invocation.completed"]
    assert text_of(started["user_content"]) == "Weather?"
    assert text_of(completed["final_response"]) == "Rain.\nAll day."
    assert "not all of the question is text: 1 part of type 'image'" in str(events)
    assert "QUJD" not in str(events)


def test_the_parts_of_a_list_of_blocks_are_one_message() -> None:
    question = question_in([{"text": "Weather?"}, {"image": {"format": "png", "source": {"bytes": "QUJD"}}}])
    assert question == "Weather?"


def test_a_question_in_a_request_in_the_inputs_is_found() -> None:
    # A ResponsesAgent of MLflow has one argument, which is the request.
    assert question_in({"request": {"input": [{"role": "user", "content": "Weather?"}]}}) == "Weather?"

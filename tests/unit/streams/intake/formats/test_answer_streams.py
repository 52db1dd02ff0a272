"""Tests that the pieces of a streamed answer are one stored answer, and that a stored failure is a failed turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read, read_traceweir

from traceweir.scorers.base import MissingInput, Subject, recorded_calls, require_arguments

WEATHER = {"name": "weather", "args": {"city": "Oslo"}}


def chunk(delta: Document, finish: str | None = None, *, name: str = "c1", index: int = 0) -> Document:
    choice: Document = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": name, "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def call_piece(**function: Any) -> Document:
    return {"tool_calls": [{"index": 0, "function": function}]}


USAGE: Document = {"prompt_tokens": 3, "completion_tokens": 4}
OPENAI: tuple[Document, ...] = (
    {"id": "", "object": "chat.completion.chunk", "choices": [], "prompt_filter_results": []},
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "It "}),
    chunk({"content": "rains."}),
    chunk(
        {"tool_calls": [{"index": 0, "id": "k1", "type": "function", "function": {"name": "weather", "arguments": ""}}]}
    ),
    chunk(call_piece(arguments='{"city": ')),
    chunk(call_piece(arguments='"Oslo"}')),
    chunk({}, "tool_calls"),
    {"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": USAGE},
)


def block(index: int, **content: Any) -> Document:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, **content: Any) -> Document:
    return {"type": "content_block_delta", "index": index, "delta": content}


ANTHROPIC: tuple[Document, ...] = (
    {
        "type": "message_start",
        "message": {"id": "c1", "role": "assistant", "content": [], "usage": {"input_tokens": 3}},
    },
    block(0, type="thinking", thinking=""),
    delta(0, type="thinking_delta", thinking="They ask for the weather."),
    block(1, type="text", text=""),
    {"type": "ping"},
    delta(1, type="text_delta", text="It "),
    delta(1, type="text_delta", text="rains."),
    block(2, type="tool_use", id="k1", name="weather", input={}),
    delta(2, type="input_json_delta", partial_json='{"city": '),
    delta(2, type="input_json_delta", partial_json='"Oslo"}'),
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
)


def text_piece(index: int, text: str) -> Document:
    return {"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text}


CALL_ITEM = {"type": "function_call", "call_id": "k1", "name": "weather", "arguments": ""}
RESPONSES_BEGIN: tuple[Document, ...] = (
    {"type": "response.created", "response": {"id": "c1", "object": "response", "status": "in_progress", "output": []}},
    {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {"type": "message", "role": "assistant", "content": []},
    },
    text_piece(0, "It "),
    text_piece(0, "rains."),
    {"type": "response.output_item.added", "output_index": 1, "item": CALL_ITEM},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"city": '},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '"Oslo"}'},
)
OUTPUT = [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
    {**CALL_ITEM, "arguments": '{"city": "Oslo"}'},
]
TOKENS = {"input_tokens": 3, "output_tokens": 4}
RESPONSES: tuple[Document, ...] = (
    *RESPONSES_BEGIN,
    {
        "type": "response.completed",
        "response": {"id": "c1", "object": "response", "status": "completed", "output": OUTPUT, "usage": TOKENS},
    },
)


def candidate(*parts: Document, finish: str | None = None, **others: Any) -> Document:
    content: Document = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [content | ({"finishReason": finish} if finish else {})], "responseId": "c1", **others}


GEMINI: tuple[Document, ...] = (
    candidate({"text": "They ask", "thought": True}),
    candidate({"text": " for the weather.", "thought": True}),
    candidate({"text": "It "}),
    candidate({"text": "rains."}),
    candidate(
        {"functionCall": WEATHER}, finish="STOP", usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 4}
    ),
)
STREAMS = {"openai": OPENAI, "anthropic": ANTHROPIC, "responses": RESPONSES, "gemini": GEMINI}
EACH = pytest.mark.parametrize("pieces", STREAMS.values(), ids=STREAMS)


def sent_events(pieces: Sequence[Document]) -> str:
    named = (f"event: {piece['type']}\n" if "type" in piece else "" for piece in pieces)
    frames = (f"{name}data: {orjson.dumps(piece).decode()}\n\n" for name, piece in zip(named, pieces, strict=True))
    return "".join(frames) + "data: [DONE]\n"


@EACH
@pytest.mark.parametrize("written", [lambda pieces: lines(*pieces), sent_events, lambda p: orjson.dumps(p).decode()])
def test_the_pieces_of_a_stream_are_one_answer(pieces: Sequence[Document], written: Any) -> None:
    (found,) = invocations(written(pieces))

    assert answer(found) == "It rains."
    assert [(call.name, call.args) for call in found.tool_uses] == [("weather", {"city": "Oslo"})]
    assert not any("whole" in each for each in found.unread or ())
    tokens = found.reported_tokens
    assert tokens is not None
    assert (tokens.input_tokens, tokens.output_tokens) == (3, 4)


@EACH
def test_a_stream_that_is_cut_off_says_so(pieces: Sequence[Document]) -> None:
    shorter = pieces[:-1] if pieces is GEMINI else pieces[: len(pieces) - 3]
    (found,) = invocations(lines(*shorter))

    assert answer(found) is None
    assert str(found.intermediate_data).count("It rains.") == 1
    assert "the answer is not whole: pieces of its stream are missing" in (found.unread or ())


def test_of_an_answer_that_is_cut_off_no_metric_takes_a_part_for_the_whole() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "weather", "arguments": '{"x"'}}
    for pieces in ([chunk({"content": "It rains"})], [chunk({"content": "It rains"}), chunk({"tool_calls": [call]})]):
        (found,) = invocations(lines(*pieces))
        with pytest.raises(MissingInput) as missing:
            _ = Subject(invocation=found).response
        assert missing.value.cause == "not_recorded"
        with pytest.raises(MissingInput) as missing:
            recorded_calls(found)
        assert missing.value.cause == "not_recorded"
    assert [each.args for each in found.tool_uses] == [None]
    with pytest.raises(MissingInput, match="pieces of its stream are missing"):
        require_arguments(found)


def test_of_calls_that_are_cut_off_none_has_a_part_of_its_arguments() -> None:
    calls = [
        {"index": number, "id": name, "function": {"name": name, "arguments": '{"x"'}}
        for number, name in enumerate("ab")
    ]
    (found,) = invocations(lines(chunk({"tool_calls": calls})))

    assert [(call.name, call.args) for call in found.tool_uses] == [("a", None), ("b", None)]


def test_an_answer_that_is_cut_off_after_a_tool_of_the_provider_is_not_whole() -> None:
    said = {
        "type": "message",
        "role": "assistant",
        "id": "m",
        "content": [{"type": "output_text", "text": "I compute."}],
    }
    ran = {"type": "code_interpreter_call", "id": "c", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]}
    created = {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}}
    done = [
        {"type": "response.output_item.done", "output_index": number, "item": item}
        for number, item in enumerate([said, ran])
    ]
    (found,) = invocations(lines(created, *done))

    assert answer(found) is None
    assert NOT_WHOLE in (found.unread or ())
    assert [call.args for call in found.tool_uses] == [{"code": "1+1"}]


def test_a_stream_without_its_beginning_is_not_whole() -> None:
    (found,) = invocations(lines(*ANTHROPIC[6:]))

    assert "the answer is not whole: pieces of its stream are missing" in (found.unread or ())


def test_streams_that_are_mixed_are_answers_of_their_own() -> None:
    first = [chunk({"content": "A"}), chunk({"content": "B"}, "stop")]
    second = [chunk({"content": "1"}, name="c2"), chunk({"content": "2"}, "stop", name="c2")]

    assert [answer(each) for each in invocations(lines(first[0], second[0], second[1], first[1]))] == ["AB", "12"]


@EACH
def test_each_of_two_streams_is_an_answer(pieces: Sequence[Document]) -> None:
    again = [orjson.loads(orjson.dumps(piece).replace(b'"c1"', b'"c2"')) for piece in pieces]

    assert [answer(each) for each in invocations(lines(*pieces, *again))] == ["It rains."] * 2


GEMINI_USAGE: Document = {
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
    "modelVersion": "m",
    "responseId": "c1",
}
FURTHER: dict[str, tuple[Document, ...]] = {
    "OpenAI's usage with an empty choice": (
        *OPENAI[:-1],
        chunk({"role": "assistant", "content": ""}) | {"usage": USAGE},
    ),
    "OpenAI's reason again": (*OPENAI, chunk({}, "tool_calls")),
    "Gemini's reason again": (*GEMINI, candidate({"text": ""}, finish="STOP")),
    "Gemini's signature": (*GEMINI, candidate({"text": "", "thoughtSignature": "eA=="}, finish="STOP")),
    "Gemini's usage at the end": (*GEMINI[:-1], candidate({"functionCall": WEATHER}, finish="STOP"), GEMINI_USAGE),
    "Gemini's usage without an id": (
        *GEMINI[:-1],
        candidate({"functionCall": WEATHER}, finish="STOP"),
        {name: value for name, value in GEMINI_USAGE.items() if name != "responseId"},
    ),
    "Gemini's usage in the middle": (*GEMINI[:2], GEMINI_USAGE, *GEMINI[2:]),
}


@pytest.mark.parametrize("pieces", FURTHER.values(), ids=FURTHER)
def test_a_piece_without_content_neither_ends_nor_begins_a_stream(pieces: Sequence[Document]) -> None:
    (found,) = read(lines(*pieces))
    (turn,) = invocations(lines(*pieces))

    assert (found.problem, answer(turn), [call.name for call in turn.tool_uses]) == (None, "It rains.", ["weather"])
    assert NOT_WHOLE not in (turn.unread or ())
    tokens = turn.reported_tokens
    assert tokens is not None
    assert (tokens.input_tokens, tokens.output_tokens) == (3, 4)


def test_the_usage_of_gemini_alone_is_no_stream() -> None:
    assert [each.document.raw for each in read_traceweir(lines(GEMINI_USAGE))] == [orjson.dumps(GEMINI_USAGE)]


NOT_WHOLE = "the answer is not whole: pieces of its stream are missing"
OVERLOADED: Document = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_a_piece_after_the_end_of_a_message_is_not_joined_to_it() -> None:
    first, second = invocations(lines(*ANTHROPIC, {"type": "ping"}, delta(0, type="text_delta", text="other")))

    assert (answer(first), NOT_WHOLE in (first.unread or ())) == ("It rains.", False)
    assert (answer(second), NOT_WHOLE in (second.unread or ())) == (None, True)
    assert "other" in str(second.intermediate_data)


def test_an_error_after_the_end_of_a_message_is_refused_by_name() -> None:
    whole, failed = read_traceweir(lines(*ANTHROPIC, OVERLOADED))

    assert (whole.problem, bool(whole.records)) == (None, True)
    assert "looks like a stored error of a model's provider" in str(failed.problem)


BEGIN = ANTHROPIC[0]
OTHER = orjson.loads(orjson.dumps(BEGIN).replace(b'"c1"', b'"c2"'))
TEXT = block(0, type="text", text="")
STOP: Document = {"type": "content_block_stop", "index": 0}


@pytest.mark.parametrize(
    "beginning", [(BEGIN, OTHER, TEXT, TEXT), (BEGIN, TEXT, OTHER, TEXT)], ids=["before blocks", "after a block"]
)
def test_mixed_streams_of_anthropic_are_not_whole(beginning: Sequence[Document]) -> None:
    texts = [delta(0, type="text_delta", text=text) for text in ("A1", "B1", "A2", "B2")]
    found = invocations(lines(*beginning, *texts, STOP, STOP, *ANTHROPIC[-2:]))

    assert [answer(each) for each in found] == [None] * len(found)
    mixed = "the answer is not whole: pieces of another stream are mixed with its own"
    assert [mixed in (each.unread or ()) for each in found if "B2" in str(each.intermediate_data)] == [True]


def part_of_call(index: int | None, name: str | None, tool: str | None, arguments: Any) -> Document:
    function = {key: value for key, value in (("name", tool), ("arguments", arguments)) if value is not None}
    numbered = {} if index is None else {"index": index}
    return {"tool_calls": [numbered | ({} if name is None else {"id": name}) | {"function": function}]}


CALLS: dict[str, tuple[Document, ...]] = {
    "all have the number 0": (part_of_call(0, "a", "f", '{"x":1}'), part_of_call(0, "b", "g", '{"y":2}')),
    "the number 0, in pieces": (
        part_of_call(0, "a", "f", '{"x"'),
        part_of_call(0, None, None, ":1}"),
        part_of_call(0, "b", "g", '{"y"'),
        part_of_call(0, "", None, ":2}"),
    ),
    "no number": (
        part_of_call(None, "a", "f", '{"x"'),
        part_of_call(None, None, None, ":1}"),
        part_of_call(None, "b", "g", '{"y"'),
        part_of_call(None, "b", None, ":2}"),
    ),
    "no number and no id": (part_of_call(None, None, "f", '{"x":1}'), part_of_call(None, None, "g", '{"y":2}')),
    "an id that is repeated": (
        part_of_call(0, "a", "f", '{"x"'),
        part_of_call(1, "b", "g", '{"y"'),
        part_of_call(0, "a", "f", ":1}"),
        part_of_call(1, "b", "g", ":2}"),
    ),
    "the number 0 and no id": (part_of_call(0, None, "f", '{"x":1}'), part_of_call(0, "", "g", '{"y":2}')),
    "another id without a name": (
        part_of_call(0, "a", "f", '{"x"'),
        part_of_call(0, "other", None, ":1}"),
        part_of_call(1, "b", "g", '{"y":2}'),
    ),
    "objects": (part_of_call(0, "a", "f", {"x": 1}), part_of_call(1, "b", "g", {"y": 2})),
}


@pytest.mark.parametrize("deltas", CALLS.values(), ids=CALLS)
def test_calls_are_told_apart_by_number_and_id(deltas: Sequence[Document]) -> None:
    (found,) = invocations(lines(*map(chunk, deltas), chunk({}, "tool_calls")))

    assert [(call.name, call.args) for call in found.tool_uses] == [("f", {"x": 1}), ("g", {"y": 2})]


def test_a_second_choice_is_said_and_not_joined() -> None:
    pieces = [chunk({"content": "A"}, "stop"), chunk({"content": "B"}, "stop", index=1)]
    (found,) = invocations(lines(*pieces))

    assert answer(found) == "A"
    assert "1 further choice of the model was not read" in (found.unread or ())


def test_other_documents_of_the_file_are_read_between_streams() -> None:
    chat: Document = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]}

    assert [answer(each) for each in invocations(lines(chat, *OPENAI, chat))] == ["Yes?", "It rains.", "Yes?"]


@EACH
def test_comments_of_server_sent_events_are_skipped(pieces: Sequence[Document]) -> None:
    comment = ": PROCESSING\n\n"
    (found,) = invocations(comment + sent_events(pieces).replace("\n\n", "\n\n" + comment) + comment)

    assert answer(found) == "It rains."
    assert NOT_WHOLE not in (found.unread or ())


def test_comments_without_a_stream_are_refused() -> None:
    assert [each.document.raw for each in read_traceweir(": a\n{}\n: b\n")] == [b": a", b"{}", b": b"]


def test_lines_of_server_sent_events_without_a_stream_are_refused() -> None:
    assert [each.document.raw for each in read_traceweir("event: hello\nnot JSON\n")] == [b"event: hello", b"not JSON"]


QUESTION: Document = {"role": "user", "content": "Why?"}
FAILED: dict[str, tuple[Document, str]] = {
    "a request with its error": (
        {"messages": [QUESTION], "error": {"message": "slow down", "code": "rate_limit_exceeded"}},
        "rate_limit_exceeded: slow down",
    ),
    "a text": ({"messages": [QUESTION], "error": "timeout"}, "timeout"),
    "Anthropic's": (
        {
            "messages": [QUESTION],
            "error": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        },
        "overloaded_error: Overloaded",
    ),
    "a failed response": (
        {
            "object": "response",
            "status": "failed",
            "input": "Why?",
            "output": [],
            "error": {"code": "x", "message": "boom"},
        },
        "x: boom",
    ),
    "a cancelled response": (
        {"object": "response", "status": "cancelled", "input": "Why?", "output": [], "error": None},
        "the response is cancelled",
    ),
    "a failed stream": (
        {"type": "response.failed", "response": {"status": "failed", "input": "Why?", "error": {"message": "boom"}}},
        "boom",
    ),
}


@pytest.mark.parametrize(("document", "error"), FAILED.values(), ids=FAILED)
def test_a_stored_failure_is_a_failed_turn(document: Document, error: str) -> None:
    (found,) = invocations(lines(document))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found), found.error) == ("Why?", None, error)
    assert found.latency_seconds is None


def test_only_the_last_turn_of_a_failed_request_has_failed() -> None:
    told: Document = {"role": "assistant", "content": "Because."}
    first, second = invocations(lines({"messages": [QUESTION, told, QUESTION], "error": "timeout"}))

    assert (answer(first), first.error, second.error) == ("Because.", None, "timeout")


def test_a_transcript_that_has_its_answer_has_not_failed() -> None:
    told: Document = {"role": "assistant", "content": "Because."}
    (found,) = invocations(lines({"messages": [QUESTION, told], "error": "the label was lost"}))

    assert (answer(found), found.error) == ("Because.", None)


ERRORS: dict[str, Document] = {
    "OpenAI's": {"error": {"message": "bad", "type": "invalid_request_error"}},
    "Anthropic's": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "an event of a response": {"type": "error", "code": "x", "message": "boom", "sequence_number": 3},
    "a blocked prompt": {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}},
    "a line of OpenAI's batch": {
        "id": "b1",
        "custom_id": "q1",
        "response": {"status_code": 400, "body": {"error": {"message": "bad"}}},
        "error": None,
    },
    "an expired line": {"id": "b1", "custom_id": "q1", "response": None, "error": {"code": "batch_expired"}},
    "a line of Anthropic's batch": {"custom_id": "q1", "result": {"type": "errored", "error": {"type": "error"}}},
}


@pytest.mark.parametrize("document", ERRORS.values(), ids=ERRORS)
def test_a_failure_without_its_question_is_refused_by_name(document: Document) -> None:
    (problem,) = (str(each.problem) for each in read_traceweir(lines(document)))

    assert "looks like a stored error of a model's provider, without the question" in problem


@pytest.mark.parametrize(
    "line",
    [
        {
            "response": {
                "status_code": 200,
                "body": {"object": "chat.completion", "choices": [{"message": {"content": "A", "role": "assistant"}}]},
            }
        },
        {
            "result": {
                "type": "succeeded",
                "message": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "A"}]},
            }
        },
    ],
    ids=["openai", "anthropic"],
)
def test_the_answer_in_a_line_of_a_batch_is_read_under_its_custom_id(line: Document) -> None:
    (found,) = read(lines({"custom_id": "q1", **line}))

    assert {record.session_id for record in found.records} == {"q1"}
    assert [answer(each) for each in invocations(lines({"custom_id": "q1", **line}))] == ["A"]


@pytest.mark.parametrize(
    "document",
    [
        {
            "object": "chat.completion",
            "choices": [{"message": {"role": "assistant", "content": "A"}, "finish_reason": "length"}],
        },
        {"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "MAX_TOKENS"}]},
        {
            "object": "response",
            "output": OUTPUT[:1],
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
        },
    ],
    ids=["openai", "gemini", "responses"],
)
def test_an_answer_that_stopped_at_the_models_limit_says_so(document: Document) -> None:
    (found,) = invocations(lines(document))

    assert any("the model stopped at its limit" in each for each in found.unread or ())


CHAT: Document = {"messages": [QUESTION, {"role": "assistant", "content": "So."}]}
HOLDERS: dict[str, Any] = {
    "chunks": lambda pieces: lines({"session_id": "s", "chunks": pieces}, CHAT),
    "a key of another name": lambda pieces: lines({"run": "r", "stream": pieces}, CHAT),
    "a list on a line": lambda pieces: orjson.dumps(pieces).decode() + "\n" + lines(CHAT),
    "a list of lists": lambda pieces: orjson.dumps([pieces, CHAT]).decode(),
}


@EACH
@pytest.mark.parametrize("written", HOLDERS.values(), ids=HOLDERS)
def test_the_pieces_in_one_document_are_one_answer(pieces: Sequence[Document], written: Any) -> None:
    found, other = invocations(written(pieces))

    assert (answer(found), answer(other)) == ("It rains.", "So.")
    assert [(call.name, call.args) for call in found.tool_uses] == [("weather", {"city": "Oslo"})]


@EACH
@pytest.mark.parametrize("beside", [{"messages": [QUESTION]}, {"request": {"messages": [QUESTION]}}])
def test_the_question_beside_the_pieces_is_that_of_the_answer(pieces: Sequence[Document], beside: Document) -> None:
    (found,) = invocations(lines({"chunks": pieces, **beside}))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found)) == ("Why?", "It rains.")


@EACH
def test_pieces_in_one_document_that_are_cut_off_say_so(pieces: Sequence[Document]) -> None:
    shorter = pieces[:-1] if pieces is GEMINI else pieces[:-3]
    (found,) = invocations(lines({"chunks": shorter}))

    assert answer(found) is None
    assert NOT_WHOLE in (found.unread or ())


def test_a_list_with_something_else_than_pieces_is_no_stream() -> None:
    raw = orjson.dumps([*OPENAI, {"role": "user"}])

    assert [each.document.raw for each in read_traceweir(raw.decode() + "\n{}")] == [raw, b"{}"]


@EACH
def test_a_stream_that_is_cut_off_makes_no_trace_and_a_whole_one_does(pieces: Sequence[Document]) -> None:
    shorter = pieces[:-1] if pieces is GEMINI else pieces[: len(pieces) - 3]
    (cut,) = read(lines(*shorter))
    (whole,) = read(lines(*pieces))

    assert ["trace" in {record.kind for record in each.records} for each in (cut, whole)] == [False, True]


@pytest.mark.parametrize(
    "holder",
    [
        lambda document: document,
        lambda document: {"chunks": [document]},
        lambda document: {"key": "q-1", "response": document},
    ],
    ids=["a piece", "chunks", "a line of a batch"],
)
def test_an_answer_with_a_value_that_is_hard_to_write_is_read_or_refused(holder: Any) -> None:
    def called(inner: Any) -> str:
        part = {"functionCall": {"name": "f", "args": {"x": inner}}}
        return json.dumps(holder(candidate(part, {"text": "So."}, finish="STOP"))) + "\n"

    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    (found,) = invocations(called(12345678901234567890123))
    assert [call.args for call in found.tool_uses] == [{"x": 12345678901234567890123}]
    refused, other = read(called(deep) + lines({"messages": [QUESTION, {"role": "assistant", "content": "So."}]}))
    assert (refused.records, other.problem) == ([], None)
    assert refused.problem is not None

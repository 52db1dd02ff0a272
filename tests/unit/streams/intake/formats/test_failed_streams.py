"""Tests that a stream which its provider has ended with an error is a failed turn, or is refused with this error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read, read_traceweir

CREATED: Document = {
    "type": "response.created",
    "response": {"id": "r", "object": "response", "status": "in_progress", "output": []},
}
CREATED_WITH_QUESTION: Document = {**CREATED, "response": {**CREATED["response"], "input": "Why?"}}


def ended(kind: str, **response: Any) -> Document:
    return {"type": f"response.{kind}", "response": {"id": "r", "object": "response", "output": [], **response}}


FAILED = ended("failed", status="failed", error={"code": "server_error", "message": "boom"})
ERROR_OF_RESPONSES: Document = {"type": "error", "code": "server_error", "message": "boom", "sequence_number": 3}
ERROR_IN_OBJECT: Document = {"type": "error", "error": {"type": "server_error", "message": "boom"}}
ERROR: Document = {"error": {"code": "server_error", "message": "boom"}}
TEXT: Document = {"type": "response.output_text.delta", "output_index": 0, "delta": "It rains"}
MESSAGE: Document = {"type": "message_start", "message": {"id": "c", "role": "assistant", "content": []}}
BLOCK: Document = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
TEXT_OF_ANTHROPIC: Document = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "It rains"},
}


def chunk(text: str, finish: str | None = None, **others: Any) -> Document:
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "choices": choices, **others}


GEMINI: Document = {
    "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "It rains"}]}}],
    "responseId": "c",
}
STREAMS: dict[str, tuple[Document, ...]] = {
    "a failed response": (CREATED, TEXT, FAILED),
    "a failed response with its text": (
        CREATED,
        TEXT,
        ended(
            "failed",
            status="failed",
            error=FAILED["response"]["error"],
            output=[{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains"}]}],
        ),
    ),
    "an error of the Responses API": (CREATED, TEXT, ERROR_OF_RESPONSES),
    "its error in an object": (CREATED, TEXT, ERROR_IN_OBJECT),
    "its error, and the failed response": (CREATED, TEXT, ERROR_OF_RESPONSES, FAILED),
    "Anthropic's error": (MESSAGE, BLOCK, TEXT_OF_ANTHROPIC, ERROR_IN_OBJECT),
    "an error after chunks": (chunk("It rains"), ERROR),
    "an error in a chunk": (chunk("It "), chunk("rains", "error", error=ERROR["error"])),
    "an error after pieces of Gemini": (GEMINI, ERROR),
}


@pytest.mark.parametrize("pieces", STREAMS.values(), ids=STREAMS)
def test_a_stream_that_ends_with_an_error_is_a_failed_turn(pieces: Sequence[Document]) -> None:
    (found,) = invocations(lines(*pieces))

    assert (answer(found), found.error) == (None, "server_error: boom")
    assert str(found.intermediate_data).count("It rains") == 1
    # That it failed says why there is no answer.
    assert not any("answer" in each for each in found.unread or ())


WITHOUT_TEXT: dict[str, tuple[Document, ...]] = {
    name: tuple(each for each in pieces if each not in (TEXT, BLOCK, TEXT_OF_ANTHROPIC))
    for name, pieces in STREAMS.items()
    if pieces[0] in (CREATED, MESSAGE) and name != "a failed response with its text"
}


@pytest.mark.parametrize("pieces", WITHOUT_TEXT.values(), ids=WITHOUT_TEXT)
def test_an_error_before_any_text_is_refused_with_its_code_and_message(pieces: Sequence[Document]) -> None:
    (found,) = read(lines(*pieces))

    assert found.records == []
    assert "a stored error of a model's provider, without the question ('server_error: boom')" in str(found.problem)


def test_a_failed_response_with_its_question_is_a_failed_turn() -> None:
    (found,) = invocations(lines(CREATED_WITH_QUESTION, FAILED))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found), found.error) == ("Why?", None, "server_error: boom")


def test_a_cancelled_response_is_a_failed_turn_and_has_no_answer() -> None:
    (found,) = invocations(lines(CREATED, TEXT, ended("cancelled")))

    assert (answer(found), found.error) == (None, "the response is cancelled")


def test_of_a_stream_that_failed_no_call_has_a_part_of_its_arguments() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "weather", "arguments": '{"x"'}}
    piece = chunk("")
    piece["choices"][0]["delta"] = {"tool_calls": [call]}
    (found,) = invocations(lines(piece, ERROR))

    assert ([each.args for each in found.tool_uses], found.error) == ([None], "server_error: boom")
    assert "the arguments of the call of tool 'weather' are not whole: the model's provider has failed" in (
        found.unread or ()
    )


@pytest.mark.parametrize(
    "documents",
    [(chunk("It rains."), chunk("", "stop"), ERROR), (chunk("A"), {**chunk("B"), "id": "d"}, ERROR)],
    ids=["after the end", "of one of two streams"],
)
def test_an_error_that_ends_no_known_stream_is_refused_by_name(documents: Sequence[Document]) -> None:
    *_, last = read_traceweir(lines(*documents))

    assert "looks like a stored error of a model's provider, without the question ('server_error: boom')" in str(
        last.problem
    )


def test_a_prompt_that_was_blocked_is_a_failed_turn() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    (found,) = invocations(lines({"contents": [{"parts": [{"text": "Why?"}]}], **blocked}))

    assert found.error == "the prompt was blocked: SAFETY"
    assert "('the prompt was blocked: SAFETY')" in str(read_traceweir(lines(blocked))[0].problem)


def test_the_error_in_a_refusal_has_no_secret_no_control_character_and_a_bounded_length() -> None:
    key = "sk-proj-" + "a1B2" * 10
    (found,) = read_traceweir(lines({"error": {"message": f"bad\nkey {key} {'x' * 5_000}", "code": "no"}}))

    problem = str(found.problem)
    assert "no: bad" in problem
    assert "\n" not in problem
    assert key not in problem
    assert len(problem) < 600


def test_a_stored_answer_that_ended_with_an_error_says_so() -> None:
    choice = {"message": {"role": "assistant", "content": "It"}, "finish_reason": "error"}
    (found,) = invocations(lines({"object": "chat.completion", "choices": [choice]}))

    assert "not all of the answer is there: the model stopped because of 'error'" in (found.unread or ())

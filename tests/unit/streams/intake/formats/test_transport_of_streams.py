"""Tests that what a server or a logger adds to a stream, or takes from its texts, loses no part of the answers."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read, read_traceweir


def chunk(text: str, finish: str | None = None, *, name: Any = "c") -> Document:
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]
    return {"id": name, "object": "chat.completion.chunk", "choices": choices}


BEGIN = chunk("It ")
END = chunk("rains.", "stop")


@pytest.mark.parametrize("blank", ["data:", "data: "])
def test_a_frame_without_data_between_the_pieces_is_skipped(blank: str) -> None:
    text = f"data: {orjson.dumps(BEGIN).decode()}\n\n{blank}\n\ndata: {orjson.dumps(END).decode()}\n\ndata: [DONE]\n"

    (invocation,) = invocations(text)

    assert answer(invocation) == "It rains."
    assert not any("pieces" in each for each in invocation.unread or ())


@pytest.mark.parametrize("event", ["", "event: metadata\n"])
def test_another_frame_between_the_pieces_is_a_document_and_ends_no_stream(event: str) -> None:
    other = f'{event}data: {{"run_id": "r"}}\n\n'
    text = f"data: {orjson.dumps(BEGIN).decode()}\n\n{other}data: {orjson.dumps(END).decode()}\n\n"

    unknown, whole = read_traceweir(text)

    assert unknown.document.raw == b'{"run_id": "r"}'
    assert "It rains." in str(whole.records)
    assert "pieces" not in str(whole.records)


def test_streams_whose_ids_are_numbers_are_told_apart() -> None:
    text = lines(
        chunk("It ", name=1), chunk("Sun", name=2), chunk("rains.", "stop", name=1), chunk("!", "stop", name=2)
    )

    assert [answer(each) for each in invocations(text)] == ["It rains.", "Sun!"]


def test_a_character_that_two_pieces_share_is_whole_again() -> None:
    text = lines(chunk("Hi HIGH"), chunk("LOW", "stop")).replace("HIGH", "\\ud83d").replace("LOW", "\\ude00")

    (found,) = read(text)

    assert found.problem is None
    assert answer(invocations(text)[0]) == "Hi 😀"


STORED: Document = {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "Hi HIGH"}}]}


@pytest.mark.parametrize(
    "document",
    [
        chunk("Hi HIGH", "stop"),
        {"messages": [{"role": "user", "content": "Why?"}], "chunks": [chunk("Hi HIGH", "stop")]},
        {"custom_id": "q", "response": {"status_code": 200, "body": STORED}},
    ],
    ids=["a piece", "a list of pieces", "a line of a batch"],
)
def test_half_a_character_in_an_answer_is_said(document: Document) -> None:
    (found,) = read(lines(document).replace("HIGH", "\\ud83d"))

    assert "half of a surrogate pair is no text and counts as U+FFFD: 1 place" in str(found.problem)
    assert found.records


def test_a_value_that_is_no_json_in_a_line_of_a_batch_is_said() -> None:
    document = {"custom_id": "q", "response": {"status_code": 200, "body": {**STORED, "confidence": "NAN"}}}

    (found,) = read(lines(document).replace('"NAN"', "NaN"))

    assert "NaN and Infinity are no JSON and count as null: 1 value" in str(found.problem)


@pytest.mark.parametrize(
    "beside",
    [
        {"prompt": "Why?", "chunks": [BEGIN, END]},
        {"request": {"prompt": "Why?"}, "chunks": [BEGIN, END]},
        {"input": "Why?", "output": [BEGIN, END]},
        {"input": [{"role": "user", "content": "Why?"}], "output": [BEGIN, END]},
        {"messages": [{"role": "user", "content": "Why?"}], "response": [BEGIN, END]},
    ],
    ids=["a prompt", "a prompt in a request", "an input", "messages in an input", "messages beside the response"],
)
def test_what_a_log_has_of_the_question_beside_the_pieces_is_read(beside: Document) -> None:
    (invocation,) = invocations(lines(beside))

    assert invocation.user_content is not None
    assert invocation.user_content.text == "Why?"
    assert answer(invocation) == "It rains."


@pytest.mark.parametrize("prompt", [["Why?"], [1, 2, 3]])
def test_a_prompt_that_is_no_text_does_not_cost_the_answer(prompt: Any) -> None:
    (invocation,) = invocations(lines({**STORED, "prompt": prompt}))

    assert answer(invocation) == "Hi HIGH"


IMAGE: Document = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}


@pytest.mark.parametrize(
    "document",
    [
        {"choices": [{"message": {"role": "assistant", "content": "Here.", "images": [IMAGE]}}]},
        {
            "object": "chat.completion",
            "chunks": [
                chunk("Here."),
                {**BEGIN, "choices": [{"index": 0, "delta": {"images": [IMAGE]}, "finish_reason": "stop"}]},
            ],
        },
    ],
    ids=["stored", "streamed"],
)
def test_images_beside_the_text_of_an_answer_are_named(document: Document) -> None:
    (invocation,) = invocations(lines({"messages": [{"role": "user", "content": "Draw."}], **document}))

    assert answer(invocation) == "Here."
    assert "not all of the answer is text: 1 part of type 'image'" in (invocation.unread or ())


@pytest.mark.parametrize(("status", "said"), [("completed", "Hello."), ("cancelled", None)])
def test_the_response_of_the_realtime_api_ends_with_its_status(status: str, said: str | None) -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "audio", "transcript": "Hello."}]}]
    response = {"object": "realtime.response", "id": "r", "status": status, "output": output}

    (invocation,) = invocations(
        lines({"type": "response.created", "response": {"id": "r"}}, {"type": "response.done", "response": response})
    )

    assert answer(invocation) == said
    assert not any("pieces" in each for each in invocation.unread or ())


@pytest.mark.parametrize("name", ["outputs", "response"])
def test_a_row_keeps_its_question_beside_the_pieces_of_its_answer(name: str) -> None:
    (found,) = read_traceweir(lines({"request_id": "r1", "inputs": {"question": "Why?"}, name: [BEGIN, END]}))

    recorded = str(found.records)
    assert found.problem is None
    assert "Why?" in recorded
    assert "It rains." in recorded

"""Tests that each line of a batch is an answer, a failed turn, or refused with what it is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read, read_traceweir

QUESTION: Document = {"role": "user", "content": "Why?"}
CONTENTS = [{"role": "user", "parts": [{"text": "Why?"}]}]
COMPLETION: Document = {
    "id": "c",
    "object": "text_completion",
    "choices": [{"index": 0, "text": "So.", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
CANDIDATES: Document = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "So."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
}
MODEL_INPUT: Document = {"anthropic_version": "bedrock-2023-05-31", "messages": [QUESTION]}
MESSAGE: Document = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "So."}]}
CONVERSE: Document = {"output": {"message": {"role": "assistant", "content": [{"text": "So."}]}}}


def openai(body: Any, status: int = 200) -> Document:
    return {"id": "b", "custom_id": "q-1", "response": {"status_code": status, "body": body}, "error": None}


ANSWERED: dict[str, tuple[Document, str | None]] = {
    "an older completion of OpenAI": (openai(COMPLETION), None),
    "Gemini": ({"key": "q-1", "response": CANDIDATES}, None),
    "Gemini with the request": ({"key": "q-1", "request": {"contents": CONTENTS}, "response": CANDIDATES}, "Why?"),
    "a message in Bedrock": ({"recordId": "q-1", "modelInput": MODEL_INPUT, "modelOutput": MESSAGE}, "Why?"),
    "Bedrock's own form": ({"recordId": "q-1", "modelInput": MODEL_INPUT, "modelOutput": CONVERSE}, "Why?"),
    "a completion in Bedrock": (
        {"recordId": "q-1", "modelOutput": {"choices": [{"message": {"role": "assistant", "content": "So."}}]}},
        None,
    ),
}


@pytest.mark.parametrize(("line", "question"), ANSWERED.values(), ids=ANSWERED)
def test_the_answer_of_a_line_is_read_in_a_session_of_its_id(line: Document, question: str | None) -> None:
    (found,) = read(lines(line))
    (turn,) = invocations(lines(line))

    assert {record.session_id for record in found.records if record.kind == "event"} == {"q-1"}
    assert answer(turn) == "So."
    assert (turn.user_content.text if turn.user_content else None) == question


FAILED: dict[str, tuple[Document, str]] = {
    "Bedrock": (
        {"recordId": "q-1", "modelInput": MODEL_INPUT, "error": {"errorCode": 400, "errorMessage": "bad"}},
        "400: bad",
    ),
    "Gemini": (
        {"key": "q-1", "request": {"contents": CONTENTS}, "error": {"code": 400, "message": "bad"}},
        "400: bad",
    ),
    "Vertex AI": ({"status": "Bad Request", "request": {"contents": CONTENTS}, "response": {}}, "Bad Request"),
    "a blocked prompt": (
        {"key": "q-1", "request": {"contents": CONTENTS}, "response": {"promptFeedback": {"blockReason": "SAFETY"}}},
        "the prompt was blocked: SAFETY",
    ),
}


@pytest.mark.parametrize(("line", "error"), FAILED.values(), ids=FAILED)
def test_a_failed_line_with_its_question_is_a_failed_turn(line: Document, error: str) -> None:
    (found,) = invocations(lines(line))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found), found.error) == ("Why?", None, error)


ERRORS: dict[str, tuple[Document, str]] = {
    "a text and the status 500": (openai("upstream", 500), "500: upstream"),
    "no body and the status 500": (openai({}, 500), "500: the request has failed"),
    "a detail and the status 422": (openai({"detail": "no model"}, 422), "422: no model"),
    "a message and the status 429": (openai({"object": "error", "message": "slow"}, 429), "429: slow"),
    "Gemini's error": ({"key": "q-1", "error": {"code": 400, "message": "bad"}}, "400: bad"),
    "Gemini's status": ({"key": "q-1", "status": {"code": 400, "message": "bad"}}, "400: bad"),
    "an expired request": ({"custom_id": "q-1", "result": {"type": "expired"}}, "the request is expired"),
    "Bedrock's error": ({"recordId": "q-1", "error": {"errorCode": 400, "errorMessage": "bad"}}, "400: bad"),
}


@pytest.mark.parametrize(("line", "error"), ERRORS.values(), ids=ERRORS)
def test_a_failed_line_without_its_question_is_refused_with_its_error(line: Document, error: str) -> None:
    (problem,) = (str(each.problem) for each in read_traceweir(lines(line)))

    assert f"looks like a stored error of a model's provider, without the question ('{error}')" in problem


EMBEDDINGS: Document = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
MODERATION: Document = {"id": "m", "model": "m", "results": [{"flagged": False, "categories": {}}]}
IMAGES: Document = {"created": 1, "data": [{"b64_json": "QUJD"}]}
WITHOUT_ANSWER: dict[str, tuple[Document, str]] = {
    "a text": (openai("no"), "its response.body is 'no'"),
    "an empty object": (openai({}), "its response.body is an object with no keys"),
    "embeddings": (openai(EMBEDDINGS), "its response.body is an object with 'object', 'data'"),
    "moderation": (openai(MODERATION), "its response.body is an object with 'id', 'model', 'results'"),
    "images": (openai(IMAGES), "its response.body is an object with 'created', 'data'"),
    "a transcription": (openai({"text": "Hello"}), "its response.body is an object with 'text'"),
    "nothing": ({"id": "b", "custom_id": "q", "response": None, "error": None}, "its response is missing or null"),
    "a result that is a text": ({"custom_id": "q", "result": "no"}, "its result is 'no'"),
    "another response of Gemini": ({"key": "q", "response": {"x": 1}}, "its response is an object with 'x'"),
    "another model of Bedrock": ({"recordId": "q", "modelOutput": {"embedding": []}}, "its modelOutput is an object"),
}


@pytest.mark.parametrize(("line", "shown"), WITHOUT_ANSWER.values(), ids=WITHOUT_ANSWER)
@pytest.mark.parametrize("reads", [read, read_traceweir], ids=["both", "traceweir"])
def test_a_line_without_an_answer_is_refused_with_what_it_has(line: Document, shown: str, reads: Any) -> None:
    (found,) = reads(lines(line))

    assert found.records == []
    assert f"looks like a line of a batch without the answer of a chat ({shown}" in str(found.problem)


@pytest.mark.parametrize("document", [EMBEDDINGS, MODERATION, IMAGES], ids=["embeddings", "moderation", "images"])
def test_a_result_of_an_api_without_a_chat_is_refused_by_name(document: Document) -> None:
    (found,) = read_traceweir(lines(document))

    assert "looks like a result of embeddings, moderation, images or audio" in str(found.problem)


INPUTS: dict[str, Document] = {
    "OpenAI": {"custom_id": "q", "method": "POST", "url": "/v1/responses", "body": {"input": "Why?"}},
    "Anthropic": {"custom_id": "q", "params": {"messages": [QUESTION]}},
    "Gemini": {"key": "q", "request": {"contents": CONTENTS}},
    "Vertex AI": {"request": {"contents": CONTENTS}},
    "Bedrock": {"recordId": "q", "modelInput": MODEL_INPUT},
}


@pytest.mark.parametrize("document", INPUTS.values(), ids=INPUTS)
def test_a_line_of_the_input_of_a_batch_is_refused_by_name(document: Document) -> None:
    (found,) = read_traceweir(lines(document))

    assert found.records == []
    assert "looks like a line of the input of a batch, which has no answer: pass the file of its output" in str(
        found.problem
    )


def test_an_older_completion_is_an_answer_with_its_tokens() -> None:
    pieces = [
        {**COMPLETION, "usage": None, "choices": [{"index": 0, "text": text, "finish_reason": finish}]}
        for text, finish in (("It ", None), ("rains.", None), ("", "stop"))
    ]
    for documents, expected in (([COMPLETION], "So."), (pieces, "It rains.")):
        (found,) = invocations(lines(*documents))
        assert (answer(found), found.unread) == (expected, None)
    (found,) = invocations(lines({**COMPLETION, "prompt": "Why?"}))
    assert found.user_content is not None
    assert (found.user_content.text, answer(found)) == ("Why?", "So.")
    (found,) = invocations(lines(pieces[0]))
    assert found.unread
    assert "the answer is not whole: pieces of its stream are missing" in found.unread


def test_a_message_about_a_batch_line_has_neither_secrets_nor_long_keys() -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    bodies: list[Any] = [f"Bad key {secret}", {"k" * 10_000: 1}, {secret: 1}]
    found = read_traceweir(
        lines(*({"custom_id": "q", "response": {"status_code": 200, "body": body}} for body in bodies))
    )

    said = [str(each.problem) for each in found]
    assert all("sk-proj" not in each for each in said)
    assert all(len(each) < 600 for each in said)

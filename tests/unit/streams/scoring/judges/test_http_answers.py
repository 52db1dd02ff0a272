"""Tests what litellm gets of an answer: nothing that it cannot read, and no body that takes it seconds."""

from __future__ import annotations

import json

import httpx
import pytest

from traceweir.streams.scoring.judges.http_answers import MAX_QUOTED_BYTES, readable_answer

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
LONG = "x" * 300_000
ANSWER = {"choices": [{"index": 0, "message": {"content": LONG}}]}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, json.dumps({"error": {"message": LONG}})),
        (200, json.dumps({"error": {"message": LONG}})),
        (200, LONG),
        (200, '{"choices": ' + "[" * 300_000),
    ],
)
def test_a_body_that_litellm_would_quote_in_an_error_is_cut(status: int, body: str) -> None:
    found = readable_answer(httpx.Response(status, text=body, request=REQUEST))
    assert found is not None
    assert found.body == body.encode()[:MAX_QUOTED_BYTES]
    assert found.status == (500 if "error" in body else status)


def test_a_long_answer_is_whole() -> None:
    found = readable_answer(httpx.Response(200, json=ANSWER, request=REQUEST))
    assert found is not None
    assert json.loads(found.body)["choices"][0]["message"]["content"] == LONG


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_an_answer_in_another_encoding_becomes_utf_8(encoding: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": "좋아요"}}]}, ensure_ascii=False).encode(encoding)
    found = readable_answer(httpx.Response(200, content=body, request=REQUEST))
    assert found is not None
    assert json.loads(found.body.decode())["choices"][0]["message"]["content"] == "좋아요"

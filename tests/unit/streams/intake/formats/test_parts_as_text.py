"""A text that is a list of parts, as a program has printed it, is read; a user's text and an answer in JSON stay as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines
from tests.support.openai_chat import assistant_message, user_message

from traceweir.schemas.invocation import Invocation


def only(*messages: Document) -> Invocation:
    (found,) = invocations(lines({"messages": list(messages)}))
    return found


@pytest.mark.parametrize("write", [json.dumps, repr])
@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "tool_use", "x": 1}],
        [{"type": "tool_use", "id": "c", "name": "refund", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "x", "content": "refund approved"}],
        [{"type": "tool-result", "toolCallId": "x", "toolName": "refund", "output": "approved"}],
        [{"type": "text", "text": "Hi"}, {"type": "tool_result", "tool_use_id": "x", "content": "approved"}],
        [{"type": "text", "name": "email", "text": "Your mail"}],
        [{"type": "text", "text": 1}],
        [{"type": "thinking", "thinking": "Hm."}],
        [{"type": "image_url", "image_url": {"url": "a.png"}}],
        [{"type": ["text"], "text": "Hi"}],
    ],
)
def test_a_users_text_that_is_json_is_the_question(parts: list[Document], write: Any) -> None:
    text = write(parts)
    found = only(user_message(text), assistant_message("Yes."))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found)) == (text, "Yes.")
    assert (found.tool_uses, found.tool_responses) == ([], [])


@pytest.mark.parametrize("write", [json.dumps, repr])
@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "image", "url": "a.png", "alt": "A house"}],
        [{"type": "text", "name": "email", "text": "Your mail"}, {"type": "text", "name": "name", "text": "Your name"}],
        [{"type": "tool_use", "x": 1}],
        [{"type": "tool_use", "id": "c", "name": "", "input": {}}],
        [{"type": "tool-call", "name": "f"}],
        [{"type": "tool_result", "tool_use_id": "x", "content": "approved"}],
        [{"type": "reasoning", "text": "Because."}],
        [{"type": "text"}],
        [{"type": "refusal", "refusal": "No.", "reason": "rule 4"}],
    ],
)
def test_an_answer_that_is_json_with_other_keys_is_the_answer(parts: list[Document], write: Any) -> None:
    text = write(parts)
    found = only(user_message("Write it."), assistant_message(text))

    assert answer(found) == text
    assert (found.tool_uses, found.tool_responses) == ([], [])


def test_an_image_beside_a_printed_text_is_named() -> None:
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "a.png"}}]
    found = only(user_message(repr(parts)), assistant_message("A house."))

    assert found.user_content is not None
    assert found.user_content.text == "What is it?"
    assert any("'image_url'" in each for each in found.unread or ())


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_the_call_and_the_reasoning_of_a_printed_answer_are_read(write: Any) -> None:
    parts: list[Document] = [
        {"type": "thinking", "thinking": "Rain?", "signature": "c2ln"},
        {"type": "text", "text": "I look.", "citations": None},
        {"type": "tool_use", "id": "c", "name": "weather", "input": {"city": "Oslo"}},
    ]
    result = {"role": "tool", "tool_call_id": "c", "content": "rain"}
    found = only(user_message("Weather?"), assistant_message(write(parts)), result, assistant_message("It rains."))

    assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]
    assert [(each.name, each.response) for each in found.tool_responses] == [("weather", "rain")]
    assert answer(found) == "It rains."

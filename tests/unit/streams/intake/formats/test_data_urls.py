"""Tests that a text that is nothing but a data URL is named as a part that is no text."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.chat_files import answer, invocations, lines
from tests.support.openai_chat import assistant_message, tool_calls, tool_result, user_message

URL = "data:image/png;base64,QUJD"
CONTENTS: dict[str, Any] = {
    "a text": URL,
    "a text with blanks": f" {URL}\n",
    "a list": [URL],
    "a part": [{"type": "text", "text": URL}],
    "a part of Gemini": [{"text": URL}],
    "an object": {"type": "text", "text": URL},
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_message_that_is_a_data_url_has_no_text(content: Any) -> None:
    (found,) = invocations(lines({"messages": [user_message(content), assistant_message(content)]}))

    for part in ("question", "answer"):
        assert f"the {part} is no text: 1 part of type 'image'" in (found.unread or ())
    assert "base64" not in found.model_dump_json()


@pytest.mark.parametrize("content", [*CONTENTS.values(), {"type": "image_url", "image_url": {"url": URL}}])
def test_a_result_that_is_a_data_url_has_no_text(content: Any) -> None:
    asked = [user_message("go"), tool_calls(("c", "draw", "{}"))]
    (found,) = invocations(lines({"messages": [*asked, tool_result("c", content), assistant_message("ok")]}))

    assert any("result of tool 'draw' is" in each for each in found.unread or ())
    assert "base64" not in found.model_dump_json()


def test_a_text_with_a_data_url_in_it_is_a_text() -> None:
    (found,) = invocations(
        lines({"messages": [user_message(f"What is {URL}?"), assistant_message(f"{URL} is a boat")]})
    )

    assert answer(found) == f"{URL} is a boat"

"""Tests that every reader of messages takes the same kinds of parts for reasoning."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from traceweir.schemas.reasoning_text import REASONING_KINDS
from traceweir.schemas.row_texts import response_text
from traceweir.streams.intake.formats.chat_content import content_of
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.message_content import read_content


@pytest.mark.parametrize("kind", sorted(REASONING_KINDS))
def test_a_part_of_reasoning_is_no_text_in_rows_chats_and_spans(kind: str) -> None:
    parts: list[JsonValue] = [{"type": kind, "text": "Hm."}, {"type": "text", "text": "Oslo."}]
    message = SpanMessage("assistant")
    read_content(parts, message, 0)
    assert response_text({"role": "assistant", "content": parts}) == "Oslo."
    assert content_of(parts, "content", InputError).text == "Oslo."
    assert message.texts == ["Oslo."]


def test_a_type_that_is_no_text_is_no_kind_of_reasoning() -> None:
    assert response_text({"role": "assistant", "content": [{"type": ["thinking"], "text": "Oslo."}]}) == "Oslo."

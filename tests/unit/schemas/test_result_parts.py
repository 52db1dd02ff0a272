"""Parts of results that are no text are taken out and counted, and records that only look like them stay."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from traceweir.schemas.result_parts import read_result

BYTES = "iVBORw0KGgoAAAANSUhEUg=="
IMAGE = {"type": "image", "data": BYTES, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": BYTES, "mimeType": "audio/wav"}
BLOB = {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": BYTES}}
NOTE = {"type": "resource", "resource": {"uri": "file:///a.md", "text": "a note"}}
TEXT = {"type": "text", "text": "a plan of hall 7"}


@pytest.mark.parametrize(
    ("result", "kept", "unread"),
    [
        ([IMAGE], "", {"image": 1}),
        ([TEXT, IMAGE, AUDIO, BLOB], "a plan of hall 7", {"image": 1, "audio": 1, "resource": 1}),
        ([IMAGE, NOTE], "a note", {"image": 1}),
        (IMAGE, "", {"image": 1}),
        ({"content": [TEXT, IMAGE, IMAGE]}, "a plan of hall 7", {"image": 2}),
        ({"content": [IMAGE], "isError": False, "_meta": {}}, "", {"image": 1}),
        ({"content": [TEXT, IMAGE], "isError": True}, {"isError": True, "content": TEXT["text"]}, {"image": 1}),
        ({"content": [IMAGE], "structuredContent": {"hall": 7}}, {"hall": 7}, {"image": 1}),
        ({"content": [IMAGE], "structuredContent": {"result": [IMAGE]}}, "", {"image": 1}),
        ({"contents": [{"uri": "file:///a", "blob": BYTES}]}, {"contents": ""}, {"blob": 1}),
        ({"result": [IMAGE, TEXT]}, {"result": TEXT["text"]}, {"image": 1}),
        ({"hall": 7, "plan": IMAGE}, {"hall": 7, "plan": ""}, {"image": 1}),
        ([{"hall": 7}, IMAGE], [{"hall": 7}], {"image": 1}),
        (json.dumps([TEXT, IMAGE]), TEXT["text"], {"image": 1}),
        (json.dumps({"content": [IMAGE]}), "", {"image": 1}),
        # The APIs of Anthropic, OpenAI, Gemini, Bedrock, the AI SDK, LangChain and the standard.
        ([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BYTES}}], "", {"image": 1}),
        ([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BYTES}"}}], "", {"image_url": 1}),
        ([{"type": "input_image", "image_url": f"data:image/png;base64,{BYTES}"}], "", {"input_image": 1}),
        (
            {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{BYTES}"},
            "",
            {"computer_screenshot": 1},
        ),
        ([{"inlineData": {"mimeType": "image/png", "data": BYTES}}], "", {"inlineData": 1}),
        ([{"image": {"format": "png", "source": {"bytes": BYTES}}}, {"text": "hall"}], "hall", {"image": 1}),
        ([{"type": "media", "data": BYTES, "mediaType": "image/png"}], "", {"media": 1}),
        ([{"type": "image-data", "data": BYTES, "mediaType": "image/png"}], "", {"image-data": 1}),
        ([{"type": "image", "base64": BYTES, "mime_type": "image/png"}], "", {"image": 1}),
        ({"kind": "binary", "data": BYTES, "media_type": "image/png"}, "", {"binary": 1}),
        ([{"type": "image", "image": BYTES, "mimeType": "image/png"}], "", {"image": 1}),
        ([{"type": "data", "uri": f"data:image/png;base64,{BYTES}"}], "", {"data": 1}),
        ([{"type": "blob", "mime_type": "image/png", "content": BYTES}], "", {"blob": 1}),
    ],
)
def test_parts_that_are_no_text_are_counted_and_not_kept(result: Any, kept: Any, unread: dict[str, int]) -> None:
    found = read_result(result)
    assert (found.value, found.unread) == (kept, Counter(unread))
    assert BYTES not in json.dumps(found.value)


@pytest.mark.parametrize(
    "result",
    [
        "a text",
        "[see below",
        7,
        None,
        [TEXT],
        {"content": [TEXT], "isError": True},
        {"type": "video", "title": "Oslo", "url": "https://video.test/1"},
        [{"type": "image", "title": "Oslo", "source": {"name": "Archive"}}],
        {"type": "document", "data": "2026-01-01", "title": "A lease"},
        {"type": "document", "source": {"type": "text", "data": "a lease"}},
        {"image": "https://image.test/1", "price": 7},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"file": {"name": "a.pdf"}},
        [{"type": "file", "name": "a.csv", "mimeType": "text/csv", "url": "https://drive.test/1"}],
        {"kind": "image", "name": "a.png"},
        json.dumps([{"type": "image", "title": "Oslo"}]),
    ],
)
def test_a_result_without_such_parts_stays_as_it_is(result: Any) -> None:
    assert read_result(result) == (result, Counter())

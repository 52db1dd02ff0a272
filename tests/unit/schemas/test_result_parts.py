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
        (f" data:image/png;base64,{BYTES}\n", "", {"image": 1}),
        (f"data:application/pdf;base64,{BYTES}", "", {"data": 1}),
    ],
)
def test_parts_that_are_no_text_are_counted_and_not_kept(result: Any, kept: Any, unread: dict[str, int]) -> None:
    found = read_result(result)
    assert (found.value, found.unread) == (kept, Counter(unread))
    assert BYTES not in json.dumps(found.value)


URL = f"data:image/png;base64,{BYTES}"
LAMP = {"type": "product", "title": "Lamp", "price": 5}


@pytest.mark.parametrize(
    ("result", "kept", "unread"),
    [
        ({**LAMP, "image": URL}, {**LAMP, "image": ""}, {"image": 1}),
        ({"products": [{**LAMP, "image": URL}, LAMP]}, {"products": [{**LAMP, "image": ""}, LAMP]}, {"image": 1}),
        ({"title": "Lamp", "image": URL}, {"title": "Lamp", "image": ""}, {"image": 1}),
        ({"type": "text", "text": "hall 7", "url": URL}, {"type": "text", "text": "hall 7", "url": ""}, {"url": 1}),
        ({"pages": [URL, "hall 7"]}, {"pages": ["", "hall 7"]}, {"data": 1}),
        (
            {"type": "link", "url": "data:text/plain;base64,QQ==", "title": "t", "text": "hello"},
            {"type": "link", "url": "", "title": "t", "text": "hello"},
            {"url": 1},
        ),
        ({**IMAGE, "title": "a plan"}, {**IMAGE, "data": "", "title": "a plan"}, {"image": 1}),
        (
            {
                "type": "document",
                "title": "A",
                "source": {"type": "base64", "media_type": "application/pdf", "data": BYTES},
            },
            {
                "type": "document",
                "title": "A",
                "source": {"type": "base64", "media_type": "application/pdf", "data": ""},
            },
            {"data": 1},
        ),
        (
            {"uri": "file:///a", "mimeType": "application/pdf", "blob": BYTES, "pages": 3},
            {"uri": "file:///a", "mimeType": "application/pdf", "blob": "", "pages": 3},
            {"blob": 1},
        ),
        (
            json.dumps({"id": 12345678901234567890123, "plan": IMAGE}),
            {"id": 12345678901234567890123, "plan": ""},
            {"image": 1},
        ),
    ],
)
def test_of_a_record_only_the_bytes_are_taken_out(result: Any, kept: Any, unread: dict[str, int]) -> None:
    assert read_result(result) == (kept, Counter(unread))


@pytest.mark.parametrize(
    "result",
    [
        [{"type": "document", "id": "d1", "content": "The capital is Oslo", "format": "text"}],
        # A size, and a year.
        {"type": "image", "title": "Fjord", "bytes": "20480"},
        {"type": "audio", "title": "Hymn", "data": "1999"},
        {"type": "file", "filename": "a.txt", "bytes": "20480"},
        [{"type": "file", "content": "print(1)", "format": "python"}],
        [{"type": "blob", "content": "print(1)", "mime_type": "text/x-python"}],
        [{"type": "document", "title": "Guide", "snippet": "Oslo", "source": {"type": "url", "url": "https://x"}}],
        [{"type": "file", "name": "a.pdf", "size": 3, "source": {"type": "file", "path": "/a"}}],
        {"uri": "git://a", "blob": "deadbeef", "path": "a.py", "content": "print"},
        {"type": "audio", "title": "Song", "url": "https://song.test", "format": "mp3"},
        {"type": "image", "data": "a red boat", "title": "x"},
        {"type": "image_url", "image_url": "https://image.test/1", "title": "Oslo"},
        {"text": "data:image/png;base64,QUJD is a small image"},
        "a text",
        "data:image/png;base64,QUJD is a small image",
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


def test_a_text_that_is_nearly_base64_takes_linear_time() -> None:
    # Hours for a pattern that tries each line break in two ways.
    value: dict[str, Any] = {"format": "wav", "data": "A" + "\n" * 1_000_000 + "!"}
    assert read_result(value).value == value

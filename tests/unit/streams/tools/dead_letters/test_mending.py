"""Tests that an exported dead letter can be edited, and comes back byte for byte if nobody edits it."""

from __future__ import annotations

import io
import json

import orjson
import pytest
from tests.support.dlq import letter

from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.tools.dead_letters.mending import Mended, export_line, read_mended
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter, LetterId


def exported(value: bytes | None) -> str:
    return export_line(
        FoundDeadLetter(LetterId(1, 7), 0, letter(1, value=value, reason="invalid", topic="invocations"), False)
    )


def read(text: str) -> Mended:
    return read_mended(read_documents(io.BytesIO(text.encode())), "letters.jsonl")


def test_a_value_of_json_is_part_of_the_line_and_can_be_edited() -> None:
    line = exported('{"args": {"n": 123456789012345678901234567890, "x": 1.50},\r\n "name": "찾기"}'.encode())

    assert '"n": 123456789012345678901234567890, "x": 1.50' in line
    assert "찾기" in line
    found = json.loads(line)
    assert (found["id"], found["reason"], found["topic"], found["key"]) == (
        "1:7",
        "invalid",
        "traceweir.invocations",
        "key 1",
    )
    found["value"]["name"] = "find"
    mended = read(json.dumps(found)).values[LetterId(1, 7)]
    assert mended == b'{"args":{"n":123456789012345678901234567890,"x":1.5},"name":"find"}'


@pytest.mark.parametrize("value", [b"", b"{oops", "한국어\u202e\x1b[31m".encode(), b"\xff\x00", b"7", b"null"])
def test_a_value_that_nobody_edits_comes_back_as_it_was(value: bytes) -> None:
    line = exported(value)
    assert line.isprintable()
    assert read(line) == Mended({LetterId(1, 7): value}, [])


def test_a_hostile_text_cannot_move_the_cursor() -> None:
    line = exported(orjson.dumps({"a": "\x1b[31m\u009b\u202e"}))
    assert line.isprintable()
    assert json.loads(line)["value"] == {"a": "\x1b[31m\u009b\u202e"}


def test_a_dead_letter_that_is_named_twice_is_not_sent() -> None:
    found = read('{"id": "0:0", "value": 1}\n{"id": "0:1", "value": 2}\n{"id": "0:0", "value": 3}')
    assert found.values == {LetterId(0, 1): b"2"}
    assert found.problems == [
        "letters.jsonl: document 3: has the id 0:0 of an earlier document, so neither is sent; keep one of them"
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("oops", "is not JSON"),
        ("[1]", "has no id of a dead letter"),
        ('{"value": 1}', 'has no id of a dead letter; write {"id": "2:17", "value"'),
        ('{"id": 7, "value": 1}', "has no id of a dead letter"),
        ('{"id": "x", "value": 1}', "'x' is not the id of a dead letter"),
        ('{"id": "0:1"}', "has no value; write"),
        ('{"id": "0:1", "value": 1, "text": "a"}', "has value and text; write"),
        ('{"id": "0:1", "text": 1}', "text must be a string"),
        ('{"id": "0:1", "base64": "?"}', "base64 is not valid"),
        ('{"id": "0:1", "value": "\\ud800"}', "value contains half of a surrogate pair"),
        ('{"id": "0:1", "value": 1e999}', "has a number that JSON cannot represent"),
    ],
)
def test_an_unusable_line_is_reported_and_the_others_are_read(line: str, problem: str) -> None:
    found = read(f'{{"id": "0:0", "value": 1}}\n{line}\n{{"id": "0:2", "value": 3}}')
    assert found.values == {LetterId(0, 0): b"1", LetterId(0, 2): b"3"}
    assert found.problems[0].startswith("letters.jsonl: document 2: ")
    assert problem in found.problems[0]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN"])
def test_a_number_that_json_cannot_represent_is_named_in_plain_words(number: str) -> None:
    found = read(f'{{"id": "1:7", "value": {{"x": {number}}}}}\n')
    assert found.values == {}
    assert "has a number that JSON cannot represent" in found.problems[0]

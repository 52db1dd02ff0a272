"""Tests how an input file is divided into documents, and the errors of unreadable input."""

from __future__ import annotations

import io

import pytest

from traceweir.streams.intake.formats.documents import Document, InputError, read_documents


class NamedInput(io.BytesIO):
    """An input stream with the name of a file."""

    name = "traces.json"


def raw_documents(content: bytes) -> list[bytes]:
    return [document.raw for document in read_documents(io.BytesIO(content))]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b" \r\n\n", []),
        (b'{"a":1}', [b'{"a":1}']),
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'\xef\xbb\xbf{"a":1}\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'\xef\xbb\xbf[{"a":1}]', [b'{"a":1}']),
        (b"[]", []),
        (b" \n [ ] \n", []),
        (b'[{"a":1}, {"b":2}]\n', [b'{"a":1}', b'{"b":2}']),
        (b'[\n  {\n    "a": "]},["\n  },\n  null\n]\n', [b'{\n    "a": "]},["\n  }', b"null"]),
        (b'{\n  "a": [1,\n    2]\n}\n', [b'{\n  "a": [1,\n    2]\n}']),
        (b'{\n  "a": 1\n}\n{\n  "b": 2\n}\n', [b'{\n  "a": 1\n}', b'{\n  "b": 2\n}']),
        (b'{"messages": [\n{"role": "user"}\n]}', [b'{"messages": [\n{"role": "user"}\n]}']),
        (b'[1]\n{"a":1}\n', [b"[1]", b'{"a":1}']),
    ],
    ids=[
        "empty",
        "blank",
        "one line without an end",
        "lines",
        "lines of Windows",
        "lines after a byte order mark",
        "array after a byte order mark",
        "empty array",
        "empty array among blanks",
        "array on one line",
        "pretty-printed array",
        "pretty-printed object",
        "pretty-printed objects, one after another",
        "object whose second line is an object",
        "lines of which the first is an array",
    ],
)
def test_every_form_of_input_is_divided_into_its_documents(content: bytes, expected: list[bytes]) -> None:
    assert raw_documents(content) == expected


@pytest.mark.parametrize(
    "bad", [b"nonsense", b'{"a": 1', b'{"a": 1,', b"\xff\xfe", b'{"a": NaN}', b'"\\ud800"', b"{" * 3000]
)
def test_an_unreadable_line_is_a_document_and_does_not_affect_the_next_line(bad: bytes) -> None:
    assert raw_documents(bad + b'\n{"b": 2}\n') == [bad, b'{"b": 2}']
    assert raw_documents(b'{"b": 2}\n' + bad + b"\n") == [b'{"b": 2}', bad]


def test_documents_keep_their_original_bytes() -> None:
    written = b'{"z": 1.50, "a":1e2,"n": 123456789012345678901234567890, "t": "\\u00e9\xc3\xa9", "z": NaN}'

    assert raw_documents(written + b"\n" + written) == [written, written]
    assert raw_documents(b"[" + written + b",\n" + written + b"]") == [written, written]


def test_a_document_number_is_the_line_in_json_lines_and_the_position_in_an_array() -> None:
    lines = read_documents(io.BytesIO(b'\n{"a":1}\n\n\n{"b":2}'))
    assert list(lines) == [Document(2, b'{"a":1}'), Document(5, b'{"b":2}')]
    array = read_documents(io.BytesIO(b'[\n\n{"a":1},\n\n{"b":2}]'))
    assert list(array) == [Document(1, b'{"a":1}'), Document(2, b'{"b":2}')]


def test_a_line_of_json_lines_is_returned_before_the_next_line_is_read() -> None:
    lines_read: list[bytes] = []

    class RecordingInput(io.BytesIO):
        def __next__(self) -> bytes:
            lines_read.append(super().__next__())
            return lines_read[-1]

    documents = read_documents(RecordingInput(b'{"a":1}\n{"b":2}\n'))
    next(documents)
    assert lines_read == [b'{"a":1}\n']


@pytest.mark.parametrize(
    ("content", "place", "what"),
    [
        (b'[\n  {"a": 1},\n  {"a" 2}\n]', "line 3, column 8", "is not JSON"),
        (b'[{"a": 1}\n', "line 1, column 10", "neither a comma nor ] after element 1"),
        (b'[{"a": 1}\n {"b": 2}]', "line 2, column 2", "neither a comma nor ] after element 1"),
        (b'[{"a": 1},]', "line 1, column 11", "is not JSON"),
        (b'[\n{"a": 1}\n]\n{"b": 2}\n', "line 4, column 1", "continues after the end of its array"),
        (b'\n\n[{"a": "\xff"}]', "line 3, column 9", "is not UTF-8"),
        (b"[" + b"[" * 200_000 + b"]" * 200_000 + b"]", "line 1, column 2", "nested too deeply"),
        (b'{\n  "a": 1\n  "b": 2\n}', "line 3, column 3", "is not JSON"),
        (b'{\n  "a": 1\n', "line 2, column 9", "is not JSON"),
    ],
)
def test_the_error_for_an_unreadable_array_or_object_names_file_position_and_remedy(
    content: bytes, place: str, what: str
) -> None:
    with pytest.raises(InputError) as error:
        list(read_documents(NamedInput(content)))

    message = str(error.value)
    assert message.startswith(f"traces.json, {place}: ")
    assert what in message
    assert ("JSON Lines" in message) or ("UTF-8" in message)


def test_an_unreadable_array_gives_no_documents() -> None:
    documents = read_documents(NamedInput(b'[{"a": 1}, nonsense]'))
    with pytest.raises(InputError):
        next(documents)

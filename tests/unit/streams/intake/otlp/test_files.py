"""A file holds OTLP requests as lines of JSON, after their lengths, or alone; a damaged file is refused."""

from __future__ import annotations

import io

import orjson
import pytest

from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.files import requests_of

IN_PROTOBUF = b"\n\x0c\x12\x0a\x12\x08" + b"\x2a\x06invoke"
"""The shape of a request: a field 1 with a length."""
IN_JSON = b'{"resourceSpans": []}'


def test_a_file_holds_lines_framed_requests_or_one_request() -> None:
    first, second = IN_PROTOBUF, IN_PROTOBUF + b"x" * 300
    framed = b"".join(len(each).to_bytes(4, "big") + each for each in (first, second))
    assert list(requests_of(io.BytesIO(framed))) == [first, second]
    assert list(requests_of(io.BytesIO(first))) == [first]
    line = IN_JSON
    assert [each.strip() for each in requests_of(io.BytesIO(line + b"\n\n" + line))] == [line, line]
    pretty = orjson.dumps(orjson.loads(line), option=orjson.OPT_INDENT_2)
    assert [orjson.loads(each) for each in requests_of(io.BytesIO(pretty))] == [orjson.loads(line)]
    assert list(requests_of(io.BytesIO(b""))) == []


@pytest.mark.parametrize("content", [IN_JSON, IN_JSON + b"\n" + IN_JSON, b"{}", b""])
def test_a_mark_before_the_first_line_is_no_part_of_it(content: bytes) -> None:
    assert list(requests_of(io.BytesIO(b"\xef\xbb\xbf" + content))) == list(requests_of(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "begins with neither a JSON object"),
        ((1_000).to_bytes(4, "big") + b"\nabc", "request 1: has 4 of 1000 bytes; the file is cut"),
        ((2).to_bytes(4, "big") + b"\n\x00" + b"\x00\x00", "request 2: its length is cut"),
    ],
)
def test_a_damaged_file_is_refused_with_the_number_of_the_request(content: bytes, why: str) -> None:
    with pytest.raises(OtlpError, match=why):
        list(requests_of(io.BytesIO(content)))

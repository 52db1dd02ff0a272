"""Splits a file into OTLP requests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import BinaryIO

import orjson

from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.json_requests import BOM

MAX_REQUEST_BYTES = 64 * 1024**2
"""The largest request in a file, in bytes. Kafka's brokers accept records of 1 MB by default."""
_FIRST_TAG = 0x0A
"""The first byte of every request in protobuf: field 1, with a length."""
_PREFIX_BYTES = 4


def requests_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the requests of a file: one JSON request per line, requests after their lengths, or a single request.

    A length has four bytes, big-endian. The content of the file tells the forms apart.

    Raises:
        OtlpError: the file has none of these forms, is cut, or has a request of more than `MAX_REQUEST_BYTES`.
    """
    head = stream.read(_PREFIX_BYTES + 1)
    if head.startswith(BOM):
        head = head.removeprefix(BOM) + stream.read(len(BOM))
    if not head.strip():
        return
    if head.lstrip()[:1] == b"{" and not _is_framed(head):
        yield from _json_requests(head, stream)
    elif head[0] == _FIRST_TAG:
        yield _limited(head + stream.read(MAX_REQUEST_BYTES + 1), 1)
    elif _is_framed(head):
        yield from _framed_requests(head, stream)
    else:
        raise OtlpError(
            "begins with neither a JSON object, nor a request in protobuf, nor a length of four bytes before such a request"
        )


def _is_framed(head: bytes) -> bool:
    length = int.from_bytes(head[:_PREFIX_BYTES], "big")
    return 0 < length <= MAX_REQUEST_BYTES and head[_PREFIX_BYTES:] == bytes([_FIRST_TAG])


def _framed_requests(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    number = 0
    begun = head
    while begun:
        number += 1
        begun += stream.read(_PREFIX_BYTES - len(begun)) if len(begun) < _PREFIX_BYTES else b""
        length = int.from_bytes(begun[:_PREFIX_BYTES], "big")
        if len(begun) < _PREFIX_BYTES or length > MAX_REQUEST_BYTES:
            raise OtlpError(f"request {number}: its length is cut, or above {MAX_REQUEST_BYTES} bytes")
        body = begun[_PREFIX_BYTES:]
        body += stream.read(length - len(body))
        if len(body) < length:
            raise OtlpError(f"request {number}: has {len(body)} of {length} bytes; the file is cut")
        yield body
        begun = stream.read(_PREFIX_BYTES)


def _json_requests(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    first = head + stream.readline(MAX_REQUEST_BYTES + 1)
    second = b"" if _is_json(first) else stream.readline(MAX_REQUEST_BYTES + 1)
    if second and not (
        second.startswith(b"{") and _is_json(second)
        # No damaged line, but a document over several lines.
    ):
        yield _limited(first + second + stream.read(MAX_REQUEST_BYTES + 1), 1)
        return
    lines = chain([first, second], iter(partial(stream.readline, MAX_REQUEST_BYTES + 1), b""))
    for number, line in enumerate(filter(None, lines), start=1):
        if line.strip():
            yield _limited(line, number)


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _limited(request: bytes, number: int) -> bytes:
    if len(request) > MAX_REQUEST_BYTES:
        raise OtlpError(f"request {number}: has more than {MAX_REQUEST_BYTES} bytes")
    return request

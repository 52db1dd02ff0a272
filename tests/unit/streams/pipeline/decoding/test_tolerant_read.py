"""Tests which ids are read in a record that is no valid event or trace."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from traceweir.streams.pipeline.decoding.tolerant_read import MAX_KEPT_BYTES, readable_ids


class KeyedValue(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]] = []


def ids_of(value: bytes | None, key: bytes | None = None, *, is_trace: bool = False) -> Any:
    return readable_ids(KeyedValue(key, value), is_trace=is_trace)


def text(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    "value",
    [
        text(session_id="s", args={"session_id": "other"}),
        b'{"session_id": "s", "answer": "' + b"x" * 2_000_000 + b'"}',
        b'{"answer": "' + b"x" * 2_000_000 + b'", "session_id": "s"}',
        b'{"session_id": "s", "answer": "cut o',
        b'{"session_id": "s", "answer": "\xc3',
        b'{"session_id": "s", "answer": "\xff"}',
        b'{"session_id": "s", "answer": "\\ud83d"}',
        b'{"session_id": "s", "n": NaN, "m": -Infinity}',
        b'{"session_id": "s", "n": 01}',
        b'{"session_id": "s"} {"session_id": "other"}',
    ],
    ids=range(10),
)
def test_the_session_that_the_document_names_is_read_whatever_follows(value: bytes) -> None:
    assert ids_of(value, b"key").session_id == "s"


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b'{"session_id": "s", "deep": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b"{",
        b"[]",
        b'["session_id", "s"]',
        b'"session_id"',
        b'{"session_id": "cut o',
        b'{"answer": {"session_id": "inner"}, \x01',
        b'{"answer": "\\"session_id\\": \\"s\\"',
        text(session_id=7),
        text(session_id=""),
        text(session_id="x" * 1_025),
        b'{"session_id": "\\ud83d"}',
    ],
    ids=range(14),
)
def test_without_a_readable_session_the_key_counts(value: bytes | None) -> None:
    assert ids_of(value, b"key").session_id == "key"
    assert ids_of(value).session_id is None


@pytest.mark.parametrize(
    ("key", "session_id"), [(b"\xff", "ff"), (b"", None), (b"x" * 1_025, None), (b"x" * 9_000, None)]
)
def test_a_key_names_a_session_as_it_does_for_a_trace(key: bytes, session_id: str | None) -> None:
    assert ids_of(b"{", key).session_id == session_id


def test_an_unknown_type_and_long_ids_are_not_kept() -> None:
    long = "x" * MAX_KEPT_BYTES
    found = ids_of(text(session_id="s", type="invocation.exploded", invocation_id=long, event_id="\x01" * 100))
    assert (found.type, found.invocation_id, found.event_id) == (None, None, None)


def test_the_invocation_of_a_recorded_one_is_read_inside() -> None:
    for name in ("invocation_id", "invocationId"):
        value = text(session_id="s", type="invocation.recorded", invocation={name: "i", "final_response": 7})
        assert ids_of(value).invocation_id == "i"


def test_the_session_of_a_trace_is_that_of_its_metadata_then_the_key_then_its_id() -> None:
    named = text(id="t", metadata={"session_id": "s"}, steps=7)
    assert ids_of(named, b"key", is_trace=True) == ("s", "trace", None, "t", None)
    assert ids_of(text(id="t"), b"key", is_trace=True).session_id == "key"
    assert ids_of(text(id="t"), is_trace=True).session_id == "t"

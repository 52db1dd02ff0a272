"""Tests the identity of records, by which duplicates are detected."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
import pytest

from traceweir.streams.pipeline.assemble.parse import read_event, read_trace
from traceweir.streams.pipeline.decoding.fast_decode import SHORT
from traceweir.streams.testing import event, trace


class PlainRecord(NamedTuple):
    """A record without a key and headers."""

    topic: str = "t"
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def json_with(document: dict[str, Any], number: str) -> bytes:
    """Returns the JSON with this number in place of "?", because orjson writes no integer beyond 64 bits."""
    return orjson.dumps(document).replace(b'"?"', number.encode())


def identity_of_event(number: str, **fields: Any) -> bytes:
    return read_event(PlainRecord(), json_with(event("tool.called", args={"n": "?"}, **fields), number))[2]


def identity_of_trace(number: str) -> bytes:
    steps = [{"step_id": 0, "type": "tool_call", "tool": {"name": "t"}, "input": {"n": "?"}}]
    return read_trace(PlainRecord(), json_with(trace(steps=steps), number))[2]


NEIGHBOURS = [
    ("100000000000000000000000001", "100000000000000000000000002"),
    ("18446744073709551616", "18446744073709551617"),
    ("-9223372036854775809", "-9223372036854775810"),
    ("9223372036854775808", "9223372036854775809"),
]


@pytest.mark.parametrize("identity", [identity_of_event, identity_of_trace])
@pytest.mark.parametrize(("one", "other"), NEIGHBOURS, ids=[one for one, _ in NEIGHBOURS])
def test_records_that_differ_in_an_integer_beyond_64_bits_have_different_identities(
    identity: Any, one: str, other: str
) -> None:
    assert identity(one) != identity(other)
    assert identity(one) == identity(one)


@pytest.mark.parametrize("number", ["1", "1767225600000000000", "18446744073709551615", "-9223372036854775808", "1e30"])
def test_records_that_differ_in_the_order_of_keys_have_the_same_identity(number: str) -> None:
    document = event("tool.called", args={"n": "?"})
    backwards = dict(reversed(document.items()))
    one, other = (read_event(PlainRecord(), json_with(each, number))[2] for each in (document, backwards))
    assert one == other


@pytest.mark.parametrize("number", ["1", "-9223372036854775808", "1e30", "0.1"])
@pytest.mark.parametrize(
    ("read", "document"), [(read_event, event("tool.called", args={"n": "?"})), (read_trace, trace())]
)
def test_the_fast_and_the_full_parser_read_the_same_record(read: Any, document: dict[str, Any], number: str) -> None:
    value = json_with(document, number)
    longer = value + b" " * SHORT
    assert read(PlainRecord(), value) == read(PlainRecord(), longer)


def test_events_with_the_same_event_id_have_the_same_identity() -> None:
    one, other = NEIGHBOURS[0]
    assert identity_of_event(one, event_id="e") == identity_of_event(other, event_id="e")

"""Tests that a request is counted in bounded work, and also where a part of it is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.work import lines_run

from traceweir.streams.intake.otlp import message_counts
from traceweir.streams.intake.otlp.message_counts import has_too_many_messages

RUN = b"\x80" * 40_000 + b"\x00"
"""The rest of a number of which nobody needs so many bytes."""


def field(number: int, content: bytes) -> bytes:
    size = len(content)
    return bytes([number << 3 | 2, *(size >> 7 * place & 127 | 128 for place in range(3)), size >> 21]) + content


def request(spans: bytes) -> bytes:
    return field(1, field(2, spans))


def test_each_byte_is_read_once_also_where_events_end_behind_their_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_counts, "COUNTED_FROM_BYTES", 0)
    body = request(field(2, b"\x5a\xff\x7f") * 50 + b"\x08" + RUN)
    assert lines_run(lambda: has_too_many_messages(body, "spans", json=False)) < 20 * len(body)


def test_very_many_short_texts_in_json_are_counted_without_a_step_for_each() -> None:
    body = b'{"resourceSpans": [' + b'"",' * 3_000_000 + b'""]}'
    assert lines_run(lambda: has_too_many_messages(body, "spans", json=True)) < 2_000


def members_and_objects(body: str) -> tuple[int, int]:
    """Counts what begins a member or an object outside of texts, one character at a time."""
    outside, rest = "", iter(body)
    for char in rest:
        if char == '"':
            for each in rest:
                if each == '"':
                    break
                if each == "\\":
                    next(rest, "")
        else:
            outside += char
    return sum(map(outside.count, "{[,")), outside.count("{")


documents = st.recursive(
    st.text('",[{\\\\a\n', max_size=6) | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('",{\\\\a', max_size=4), inner, max_size=4),
)


@pytest.mark.slow
@given(documents, st.integers(1, 9), st.integers(0, 5))
def test_only_what_is_outside_of_texts_is_counted_in_json(document: object, slice_bytes: int, cut: int) -> None:
    body = json.dumps(document)
    body = body[: len(body) - cut]
    members, objects = members_and_objects(body)
    for more_members, more_objects in ((0, 0), (1, 0), (0, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(message_counts, "COUNTED_FROM_BYTES", 0)
            patch.setattr(message_counts, "BYTES_PER_MESSAGE", 1_000_000)
            patch.setattr(message_counts, "SLICE_BYTES", slice_bytes)
            patch.setattr(message_counts, "FREE_FIELDS", members - more_members)
            patch.setattr(message_counts, "FREE_MESSAGES", objects - more_objects)
            is_many = has_too_many_messages(body.encode(), "spans", json=True)
        expected = (more_members and members) or (more_objects and objects)
        assert is_many == bool(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cut",
    [
        b"\x08",
        b"\x08\x80",
        b"\x88",
        b"\x5a",
        b"\x5a\x80",
        b"\x5a\x05",
        b"\x5a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x09",
    ],
)
def test_a_cut_span_does_not_end_the_count_of_the_others(cut: bytes) -> None:
    for spans in (
        field(2, b"\x5a\x00" * 510_000) + field(2, cut),
        field(2, cut) + field(2, b"\x5a\x00" * 510_000),
    ):
        assert has_too_many_messages(request(spans), "spans", json=False)

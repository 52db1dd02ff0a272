"""Tests that a request is counted in bounded work, and also where a part of it is cut."""

from __future__ import annotations

import pytest
from tests.support.work import lines_run

from traceweir.streams.otlp import message_counts
from traceweir.streams.otlp.message_counts import has_too_many_messages

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

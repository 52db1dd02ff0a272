"""Tests the input format of documents that have the wire format already."""

from __future__ import annotations

import io

import pytest

from traceweir.streams.intake.formats.base import InputContext
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR, wire_record


@pytest.mark.parametrize(
    ("raw", "kind", "session_id"),
    [
        (b'{"type": "session.ended", "session_id": "s1"}', "event", "s1"),
        (b'{"@type": "ReasoningTrace", "id": "kp:trace:1", "metadata": {"session_id": "s1"}}', "trace", "s1"),
        (b'{"@type": "ReasoningTrace", "id": "kp:trace:1", "metadata": {"session_id": null}}', "trace", "kp:trace:1"),
        (b'{"@type": "ReasoningTrace", "metadata": 7}', "trace", None),
        (b'{"type": "session.ended", "session_id": 7}', "event", None),
        (b'{"type": "session.ended", "session_id": ""}', "event", None),
        (b"{}", "event", None),
        (b"7", "event", None),
        (b"\xff", "event", None),
    ],
)
def test_a_document_in_the_wire_format_becomes_a_record_unchanged(
    raw: bytes, kind: str, session_id: str | None
) -> None:
    assert wire_record(raw) == (kind, session_id, raw)
    (found,) = TRACEWEIR.read(read_documents(io.BytesIO(raw)), InputContext("f"))
    assert (found.records, found.problem) == ([wire_record(raw)], None)

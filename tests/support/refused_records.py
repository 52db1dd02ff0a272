"""Makes the records of a session `s`, some of which are refused, and shows what the session knows of these."""

from __future__ import annotations

from typing import Any

from traceweir.schemas.dead_letter import FIRST_PLACE, REPLAY
from traceweir.streams.testing import Flow, event

REFERENCE = {
    "final_response": {"parts": [{"text": "42"}]},
    "tool_uses": [{"name": "find"}, {"name": "book"}],
    "retrieved_context": [{"doc_uri": "d1"}, {"doc_uri": "d2"}],
}
SPACE = b'"x": "' + b"x" * 900_000 + b'"'


def started(name: str = "i1") -> dict[str, Any]:
    question = {"parts": [{"text": "why"}]}
    return event("invocation.started", "s", invocation_id=name, at=0, user_content=question, reference=REFERENCE)


def completed(name: str = "i1") -> dict[str, Any]:
    answer = {"parts": [{"text": "42"}]}
    return event("invocation.completed", "s", invocation_id=name, at=9, final_response=answer)


def broken(kind: str, name: str | None = "i1", **fields: Any) -> dict[str, Any]:
    # The wrong value is one that no event has.
    return {**event(kind, "s", invocation_id=name or "", at=1, **fields), "app_name": 7}


def refused(flow: Flow) -> list[list[str]]:
    return [[each["place"] for each in session.get("refused", [])] for session in flow.sessions()]


def came_back(where: str) -> list[tuple[str, bytes]]:
    """Returns the headers of a replay."""
    return [(REPLAY, b"0:1"), (FIRST_PLACE, where.encode())]


VALUES: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "cut off": (b'{"type": "invocation.completed", "session_id": "s", "final_response": {"pa', None, "not_json"),
    "broken behind the id": (b'{"session_id": "s", "type": "tool.called", "name": "\x01"}', None, "not_json"),
    "behind other letters": ('{"a": "침실", "session_id": "s", "x": NaN}'.encode(), None, "not_json"),
    "half a character": (b'{"session_id": "s", "x": "\\ud800"}', None, "not_json"),
    "nested deeply": (b'{"session_id": "s", "x": ' + b"[" * 9_000, None, "not_json"),
    "broken with a key": (b"{", b"s", "not_json"),
    "bytes with a key": (b"\xff\xfe\x00", b"s", "not_json"),
    "a list with a key": (b"[]", b"s", "not_an_object"),
    "an empty value with a key": (b"", b"s", "empty"),
    "a tombstone with a key": (None, b"s", "empty"),
    "too large": (b'{"type": "tool.called", "session_id": "s", ' + SPACE + b"}", None, "too_large"),
    "too large with a key": (b"{" + SPACE + b"}", b"s", "too_large"),
    "in the five bytes of a registry": (b'\0\0\0\0\1{"type": "tool.called", "session_id": "s"}', None, "invalid"),
    "of another key": (b'{"type": "tool.called", "session_id": "s"}', b"other", "invalid"),
}

"""Builds sessions as Google ADK saves them, in camelCase, and reads the records that the product makes of them."""

from __future__ import annotations

import io
import json
from typing import Any

import orjson

from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext, InputFormat
from traceweir.streams.intake.formats.documents import read_documents

Document = dict[str, Any]
BEGAN_S = 1_767_225_600.25
"""2026-01-01T00:00:00.25Z."""


def adk_event(author: str, *parts: Document, invocation_id: str = "e-1", at: float = 0.0, **more: Any) -> Document:
    role = "user" if author == "user" else "model"
    return {
        "content": {"parts": list(parts), "role": role},
        "invocationId": invocation_id,
        "author": author,
        "actions": {"stateDelta": {}},
        "timestamp": BEGAN_S + at,
    } | more


def text(value: str) -> Document:
    return {"text": value}


def call(name: str, **args: Any) -> Document:
    return {"functionCall": {"id": f"c-{name}", "name": name, "args": args}}


def answer(name: str, **response: Any) -> Document:
    return {"functionResponse": {"id": f"c-{name}", "name": name, "response": response}}


def adk_session(*events: Document, **more: Any) -> Document:
    return {"id": "s1", "appName": "trips", "userId": "u1", "state": {}, "events": list(events)} | more


BOOKING = adk_session(
    adk_event("user", text("Two seats, please.")),
    adk_event(
        "booker",
        text("Let me look."),
        call("find", n=2),
        at=1,
        usageMetadata={"promptTokenCount": 10, "candidatesTokenCount": 5},
    ),
    adk_event("booker", answer("find", seats=["A1", "A2"]), at=1.5),
    adk_event(
        "booker",
        text("A1 and A2 are yours."),
        at=2,
        usageMetadata={"promptTokenCount": 20, "candidatesTokenCount": 7, "thoughtsTokenCount": 3},
    ),
    adk_event("user", text("Thanks!"), invocation_id="e-2", at=10),
    adk_event("booker", text("See you."), invocation_id="e-2", at=11),
)


def in_snake_case(document: Any) -> Any:
    """Returns a document with its keys in snake_case, as `Session.model_dump_json` writes them without aliases."""
    if isinstance(document, list):
        return [in_snake_case(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in key): in_snake_case(value)
        for key, value in document.items()
    }


def read_as(input_format: InputFormat, *documents: Any) -> list[DocumentRecords]:
    lines = "\n".join(map(json.dumps, documents)).encode()
    return list(input_format.read(read_documents(io.BytesIO(lines)), InputContext("adk.json")))


def events_of(found: DocumentRecords) -> list[InvocationEvent]:
    assert all(orjson.loads(record.value)["event_id"] for record in found.records)
    return [EVENT.validate_json(record.value) for record in found.records]

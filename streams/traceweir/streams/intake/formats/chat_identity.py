"""Reads whose conversation a chat transcript has, and when it began."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import Dimensions, usable_dimensions
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS
from traceweir.streams.intake.formats.chat_times import LATEST_START, time_of
from traceweir.streams.intake.formats.chat_turns import ChatMessage
from traceweir.streams.intake.formats.session_records import RecordRules, digest
from traceweir.streams.intake.formats.transcript_items import TranscriptPlace

RULES = RecordRules(
    namespace=UUID("b4d1d1d8-7c4b-5c0e-9a53-3f0f1f6f2a77"),
    repeated_events_differ_by="place",
)
"""The rules of the records of transcripts."""


def field_of(document: JsonObject, name: str) -> JsonValue:
    """Returns a field at the top of the transcript, or otherwise in its `metadata`; None if it is absent."""
    metadata = document.get("metadata")
    inner = metadata.get(name) if isinstance(metadata, dict) else None
    return inner if document.get(name) is None else document[name]


def dimensions_of(document: JsonObject) -> JsonObject:
    """Returns the usable dimensions; of the labels only `case_id`, because others can tell the outcome in a recording."""
    found = {name: field_of(document, name) for name in Dimensions.model_fields}
    labels = found.pop("labels")
    if isinstance(labels, dict) and "case_id" in labels:
        found["labels"] = {"case_id": labels["case_id"]}
    if found["user_id"] is None:
        found["user_id"] = field_of(document, "user")
    return usable_dimensions(found).known


def own_session_id(document: JsonObject, place: TranscriptPlace) -> str | None:
    """Returns the id that the transcript names; None without one."""
    for name in ("session_id", "id", "conversation_id"):
        value = document.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise place.error(f"{name} must be a string or an integer")
        return str(value)
    return None


def session_id_of(document: JsonObject, place: TranscriptPlace) -> str:
    own = own_session_id(document, place)
    if own is not None:
        return own
    # The first four are part of the name also if they are absent, because the ids of recorded sessions are made so.
    content = {name: document.get(name) for name in (*MESSAGE_LISTS[:2], "task_id", "trial")}
    others = (*MESSAGE_LISTS[2:], "choices", "input", "output")
    content |= {name: document[name] for name in others if name in document}
    fingerprint = digest(content, place.error, sorted_keys=False)
    return RULES.id_of(f"session {place.file_name} {place.number} {fingerprint}")


def first_time(messages: Sequence[ChatMessage], otherwise: datetime) -> datetime:
    """Returns the time of the first record: that of the first message with a time, less an interval for each before it."""
    place, known = next(((place, each.at) for place, each in enumerate(messages) if each.at), (0, None))
    return otherwise if known is None else known - place * RULES.interval


def start_time_of(document: JsonObject, base_time: datetime, place: TranscriptPlace) -> datetime:
    name = "created" if document.get("created") is not None else "created_at"
    value = document.get(name)
    if value is None:
        return base_time.astimezone(UTC)
    time = time_of(value)
    if time is None:
        raise place.error(
            f"{name} must be seconds since 1970 (or milliseconds, microseconds or nanoseconds), or a date-time with its "
            "zone such as 2026-01-31T12:00:00Z"
        )
    if time > LATEST_START:
        raise place.error(
            f"{name} is on the last day of the calendar, {LATEST_START:%Y-%m-%d}; use an earlier time, because the "
            "events follow this time"
        )
    return time

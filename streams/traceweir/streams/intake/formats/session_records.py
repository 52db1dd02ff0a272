"""Builds the records of a session for every input format: the ids, the times, the shared keys, and the checks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID, uuid5

import orjson
from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.events import EVENT
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.formats.base import AgentRecord
from traceweir.streams.intake.formats.documents import InputError

MakeError = Callable[[str], InputError]
"""Makes the error of a document or a row from a problem, such as `cannot be written as JSON`."""
_TRACE_CONTEXT = "https://openknowledgepulse.org/schema/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """How a format derives the ids and the times of its records; the same for all its sessions.

    An id follows from content, never from chance: a file that is sent twice produces duplicates, which count once.
    """

    namespace: UUID
    """A namespace of the format alone, so that the ids of two formats differ."""
    interval: timedelta = timedelta(milliseconds=1)
    """The least time between two records of a session; not negative."""
    repeated_events_differ_by: Literal["time", "place"] = "time"
    """What is part of an event's id beside its content: its time, or its number in the session.

    The number is for formats whose times are not in the document, but follow from the file and the number.
    """
    sorted_keys: bool = False
    """Whether the keys of an event are written in alphabetical order."""

    def id_of(self, name: str) -> str:
        """Returns the UUID of a name, which must be unique in the format."""
        return str(uuid5(self.namespace, name))

    def session_id_of(self, content: JsonValue, error: MakeError) -> str:
        """Returns the id of a session without an id of its own, from its content.

        Raises:
            InputError: JSON cannot represent the content.
        """
        return self.id_of(f"session {digest(content, error)}")


class SessionRecords:
    """Collects the records of one session, in order; each is checked when it is added."""

    def __init__(
        self,
        session_id: str,
        rules: RecordRules,
        start_time: datetime,
        error: MakeError,
        *,
        envelope: JsonObject | None = None,
        dimensions: JsonObject | None = None,
    ) -> None:
        """Begins a session.

        Args:
            session_id: The session of all records.
            rules: The rules of the format.
            start_time: The time of the first record, if the record has no time of its own; timezone-aware.
            error: Makes the error of the document.
            envelope: The keys with which each event begins, in this order. `session_id` is added, or replaced. A key of
                the event itself replaces a value here, and keeps the place of the key.
            dimensions: The dimensions of the session, for the first event of each invocation.
        """
        self.records: list[AgentRecord] = []
        """The records up to now."""
        self.event_ids: list[str] = []
        """The ids of the events up to now."""
        self.session_id = session_id
        self.start_time = start_time
        self._rules = rules
        self._error = error
        # A key that is there keeps its place.
        self._envelope: JsonObject = {**(envelope or {}), "session_id": session_id}
        self._dimensions: JsonObject = {} if dimensions is None else dimensions
        self._latest_time: datetime | None = None
        self._latest_invocation: JsonValue = ""

    def event(self, body: JsonObject, *, at: datetime | None = None) -> None:
        """Adds an event.

        Args:
            body: The event with its `type`; without its session, id and time.
            at: When the event occurred; timezone-aware. None, and a time before the least interval after the record
                before: that least interval after it.

        Raises:
            InputError: the event is not valid, or JSON cannot represent it.
        """
        invocation_id = body.get("invocation_id")
        is_first = bool(invocation_id) and invocation_id != self._latest_invocation
        if is_first:
            self._latest_invocation = invocation_id
        content = self._envelope | (self._dimensions if is_first else {}) | body
        event = content | {"occurred_at": self._time(at).isoformat()}
        named_by = content if self._rules.repeated_events_differ_by == "place" else event
        # Files that were sent before there was such a key keep the ids of their events.
        named_by = {name: value for name, value in named_by.items() if name != "model_call_id"}
        if self._rules.repeated_events_differ_by == "place":
            # The content is part of the id, so that two different documents with one session id are no duplicates.
            name = f"event {len(self.records)} {digest(named_by, self._error, sorted_keys=False)}"
        else:
            name = f"event {digest(named_by, self._error)}"
        event_id = self._rules.id_of(name)
        identified = event | {"event_id": event_id}
        value = encoded(identified, self._error, sorted_keys=self._rules.sorted_keys)
        try:
            self.records.append(checked_event(self.session_id, value))
        except ValidationError as problem:
            raise self._error(f"does not make a valid {body.get('type')} event: {explain(problem)}") from None
        self.event_ids.append(event_id)

    def trace(self, document: JsonObject) -> None:
        """Adds the reasoning trace of the session, which can have one.

        Args:
            document: The trace with its `metadata`; without its context, type, id, session and time.

        Raises:
            InputError: the trace is not valid, or JSON cannot represent it.
        """
        created_at = self._time(None).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        metadata: JsonObject = {"created_at": created_at, "session_id": self.session_id}
        given = document.get("metadata")
        head: JsonObject = {
            "@context": _TRACE_CONTEXT,
            "@type": "ReasoningTrace",
            "id": f"kp:trace:{self._rules.id_of(f'trace {self.session_id}')}",
        }
        trace = head | document | {"metadata": metadata | (given if isinstance(given, dict) else {})}
        value = encoded(trace, self._error, sorted_keys=self._rules.sorted_keys)
        try:
            self.records.append(checked_trace(self.session_id, value))
        except ValidationError as problem:
            raise self._error(f"does not make a valid trace: {explain(problem)}") from None

    def _time(self, known: datetime | None) -> datetime:
        if self._latest_time is None:
            time = self.start_time.astimezone(UTC) if known is None else known
        else:
            earliest = self._latest_time + self._rules.interval
            time = known if known is not None and known > earliest else earliest
        self._latest_time = time
        return time


def checked_event(session_id: str, value: bytes) -> AgentRecord:
    """Returns an event that is JSON already as a record.

    Raises:
        ValidationError: the event is not valid.
    """
    EVENT.validate_json(value)
    return AgentRecord("event", session_id, value)


def checked_trace(session_id: str, value: bytes) -> AgentRecord:
    """Returns a reasoning trace that is JSON already as a record.

    Raises:
        ValidationError: the trace is not valid.
    """
    ReasoningTrace.model_validate_json(value)
    return AgentRecord("trace", session_id, value)


def digest(content: JsonValue, error: MakeError, *, sorted_keys: bool = True) -> str:
    """Returns the SHA-256 of a value in hexadecimal digits; with sorted keys, their order does not matter.

    Raises:
        InputError: JSON cannot represent the value.
    """
    return hashlib.sha256(encoded(content, error, sorted_keys=sorted_keys)).hexdigest()


def encoded(content: JsonValue, error: MakeError, *, sorted_keys: bool) -> bytes:
    """Returns a value as JSON.

    Raises:
        InputError: JSON cannot represent the value.
    """
    try:
        return write_json(content, sorted_keys=sorted_keys)
    except (ValueError, orjson.JSONEncodeError) as problem:
        raise error(f"cannot be written as JSON: {problem}") from None

"""Writes the events of an input format as records."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import orjson
from pydantic import ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.events import EVENT
from traceweir.streams.intake.formats.base import AgentRecord
from traceweir.streams.intake.formats.documents import InputError


def event_record(body: JsonObject, session_id: str, event_id: UUID, error: Callable[[str], InputError]) -> AgentRecord:
    """Returns an event as a record.

    Args:
        body: The event without its id.
        session_id: The session of the event.
        event_id: Derived from the content, so that a file that is sent twice produces duplicates.
        error: Makes the error of the document from a problem such as `does not make a valid event`.

    Raises:
        InputError: the event is not valid, or JSON cannot represent it.
    """
    try:
        value = orjson.dumps(body | {"event_id": str(event_id)})
    except orjson.JSONEncodeError as problem:
        raise error(f"cannot be written as JSON: {problem}") from None
    try:
        EVENT.validate_json(value)
    except ValidationError as problem:
        raise error(f"does not make a valid {body['type']} event: {explain(problem)}") from None
    return AgentRecord("event", session_id, value)

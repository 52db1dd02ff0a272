"""Writes the invocations of Google ADK as records: each invocation is one event, and a session ends after its last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import UNKNOWN, Dimensions
from traceweir.schemas.evaluation_row import EvaluationRow
from traceweir.schemas.invocation import FunctionCall, FunctionResponse, Invocation, Part, UsageMetadata
from traceweir.schemas.reference import Reference
from traceweir.streams.intake.formats.base import AgentRecord
from traceweir.streams.intake.formats.session_records import MakeError, RecordRules, SessionRecords
from traceweir.streams.intake.formats.unread_keys import IgnoredKeys

_RULES = RecordRules(namespace=UUID("6f0e9d3c-52c7-5b43-9a51-0c8d5a0f6b7e"))
IGNORED_OF_CALL = ("partial_args", "partialArgs", "will_continue", "willContinue")
"""Well-known keys of a function call of ADK that are not read."""
IGNORED_OF_RESPONSE = ("will_continue", "willContinue", "scheduling")
"""Well-known keys of a function response of ADK that are not read."""
IGNORED_OF_PART = (
    *("thought_signature", "thoughtSignature", "video_metadata", "videoMetadata"),
    *("media_resolution", "mediaResolution", "part_metadata", "partMetadata"),
)
"""Well-known keys of a part of ADK that are not read, and hold no content."""
IGNORED_OF_ADK = IgnoredKeys(
    {
        Invocation: ("model_duration", "modelDuration", "tool_duration", "toolDuration"),
        FunctionCall: IGNORED_OF_CALL,
        FunctionResponse: IGNORED_OF_RESPONSE,
        Part: IGNORED_OF_PART,
    },
    models=(EvaluationRow, UsageMetadata),
)
"""The keys of ADK's invocations, eval sets and messages that are not read."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """An invocation that ADK recorded, and its expectations."""

    invocation: Invocation
    occurred_at: datetime | None
    """When the invocation began; None if the file does not say it."""
    reference: Reference | None = None
    dimensions: Dimensions = UNKNOWN


@dataclass(frozen=True, slots=True)
class AdkConversation:
    """The invocations of one session."""

    session_id: str
    """The session of the invocations; empty if the file names none."""
    app_name: str
    user_id: str
    turns: Sequence[RecordedTurn]


def conversation_records(conversation: AdkConversation, base_time: datetime, error: MakeError) -> list[AgentRecord]:
    """Returns an `invocation.recorded` event for each invocation, then `session.ended`.

    The ids of the events follow from their content, as does the id of a session without an id. If a session is saved
    again after more invocations, the invocations of both files count once.

    Args:
        conversation: The session.
        base_time: The time of an invocation without a time of its own.
        error: Makes the error of the document from a problem.

    Raises:
        InputError: an invocation is not valid.
    """
    bodies: list[JsonObject] = []
    for turn in conversation.turns:
        body: JsonObject = {
            "type": "invocation.recorded",
            "invocation_id": turn.invocation.invocation_id,
            "invocation": turn.invocation.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
        }
        if turn.reference is not None:
            body["reference"] = turn.reference.model_dump(mode="json", exclude_none=True)
        body |= turn.dimensions.known
        bodies.append(body)
    bodies.append({"type": "session.ended"})
    session_id = conversation.session_id or _RULES.session_id_of(list(bodies), error)
    envelope: JsonObject = {"session_id": session_id}
    envelope |= {"app_name": conversation.app_name} if conversation.app_name else {}
    envelope |= {"user_id": conversation.user_id} if conversation.user_id else {}
    session = SessionRecords(session_id, _RULES, base_time, error, envelope=envelope)
    times = [*(turn.occurred_at for turn in conversation.turns), None]
    for body, occurred_at in zip(bodies, times, strict=True):
        session.event(body, at=occurred_at)
    return session.records


def moment(seconds: float) -> datetime | None:
    """Returns a time of ADK, in seconds since 1970; None for 0, which ADK writes for an unknown time.

    Raises:
        ValueError: the time is not in the years 1970 to 9998.
    """
    if not seconds:
        return None
    try:
        time = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        time = datetime.max.replace(tzinfo=UTC)
    if not 1970 <= time.year < 9999:
        raise ValueError("must be seconds since 1970, in the years 1970 to 9998")
    return time

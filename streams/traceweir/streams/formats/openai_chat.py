"""Chat transcripts in OpenAI's format: one becomes invocation events, a reasoning trace and the end of its session.

What the agent said is a thought, a tool call a tool_call, a tool's answer an observation; the call after a failed one is an error_recovery.
A reward or a label in the file is never read: what somebody knows of the outcome must not decide what the trace is worth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import MAXYEAR, UTC, datetime, timedelta
from uuid import UUID, uuid5

import orjson
from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.events import EVENT
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.formats.base import (
    DEFAULT_DOMAIN,
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    records_of_documents,
)
from traceweir.streams.formats.documents import Document
from traceweir.streams.formats.openai_chat_messages import ChatTurn, Message, Place, messages_of, turns_of

_CONTEXT = "https://openknowledgepulse.org/schema/v1"
_NAMESPACE = UUID("b4d1d1d8-7c4b-5c0e-9a53-3f0f1f6f2a77")
_APART = timedelta(milliseconds=1)
_LATEST = datetime(MAXYEAR, 12, 31, tzinfo=UTC)
"""When a transcript may begin at the latest: a day is time for more events than any document holds."""


def transcript_events(
    document: JsonObject, index: int, source: str, base_time: datetime, task_domain: str = DEFAULT_DOMAIN
) -> list[AgentRecord]:
    """The invocation events of a transcript in order, then its trace, then `session.ended`.

    A user message begins an invocation; the agent's last text before the next one is its final response, earlier texts are intermediate.
    The ids depend on the transcript's own id, or else on the source's file name, the index and what was said, so that a file sent twice
    gives duplicates.

    Args:
        document: An object with `messages` or `traj`.
        index: Its number in the source, from 1.
        source: The file's path or name.
        base_time: When the transcript began, if it does not say so itself (`created` or `created_at`). Events follow
            a millisecond apart.
        task_domain: The trace's domain, if the transcript names none.

    Raises:
        InputError: it is no such transcript; the message names the document and the field.
    """
    place = Place(source, index)
    messages = messages_of(document, place)
    trace = _trace(document, messages, task_domain, place)
    recording = _Recording(_session_id(document, place), _began(document, base_time, place), place)
    turns = turns_of(messages)
    for number, turn in enumerate(turns, start=1 if turns[0].question else 0):
        recording.turn(f"turn-{number}", turn)
    recording.trace(trace)
    recording.event("session.ended", "", {})
    return recording.records


class _Recording:
    """The records of one session as they come about."""

    def __init__(self, session_id: str, began: datetime, place: Place) -> None:
        self.records: list[AgentRecord] = []
        self._session_id = session_id
        self._now = began
        self._place = place

    def turn(self, invocation_id: str, turn: ChatTurn) -> None:
        if turn.question is not None:
            self.event("invocation.started", invocation_id, {"user_content": _content(turn.question.text, "user")})
        for number, message in enumerate(turn.messages):
            if message.role == "tool":
                outcome = "error" if message.failed else "response"
                answer: JsonObject = {"name": message.tool, "call_id": message.call_id, outcome: message.text}
                self.event("tool.returned", invocation_id, answer)
            elif message.text and number != turn.final:
                said: JsonObject = {"author": "assistant", "content": _content(message.text, "model")}
                self.event("response.intermediate", invocation_id, said)
            for call in message.calls:
                called: JsonObject = {"name": call.name, "args": call.arguments, "call_id": call.id}
                self.event("tool.called", invocation_id, called)
        if turn.final is not None:
            response = _content(turn.messages[turn.final].text, "model")
            self.event("invocation.completed", invocation_id, {"final_response": response})

    def event(self, kind: str, invocation_id: str, body: JsonObject) -> None:
        envelope: JsonObject = {"type": kind, "session_id": self._session_id, "invocation_id": invocation_id}
        body = envelope | body
        # The content is part of the id, so that two transcripts that were given one session id do not pass for duplicates.
        identity = uuid5(_NAMESPACE, f"event {len(self.records)} {_digest(body, self._place)}")
        value = _encode(body | {"event_id": str(identity), "occurred_at": self._tick().isoformat()}, self._place)
        try:
            EVENT.validate_json(value)
        except ValidationError as error:
            raise self._place.error(f"gives no valid {kind} event: {explain(error)}") from None
        self.records.append(AgentRecord("event", self._session_id, value))

    def trace(self, document: JsonObject) -> None:
        created_at = self._tick().isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        own: JsonObject = {"created_at": created_at, "session_id": self._session_id}
        metadata = document["metadata"]
        if isinstance(metadata, dict):
            own |= metadata
        head: JsonObject = {"@context": _CONTEXT, "@type": "ReasoningTrace"}
        head["id"] = f"kp:trace:{uuid5(_NAMESPACE, f'trace {self._session_id}')}"
        value = _encode(head | document | {"metadata": own}, self._place)
        try:
            ReasoningTrace.model_validate_json(value)
        except ValidationError as error:
            raise self._place.error(f"gives no valid trace: {explain(error)}") from None
        self.records.append(AgentRecord("trace", self._session_id, value))

    def _tick(self) -> datetime:
        self._now += _APART
        return self._now


def _trace(document: JsonObject, messages: Sequence[Message], task_domain: str, place: Place) -> JsonObject:
    """The trace but for its ids and its time."""
    steps = _steps(messages)
    if not steps:
        raise place.error("holds no message of an assistant or a tool, so there is nothing to score; leave it out")
    asked = [message.text for message in messages if message.role == "user" and message.text.strip()]
    said = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    domain = _own(document, "task_domain")
    success = _own(document, "success")
    confidence = _own(document, "confidence")
    metadata: JsonObject = {
        "framework": "openai-chat",
        "task_domain": task_domain if domain is None else domain,
        "success": True if success is None else success,
        "quality_score": 0,
        "visibility": "network",
        "privacy_level": "aggregated",
    }
    return {
        "metadata": metadata,
        "task": {"objective": [*asked, *said, "(no objective)"][0]},
        "steps": list(steps),
        "outcome": {
            "result_summary": said[-1] if said else "",
            "confidence": 1.0 if confidence is None else confidence,
        },
    }


def _steps(messages: Sequence[Message]) -> list[JsonObject]:
    steps: list[JsonObject] = []
    failed = False
    for message in messages:
        if message.role == "tool":
            # In `content`, not `output_summary`: what the agent learned is part of what makes a trace novel.
            steps.append({"step_id": len(steps), "type": "observation", "content": message.text})
            failed = failed or message.failed
        elif message.role == "assistant" and message.text:
            steps.append({"step_id": len(steps), "type": "thought", "content": message.text})
        for call in message.calls:
            kind = "error_recovery" if failed else "tool_call"
            step: JsonObject = {
                "step_id": len(steps),
                "type": kind,
                "tool": {"name": call.name},
                "input": call.arguments,
            }
            steps.append(step)
            failed = False
    return steps


def _own(document: JsonObject, name: str) -> JsonValue:
    """What the transcript itself says, at its top or in its `metadata`."""
    metadata = document.get("metadata")
    inner = metadata.get(name) if isinstance(metadata, dict) else None
    return inner if document.get(name) is None else document[name]


def _session_id(document: JsonObject, place: Place) -> str:
    for name in ("session_id", "id", "conversation_id"):
        given = document.get(name)
        if given is None or given == "":
            continue
        if not isinstance(given, str | int) or isinstance(given, bool):
            raise place.error(f"{name} must be a string")
        return str(given)
    said = {name: document.get(name) for name in ("messages", "traj", "task_id", "trial")}
    return str(uuid5(_NAMESPACE, f"session {place.file_name} {place.number} {_digest(said, place)}"))


def _began(document: JsonObject, base_time: datetime, place: Place) -> datetime:
    name = "created" if document.get("created") is not None else "created_at"
    given = document.get(name)
    if given is None:
        return base_time.astimezone(UTC)
    try:
        moment = _moment(given)
    except (ValueError, OverflowError, OSError):  # in UTC, both ends of the calendar can be passed
        moment = None
    if moment is None:
        raise place.error(
            f"{name} must be seconds since 1970, or a date-time with its zone such as 2026-01-31T12:00:00Z"
        )
    if moment > _LATEST:
        raise place.error(f"{name} is on the last day of the calendar, {_LATEST:%Y-%m-%d}; no event could follow")
    return moment


def _moment(given: JsonValue) -> datetime | None:
    """The moment in UTC; None for what names none."""
    match given:
        case int() | float() if not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC)
        case str():
            moment = datetime.fromisoformat(given)
            return None if moment.tzinfo is None else moment.astimezone(UTC)
    return None


def _content(text: str, role: str) -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}


def _digest(body: JsonObject, place: Place) -> str:
    return hashlib.sha256(_encode(body, place)).hexdigest()


def _encode(body: JsonObject, place: Place) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise place.error(f"cannot be written as JSON: {error}") from None


class _Transcripts:
    """The transcripts of one input, each in a session of its own."""

    def __init__(self, context: InputContext) -> None:
        self._context = context
        self._taken: dict[str, tuple[int, bytes]] = {}

    def records(self, document: Document) -> list[AgentRecord]:
        records = _records(self._object(document), document, self._context)
        self._refuse_shared_session(records, document)
        return records

    def _object(self, document: Document) -> JsonObject:
        try:
            found: JsonValue = orjson.loads(document.raw)
        except orjson.JSONDecodeError as error:
            raise self._context.document_error(document, f"is not JSON ({error})") from None
        if not isinstance(found, dict):
            raise self._context.document_error(document, "is no object; a transcript is one, with its messages in it")
        return found

    def _refuse_shared_session(self, records: list[AgentRecord], document: Document) -> None:
        """Two transcripts in one session would be read as one, and the later trace as a revision of the earlier."""
        session_id = records[0].session_id or ""
        digest = hashlib.sha256(b"\n".join(record.value for record in records)).digest()
        number, earlier = self._taken.setdefault(session_id, (document.number, digest))
        if earlier != digest:
            raise self._context.document_error(
                document,
                f"its session id {session_id[:80]!r} is that of document {number}, which is another "
                "transcript; give each its own session_id, or leave the ids out",
            )


def _read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    return records_of_documents(documents, _Transcripts(context).records)


def _recognizes(found: JsonObject) -> bool:
    return "messages" in found or "traj" in found


def _records(found: JsonObject, document: Document, context: InputContext) -> list[AgentRecord]:
    return transcript_events(found, document.number, context.source, context.base_time, context.task_domain)


OPENAI_CHAT = InputFormat(
    name="openai-chat",
    description="transcripts with `messages` or `traj`",
    read_documents=_read,
    task_domain="domain of a transcript that names none",
    recognition=Recognition(_recognizes, _records),
)

"""Reads saved sessions of Google ADK, such as the `*.session.json` of `adk run --save_session`.

The events of a session become invocations as in ADK's own conversion of a session to an eval case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, ValidationError

from traceweir.schemas.base import AdkModel, Identifier, JsonObject, explain
from traceweir.schemas.continued_invocations import APPROVED_IN_WORDS
from traceweir.schemas.continued_turns import TurnStep, turns_of_steps
from traceweir.schemas.dimensions import usable_dimensions
from traceweir.schemas.finish_reasons import not_whole
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    TokenUsage,
    UsageMetadata,
    known_sum,
)
from traceweir.schemas.invocation_results import with_text_results
from traceweir.schemas.part_kinds import not_text
from traceweir.schemas.tool_results import is_pending
from traceweir.streams.intake.formats.adk_invocations import (
    IGNORED_OF_CALL,
    IGNORED_OF_PART,
    IGNORED_OF_RESPONSE,
    AdkConversation,
    RecordedTurn,
    conversation_records,
    moment,
)
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    RecordsOfObject,
    records_of_objects,
)
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.unread_keys import IgnoredKeys


class _EventPart(Part):
    code_execution_result: JsonObject | None = None
    inline_data: JsonObject | None = None

    @property
    def is_shown(self) -> bool:
        """Whether ADK shows an event with this part to a judge."""
        return bool(self.function_call or self.function_response or self.text or self.inline_data)


class _EventContent(AdkModel):
    parts: list[_EventPart] | None = None
    role: str | None = None


class _Actions(AdkModel):
    skip_summarization: bool | None = None
    compaction: JsonObject | None = None


class _Transcription(AdkModel):
    text: str | None = None
    finished: bool | None = None
    """Whether the text is the whole of what was said."""


_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class _Event(AdkModel):
    """An event of a session, with the keys that matter here."""

    author: _Text = ""
    invocation_id: _Text = ""
    content: _EventContent | None = None
    timestamp: float = 0.0
    partial: bool | None = None
    turn_complete: bool | None = None
    actions: _Actions | None = None
    long_running_tool_ids: list[str] | None = None
    grounding_metadata: JsonObject | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    input_transcription: _Transcription | None = None
    output_transcription: _Transcription | None = None
    finish_reason: JsonValue = None
    error_code: JsonValue = None
    """For a response of a model, why it ended if that was no regular end."""

    @property
    def is_compaction(self) -> bool:
        """Whether ADK wrote the event itself, as a summary of earlier events."""
        return bool(self.actions and self.actions.compaction)

    @property
    def is_of_user(self) -> bool:
        """Whether the user sent the event."""
        return self.author.lower() == "user"

    @property
    def parts(self) -> Sequence[_EventPart]:
        """The parts of the content, without reasoning."""
        return [part for part in self.content.parts or () if not part.thought] if self.content else ()

    @property
    def uses_a_tool(self) -> bool:
        """Whether the event contains a function call or the response of a tool."""
        return any(part.function_call or part.function_response for part in self.parts)

    @property
    def answered_calls(self) -> Sequence[str]:
        """The ids of the calls to which the event has the response, or the approval of the user."""
        return [
            part.function_response.id for part in self.parts if part.function_response and part.function_response.id
        ]

    def pending_calls(self, run_long: Collection[str]) -> Sequence[str]:
        """Returns the ids of the answered calls whose final response is still to come.

        Args:
            run_long: The ids of the calls of tools that run for long, of which an agent gets a first response.
        """
        found = [part.function_response for part in self.parts if part.function_response]
        return [
            each.id
            for each in found
            if each.id and ((each.id in run_long and not self.is_of_user) or is_pending(each.response))
        ]

    @property
    def asks(self) -> bool:
        """Whether the user sent the event, and it is more than the answer to a call."""
        return self.is_of_user and (not self.answered_calls or any(part.text for part in self.parts))

    @property
    def is_approval_beside_a_question(self) -> bool:
        """Whether the user answers a call, and asks something new beside it."""
        return self.asks and bool(self.answered_calls)

    @property
    def is_final_response(self) -> bool:
        """Whether ADK counts the event as the final response of an agent."""
        if (self.actions and self.actions.skip_summarization) or self.long_running_tool_ids:
            return True
        return not (
            self.partial or self.uses_a_tool or (self.parts and self.parts[-1].code_execution_result is not None)
        )

    @property
    def answers_the_user(self) -> bool:
        """Whether the agent says something to the user, in writing or aloud."""
        if self.is_of_user:
            return False
        spoken = self.output_transcription is not None and bool(self.output_transcription.text)
        return spoken or (self.is_final_response and any(part.text or part.inline_data for part in self.parts))


class _Session(AdkModel):
    id: Identifier
    app_name: str
    user_id: str
    events: Annotated[list[_Event], Field(min_length=1)]


_IGNORED = IgnoredKeys(
    {
        _Session: ("state", "last_update_time", "lastUpdateTime", "display_name", "displayName"),
        _Event: (
            *("id", "branch", "error_message", "errorMessage", "interrupted"),
            *("custom_metadata", "customMetadata", "cache_metadata", "cacheMetadata"),
            *("citation_metadata", "citationMetadata", "live_session_resumption_update"),
            *("liveSessionResumptionUpdate", "go_away", "goAway", "avg_logprobs", "avgLogprobs", "logprobs_result"),
            *("logprobsResult", "interaction_id", "interactionId", "node_info", "nodeInfo", "isolation_scope"),
            *("live_session_id", "liveSessionId", "model_turn", "output", "input", "environment_id", "environmentId"),
        ),
        FunctionCall: IGNORED_OF_CALL,
        FunctionResponse: IGNORED_OF_RESPONSE,
        _EventPart: IGNORED_OF_PART,
        _Transcription: ("language_code", "languageCode"),
    },
    models=(_Actions, UsageMetadata),
    names={_Session: "a session", _Event: "an event", _EventContent: "a content", _EventPart: "a part"},
)
"""The keys of ADK that are not read, and hold nothing that the user or the agent said."""


def read_adk_session(found: JsonObject, document: Document, context: InputContext) -> list[AgentRecord]:
    """Returns the records of a saved session: an `invocation.recorded` per invocation, then `session.ended`.

    Events with the same invocation id form an invocation; an event without an id belongs to the invocation before it,
    or begins one if the user sent it. A live session has all its turns in one invocation: what the user says or writes
    after an answer begins another one, with a number behind its id. An approval, or a late response of a tool, continues
    the invocation of its call, as `continued_turns` says. The summaries that ADK writes of earlier events are left
    out. The tokens of an invocation are the sums over its events; its agent and its model are the first that its events name.

    Raises:
        InputError: the document is not a session of ADK, or no agent has answered in it.
    """
    context.unread_keys.note_model(_Session, found, _IGNORED)
    try:
        session = _Session.model_validate(found)
        events = [event for event in session.events if not event.is_compaction]
        turns = [
            _turn(f"{name}#{number}" if name and number > 1 else name, of_turn)
            for name, of_invocation in _by_invocation(events)
            for number, of_turn in enumerate(_turns_of(of_invocation), start=1)
        ]
    except ValidationError as error:
        raise context.document_error(document, f"is not a valid session of ADK: {explain(error)}") from None
    except ValueError as error:
        raise context.document_error(document, f"events.timestamp: {error}") from None
    if all(event.is_of_user for event in session.events):
        raise context.document_error(document, "contains no event of an agent, so there is nothing to score; remove it")
    conversation = AdkConversation(session.id, session.app_name, session.user_id, turns)
    return conversation_records(conversation, context.base_time, partial(context.document_error, document))


def _by_invocation(events: Sequence[_Event]) -> list[tuple[str, list[_Event]]]:
    """Returns the events of each invocation with its id; an approval continues the invocation of its call."""
    steps: list[tuple[_Event, TurnStep]] = []
    run_long = {call_id for event in events for call_id in event.long_running_tool_ids or ()}
    latest = ""
    for event in events:
        key = event.invocation_id
        if not key:
            # the ids of ADK do not start with a control character
            key = f"\0{len(steps)}" if event.is_of_user or not latest else latest
        latest = key
        answers = event.answered_calls
        if event.is_approval_beside_a_question:
            steps.append((_answers_of(event), TurnStep(key, answers=answers, alone=True)))
            answers = ()
        calls = [part.function_call.id for part in event.parts if part.function_call and part.function_call.id]
        pending = event.pending_calls(run_long)
        step = TurnStep(key, event.asks, event.answers_the_user, calls, answers, pending)
        steps.append((event, step))
    groups: dict[str, list[_Event]] = {}
    for (event, step), turn in zip(steps, turns_of_steps([step for _, step in steps]), strict=True):
        if not step.alone or turn != step.turn:
            groups.setdefault(turn, []).append(event)
    return [("" if key.startswith("\0") else key, group) for key, group in groups.items()]


def _turns_of(events: Sequence[_Event]) -> list[list[_Event]]:
    """Divides the events of an invocation into turns; only a live session has several in one invocation."""
    turns: list[list[_Event]] = [[]]
    asked: Literal["nothing", "unfinished", "whole"] = "nothing"
    is_answered = False
    is_complete = False
    for event in events:
        spoken = event.input_transcription
        text = bool(spoken and spoken.text) or any(part.text for part in event.parts)
        if event.is_of_user and (event.asks or text):
            # The transcription of a question can come after the begin of its answer, and its whole after its pieces.
            is_rest = asked == "nothing" or (asked == "unfinished" and bool(spoken and spoken.finished))
            if is_answered and (not is_rest or (is_complete and asked == "nothing")):
                turns.append([])
                asked = "nothing"
                is_answered = False
                is_complete = False
            if text:
                asked = "unfinished" if spoken is not None and spoken.finished is False else "whole"
        is_answered = is_answered or event.answers_the_user
        is_complete = is_complete or bool(event.turn_complete)
        turns[-1].append(event)
    return turns


def _answers_of(event: _Event) -> _Event:
    """Returns an event of the user with the answers to calls alone."""
    parts = [part for part in event.parts if part.function_response]
    return event.model_copy(update={"content": _EventContent(parts=parts, role="user")})


def _turn(invocation_id: str, events: Sequence[_Event]) -> RecordedTurn:
    asked: _Event | None = None
    final: _Event | None = None
    shown: list[_Event] = []
    unread: list[str] = []
    for event in events:
        if event.asks and asked is not None and event.invocation_id != asked.invocation_id:
            unread = [APPROVED_IN_WORDS]
            continue
        if event.asks:
            asked = event if event.content is not None or asked is None else asked
            continue
        if event.parts and event.is_final_response and not event.is_of_user:
            # A spoken response comes twice, as audio and as text: the text is the answer.
            has_text = final is not None and any(part.text for part in final.parts)
            final = event if not has_text or any(part.text for part in event.parts) else final
        if event.grounding_metadata is not None or any(part.is_shown for part in event.parts):
            shown.append(event)
    steps = [
        InvocationStep(
            author="" if event.is_of_user else event.author,
            content=_content(event) if event is not final or event.uses_a_tool else None,
            grounding_metadata=event.grounding_metadata,
        )
        for event in shown
        if event is not final or event.uses_a_tool or event.grounding_metadata
    ]
    question = _said(asked, "user", [event.input_transcription for event in events])
    answer = _said(final, "model", [event.output_transcription for event in events])
    for part, source, said in (("question", asked, question), ("answer", final, answer)):
        text = said.text if said is not None else ""
        unread += not_text(part, text, _blobs(source, is_transcribed=bool(text)))
    unread += _not_whole(events, final, answer)
    began = moment((asked or events[0]).timestamp)
    ended = None if final is None else moment(final.timestamp)
    return RecordedTurn(
        with_text_results(
            Invocation(
                invocation_id=invocation_id,
                user_content=question,
                final_response=answer,
                intermediate_data=InvocationEvents(invocation_events=steps),
                creation_timestamp=(asked or events[0]).timestamp,
                token_usage=_token_usage(events),
                inference_call_count=sum(
                    event.usage_metadata is not None or event.model_version is not None
                    for event in events
                    if not event.is_of_user
                )
                or None,
                latency_seconds=_seconds_between(began, ended) if asked is not None else None,
                unread=unread or None,
            )
        ),
        began,
        dimensions=usable_dimensions(
            {
                "agent_name": next((event.author for event in events if not event.is_of_user and event.author), None),
                "model": next((event.model_version for event in events if event.model_version), None),
            }
        ),
    )


def _not_whole(events: Sequence[_Event], final: _Event | None, answer: Content | None) -> list[str]:
    """Tells whether the model ended before it had written the whole answer."""
    last = final or next((event for event in reversed(events) if not event.is_of_user), None)
    text = answer.text if answer is not None else ""
    reasons = (last.finish_reason, last.error_code) if last is not None else ()
    return next((not_whole(text, each) for each in reasons if isinstance(each, str) and each), [])


def _blobs(event: _Event | None, *, is_transcribed: bool) -> list[Counter[str]]:
    """Returns how many parts of an event are data of each media type; sound with a transcription is read."""
    kinds = Counter[str]()
    for part in event.parts if event is not None else ():
        if part.inline_data is not None:
            kind = part.inline_data.get("mime_type", part.inline_data.get("mimeType"))
            kinds[kind if isinstance(kind, str) else "inline_data"] += 1
    read = [kind for kind in kinds if is_transcribed and kind.startswith("audio/")]
    return [kinds] if kinds and len(read) < len(kinds) else []


def _said(event: _Event | None, role: str, spoken: Iterable[_Transcription | None]) -> Content | None:
    """Returns the content of an event; if it has no text, what was spoken, as ADK has transcribed it."""
    if event is not None and any(part.text for part in event.parts):
        return _content(event)
    pieces = [each for each in spoken if each is not None and each.text]
    whole = [each.text for each in pieces if each.finished]
    text = "\n".join(map(str, whole)) or "".join(str(each.text) for each in pieces)
    return Content.of(text, role) if text else _content(event)


def _content(event: _Event | None) -> Content | None:
    if event is None or event.content is None:
        return None
    parts = [
        Part(text=part.text, function_call=part.function_call, function_response=part.function_response)
        for part in event.parts
    ]
    return Content(role=event.content.role, parts=parts)


def _token_usage(events: Iterable[_Event]) -> TokenUsage | None:
    reported = [event.usage_metadata for event in events if event.usage_metadata is not None]
    if not reported:
        return None
    return TokenUsage(
        input_tokens=known_sum(usage.input_tokens for usage in reported),
        output_tokens=known_sum(usage.output_tokens for usage in reported),
    )


def _seconds_between(began: datetime | None, ended: datetime | None) -> float | None:
    return (ended - began).total_seconds() if began and ended and ended >= began else None


def _recognizes(found: JsonObject) -> bool:
    return (
        isinstance(found.get("events"), list)
        and "id" in found
        and ("appName" in found or "app_name" in found)
        and ("userId" in found or "user_id" in found)
    )


def _reader(context: InputContext) -> RecordsOfObject:
    return partial(read_adk_session, context=context)


def _read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    rule = "a saved session must be an object with id, app_name, user_id and events"
    return records_of_objects(documents, _reader(context), context, rule)


ADK_SESSION = InputFormat(
    name="adk-session",
    description="sessions that Google ADK saved (`*.session.json`)",
    read_documents=_read,
    recognition=Recognition("a saved session of Google ADK", _recognizes, _reader),
)

"""Reads saved sessions of Google ADK, such as the `*.session.json` of `adk run --save_session`.

The events of a session become invocations as in ADK's own conversion of a session to an eval case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Literal

from pydantic import ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.continued_invocations import APPROVED_IN_WORDS
from traceweir.schemas.continued_turns import TurnStep, turns_of_steps
from traceweir.schemas.dimensions import usable_dimensions
from traceweir.schemas.finish_reasons import not_whole
from traceweir.schemas.invocation import (
    Content,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    TokenUsage,
    known_sum,
)
from traceweir.schemas.invocation_results import INTERMEDIATE, with_text_results
from traceweir.schemas.part_kinds import not_text
from traceweir.streams.intake.formats.adk_invocations import (
    AdkConversation,
    RecordedTurn,
    conversation_records,
    moment,
)
from traceweir.streams.intake.formats.adk_saved_events import (
    IGNORED_OF_SESSION,
    EventContent,
    SavedEvent,
    SavedSession,
    Transcription,
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

_CONFIRMATION = "adk_request_confirmation"
"""The call with which ADK asks the user whether another call may run."""
_MAX_ERROR_CHARS = 2_000


def read_adk_session(found: JsonObject, document: Document, context: InputContext) -> list[AgentRecord]:
    """Returns the records of a saved session: an `invocation.recorded` per invocation, then `session.ended`.

    Events with the same invocation id form an invocation; an event without an id belongs to the invocation before it,
    or begins one if the user sent it. A live session has all its turns in one invocation: what the user says or writes
    after an answer begins another one, with a number behind its id. An approval, or a late response of a tool, continues
    the invocation of its call, as `continued_turns` says. The summaries that ADK writes of earlier events are left
    out. The tokens of an invocation are the sums over its events; its agent and its model are the first that its events name.

    An error of a model after which the agent says nothing is that of its invocation.

    Raises:
        InputError: the document is not a session of ADK, or no agent has answered in it.
    """
    context.unread_keys.note_model(SavedSession, found, IGNORED_OF_SESSION)
    try:
        session = SavedSession.model_validate(found)
        events = [event for event in session.events if not event.is_compaction]
        turns = [
            _turn(f"{name}#{number}" if name and number > 1 else name, of_turn)
            for name, of_invocation in _by_invocation(events)
            # What an application or ADK notes between the turns, such as a state or a rewind, is no turn.
            if any(event.tells for event in of_invocation)
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


def _by_invocation(events: Sequence[SavedEvent]) -> list[tuple[str, list[SavedEvent]]]:
    """Returns the events of each invocation with its id; an approval continues the invocation of its call."""
    steps: list[tuple[SavedEvent, TurnStep]] = []
    run_long = _answered_twice(events)
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
    groups: dict[str, list[SavedEvent]] = {}
    for (event, step), turn in zip(steps, turns_of_steps([step for _, step in steps]), strict=True):
        if not step.alone or turn != step.turn:
            groups.setdefault(turn, []).append(event)
    return [("" if key.startswith("\0") else key, group) for key, group in groups.items()]


def _answered_twice(events: Iterable[SavedEvent]) -> set[str]:
    """Returns the ids of the calls to which the agent gets a first response before the final one.

    They are those of tools that run for long, and those for which ADK asks the user.
    """
    found = {call_id for event in events for call_id in event.long_running_tool_ids or ()}
    asked = [part.function_call for event in events for part in event.parts if part.function_call]
    for call in asked:
        args = call.args or {}
        original = args.get("originalFunctionCall", args.get("original_function_call"))
        call_id = original.get("id") if isinstance(original, dict) else None
        if call.name == _CONFIRMATION and isinstance(call_id, str):
            found.add(call_id)
    return found


def _turns_of(events: Sequence[SavedEvent]) -> list[list[SavedEvent]]:
    """Divides the events of an invocation into turns; only a live session has several in one invocation."""
    turns: list[list[SavedEvent]] = [[]]
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


def _answers_of(event: SavedEvent) -> SavedEvent:
    """Returns an event of the user with the answers to calls alone."""
    parts = [part for part in event.parts if part.function_response]
    return event.model_copy(update={"content": EventContent(parts=parts, role="user")})


def _turn(invocation_id: str, events: Sequence[SavedEvent]) -> RecordedTurn:
    asked: SavedEvent | None = None
    final: SavedEvent | None = None
    shown: list[SavedEvent] = []
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
    last = _last_of_agent(events)
    error = last.error[:_MAX_ERROR_CHARS] if last is not None else ""
    # A text before an error is no answer.
    final = None if error else final
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
    between = [each for event in shown if event is not final for each in _blobs(event, is_transcribed=True)]
    unread += not_text(INTERMEDIATE, "", between)
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
                error=error or None,
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


def _last_of_agent(events: Sequence[SavedEvent]) -> SavedEvent | None:
    """Returns the last event of an agent that is more than a note, such as a state; None without one."""
    return next((event for event in reversed(events) if not event.is_of_user and event.tells), None)


def _not_whole(events: Sequence[SavedEvent], final: SavedEvent | None, answer: Content | None) -> list[str]:
    """Tells whether the model ended before it had written the whole answer."""
    last = final or _last_of_agent(events)
    text = answer.text if answer is not None else ""
    reasons = (last.finish_reason, last.error_code) if last is not None else ()
    return next((not_whole(text, each) for each in reasons if isinstance(each, str) and each), [])


def _blobs(event: SavedEvent | None, *, is_transcribed: bool) -> list[Counter[str]]:
    """Returns how many parts of an event are data of each media type; sound with a transcription is read."""
    kinds = Counter[str]()
    for part in event.parts if event is not None else ():
        if part.inline_data is not None:
            kind = part.inline_data.get("mime_type", part.inline_data.get("mimeType"))
            kinds[kind if isinstance(kind, str) else "inline_data"] += 1
    read = [kind for kind in kinds if is_transcribed and kind.startswith("audio/")]
    return [kinds] if kinds and len(read) < len(kinds) else []


def _said(event: SavedEvent | None, role: str, spoken: Iterable[Transcription | None]) -> Content | None:
    """Returns the content of an event; if it has no text, what was spoken, as ADK has transcribed it."""
    if event is not None and any(part.text for part in event.parts):
        return _content(event)
    pieces = [each for each in spoken if each is not None and each.text]
    whole = [each.text for each in pieces if each.finished]
    text = "\n".join(map(str, whole)) or "".join(str(each.text) for each in pieces)
    return Content.of(text, role) if text else _content(event)


def _content(event: SavedEvent | None) -> Content | None:
    if event is None or event.content is None:
        return None
    parts = [
        Part(text=part.text, function_call=part.function_call, function_response=part.function_response)
        for part in event.parts
    ]
    return Content(role=event.content.role, parts=parts)


def _token_usage(events: Iterable[SavedEvent]) -> TokenUsage | None:
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

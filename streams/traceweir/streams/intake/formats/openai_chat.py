"""Converts chat transcripts in OpenAI's format to invocation events, a reasoning trace and the end of the session.

In the trace, a text of the agent becomes a `thought` step, a tool call a `tool_call` and the answer of a tool an
`observation`; the first call after a failed call becomes an `error_recovery`. A reward or a label in the file is never
read, because knowledge of the outcome must not influence the score of the trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

from traceweir.schemas.base import JsonObject
from traceweir.schemas.part_kinds import unread_choices
from traceweir.streams.base.json_values import notes_of
from traceweir.streams.intake.formats.base import (
    DEFAULT_DOMAIN,
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    PartlyReadError,
    Recognition,
    RecordsOfObject,
    Sureness,
    records_of_objects,
)
from traceweir.streams.intake.formats.chat_answers import parallel_answers
from traceweir.streams.intake.formats.chat_identity import (
    RULES,
    dimensions_of,
    first_time,
    own_session_id,
    session_id_of,
    start_time_of,
)
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS, note_unread_keys
from traceweir.streams.intake.formats.chat_times import NO_TIMES
from traceweir.streams.intake.formats.chat_traces import trace_of
from traceweir.streams.intake.formats.chat_turns import ChatMessage, ChatTurn, turns_of
from traceweir.streams.intake.formats.chat_usage import ModelUse, total_alone, use_in
from traceweir.streams.intake.formats.cumulative_logs import CumulativeLogs
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.openai_chat_messages import messages_of
from traceweir.streams.intake.formats.session_records import SessionRecords
from traceweir.streams.intake.formats.stored_endings import (
    ADD_QUESTION,
    WITHOUT_QUESTION,
    error_of,
    shown_error,
)
from traceweir.streams.intake.formats.transcript_items import TranscriptPlace, choices_of, is_stored_answer


def transcript_events(
    document: JsonObject, index: int, source: str, base_time: datetime, task_domain: str = DEFAULT_DOMAIN
) -> list[AgentRecord]:
    """Returns the invocation events of a transcript in order, then its trace, then `session.ended`.

    Each user message begins an invocation. The agent's last text before the next user message is the final response of
    the invocation; earlier texts are intermediate responses. All ids derive from the transcript's own id. If the
    transcript has no id, they derive from the source's file name, the index and the messages, so that a file that is
    sent twice produces duplicates.

    Args:
        document: An object with `messages` or `traj`.
        index: The number of the document in the source, from 1.
        source: The path or the name of the file.
        base_time: The start time of a transcript that has neither `created` nor `created_at`. The records follow each
            other at intervals of one millisecond.
        task_domain: The domain of the trace, if the transcript names no domain.

    Raises:
        InputError: the document is not a transcript; the message names the document and the field.
    """
    place = TranscriptPlace(source, index)
    messages = messages_of(document, place)
    session = _session(document, messages, place, base_time, task_domain)
    session.event({"type": "session.ended"})
    return session.records


def _session(
    document: JsonObject,
    messages: Sequence[ChatMessage],
    place: TranscriptPlace,
    base_time: datetime,
    task_domain: str,
    start_time: datetime | None = None,
) -> SessionRecords:
    """Returns the records of a transcript without the end of its session.

    Args:
        document: The transcript.
        messages: Its messages.
        place: Where it stands.
        base_time: The start time of a transcript without one.
        task_domain: The domain of a transcript without one.
        start_time: The time of the first record; None: as the transcript or its messages say.
    """
    error = _error_of_last_turn(document, messages, place)
    trace = trace_of(document, messages, task_domain, place, error)
    session_id = session_id_of(document, place)
    if start_time is None:
        start_time = first_time(messages, start_time_of(document, base_time, place) + RULES.interval)
    session = SessionRecords(
        session_id,
        RULES,
        start_time,
        place.error,
        envelope={"type": "", "session_id": session_id, "invocation_id": ""},
        dimensions=dimensions_of(document),
    )
    turns = turns_of(messages)
    further = len(choices_of(document)) - 1
    # Where messages tell their own tokens, a total of all of them is not all that is there.
    has_usage_alone = is_stored_answer(document) or not any(message.used for message in messages)
    total = total_alone(document) if has_usage_alone else ""
    events: list[tuple[int, ChatMessage, JsonObject]] = []
    answers = parallel_answers(messages)
    for number, turn in enumerate(turns, start=1 if turns[0].question else 0):
        lacks = turn.missing
        if further > 0 and turn is turns[-1]:
            lacks.append(unread_choices(further))
        if turn is turns[-1] and total:
            lacks.append(total)
        if turn is turns[-1] and error:
            lacks = [*dict.fromkeys([*lacks, NO_TIMES])]
        failed = error if turn is turns[-1] else ""
        events += _events_of_turn(f"turn-{number}", turn, lacks, failed, answers)
    # A late result of a tool stands between the messages of a later turn.
    for _, message, event in sorted(events, key=itemgetter(0)):
        session.event(event, at=message.at)
    _add_usage(session, document, messages, f"turn-{len(turns) - (turns[0].question is None)}")
    if trace is not None:
        session.trace(trace)
    return session


def _error_of_last_turn(document: JsonObject, messages: Sequence[ChatMessage], place: TranscriptPlace) -> str:
    """Returns the error for which the last turn has no answer; empty without one.

    Raises:
        InputError: there is neither a question nor anything that the agent did before the error.
    """
    error = error_of(document, place.error)
    if not error:
        return ""
    if not any(message.role == "user" or message.text or message.calls for message in messages):
        raise place.error(f"is {WITHOUT_QUESTION} ({shown_error(document) or repr(error)}): {ADD_QUESTION}")
    last = turns_of(messages)[-1]
    return "" if messages[-1].role == "assistant" and last.final is not None else error


def _events_of_turn(
    invocation_id: str, turn: ChatTurn, missing: Sequence[str], error: str, answers: Mapping[int, str]
) -> Iterator[tuple[int, ChatMessage, JsonObject]]:
    """Yields the events of a turn, each with its message and the message's place in the transcript.

    Args:
        invocation_id: The id of the turn.
        turn: The turn.
        missing: What the transcript lacks, a sentence for each part.
        error: The error for which the turn has no answer; empty without one.
        answers: The answers of the model with several calls, as `parallel_answers` returns them.
    """
    # The first event of the turn tells what the transcript lacks.
    lacks: list[JsonObject] = [{"missing": [*missing]}] if missing else []

    def event(kind: str, body: JsonObject) -> JsonObject:
        return {"type": kind, "invocation_id": invocation_id, **body, **(lacks.pop() if lacks else {})}

    places = iter(turn.places)
    if turn.question is not None:
        started = event("invocation.started", {"user_content": _content(turn.question.text, "user")})
        yield next(places), turn.question, started
    final_place = None if error else turn.final
    for number, (message, place) in enumerate(zip(turn.messages, places, strict=True)):
        if message.role == "tool":
            outcome = "error" if message.failed else "response"
            returned: JsonObject = {"name": message.tool, "call_id": message.call_id, outcome: message.text}
            yield place, message, event("tool.returned", returned)
        elif message.text and number != final_place:
            said: JsonObject = {"author": "assistant", "content": _content(message.text, "model")}
            yield place, message, event("response.intermediate", said)
        for call in message.calls:
            called: JsonObject = {"name": call.name, "args": call.arguments, "call_id": call.id}
            called |= {"model_call_id": answers[place]} if place in answers else {}
            yield place, message, event("tool.called", called)
    if final_place is not None:
        final = turn.messages[final_place]
        completed = event("invocation.completed", {"final_response": _content(final.text, "model")})
        yield turn.places[-1], final, completed
    elif error:
        last = turn.messages[-1] if turn.messages else turn.question
        assert last is not None  # noqa: S101  # a turn has a message
        yield turn.places[-1], last, event("invocation.completed", {"error": error})
    elif lacks:
        # An answer without a text, or one that was cut before it, has no other event.
        yield turn.places[-1], turn.messages[-1], event("invocation.completed", {})
    # An event before the last one would move its time.
    for message in turn.messages:
        for use in message.used:
            yield turn.places[-1], message, _called(use, invocation_id)


def _add_usage(
    session: SessionRecords, document: JsonObject, messages: Sequence[ChatMessage], invocation_id: str
) -> None:
    """Adds the tokens of a stored completion, or of a transcript with one answer, which is one model call."""
    answers = [message for message in messages if message.role == "assistant"]
    if is_stored_answer(document) or (len(answers) == 1 and not answers[0].used):
        use = use_in(document)
        if use is not None:
            session.event(_called(use, invocation_id))


def _called(use: ModelUse, invocation_id: str) -> JsonObject:
    return {"type": "model.called", "invocation_id": invocation_id, "model": use.model, **use.counts}


def _content(text: str, role: str) -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}


class _Transcripts:
    """Converts the transcripts of one input; each transcript is a session of its own.

    Of a log that has the whole history in each line, the longest transcript counts.
    """

    def __init__(self, context: InputContext) -> None:
        self._context = context
        self._logs = CumulativeLogs()

    def records(self, found: JsonObject, document: Document) -> list[AgentRecord]:
        context = self._context
        place = TranscriptPlace(context.source, document.number)
        note_unread_keys(found, context.unread_keys)
        messages = messages_of(found, place)
        name = own_session_id(found, place)
        earlier = None if name is None else self._logs.earlier(name)
        start_time = None if earlier is None else earlier.start_time
        session = _session(found, messages, place, context.base_time, context.task_domain, start_time)
        if name is None:
            session.event({"type": "session.ended"})
            records = session.records
        else:
            records = self._logs.records(session, messages, document.number, place.error)
        replaced = sum((call.replaced for message in messages for call in message.calls), Counter())
        if replaced:
            notes = "; ".join(notes_of(replaced))
            raise PartlyReadError(str(place.error(f"in the arguments of tool calls: {notes}")), records)
        return records


def _reader(context: InputContext) -> RecordsOfObject:
    return _Transcripts(context).records


def _read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    rule = "a transcript must be an object that contains its messages"
    return records_of_objects(documents, _reader(context), context, rule)


def _recognizes(found: JsonObject) -> Sureness:
    if found.get("object") in {"response", "chat.completion", "text_completion"}:
        return Sureness.CERTAIN
    # A row of an evaluation set, which has a request, inputs or a trace, can have messages too.
    is_chat = any(isinstance(found.get(name), list) for name in MESSAGE_LISTS)
    is_chat = is_chat or "messages" in found or "traj" in found
    return Sureness.POSSIBLE if is_chat and not {"request", "inputs", "trace"} & found.keys() else Sureness.NO


OPENAI_CHAT = InputFormat(
    name="openai-chat",
    description="chat transcripts: `messages` of OpenAI or Anthropic, `contents` of Gemini, stored responses, `traj`",
    read_documents=_read,
    task_domain="domain of a transcript without a domain of its own",
    recognition=Recognition("a chat transcript", _recognizes, _reader),
)

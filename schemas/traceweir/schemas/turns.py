"""Folds the events of a session into invocations, each with its reference."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import JsonValue

from traceweir.schemas.continued_invocations import continued_invocation, responses_in, without_responses
from traceweir.schemas.derived_invocation import derived_invocation
from traceweir.schemas.dimensions import (
    MAX_SHORT_CHARS,
    UNKNOWN,
    Dimensions,
    invocation_dimensions,
    session_dimensions,
)
from traceweir.schemas.evaluation_row_turn import read_row
from traceweir.schemas.event_steps import event_steps
from traceweir.schemas.events import (
    InvocationCompleted,
    InvocationEvent,
    InvocationRecorded,
    InvocationStarted,
    ModelCalled,
    ResponseIntermediate,
    RetrievalReturned,
    ToolCalled,
    ToolReturned,
)
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    Part,
    RetrievedChunk,
    TokenUsage,
    known_sum,
)
from traceweir.schemas.invocation_results import with_text_messages, with_text_results
from traceweir.schemas.reasoning_parts import invocation_without_reasoning
from traceweir.schemas.reference import Reference
from traceweir.schemas.refused_record import LostParts, RefusedRecord
from traceweir.schemas.result_parts import not_text_of_result, read_result
from traceweir.schemas.session import Session
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import ReasoningTrace


@dataclass(frozen=True, slots=True)
class Turn:
    """Holds an invocation with its inline reference, or the id of its reference."""

    invocation: Invocation
    reference: Reference | None = None
    reference_id: str | None = None
    app_name: str = ""
    started_at: datetime | None = None
    """The earliest known `occurred_at` of the invocation's events, in UTC; None if no time is known."""
    dimensions: Dimensions = UNKNOWN
    """The dimensions of the invocation, with the user id as the agent sent it."""
    without_reference: str | None = None
    """Why an expectation that names the session does not count for it; None: there is none, or it counts."""


def turns_of(session: Session) -> list[Turn]:
    """Returns the invocations of a session in the order of their first events.

    Events without an invocation id belong to the invocation of the event before them; an `invocation.started` or
    `invocation.recorded` without an id starts a new invocation. An invocation without an id is named `#<index>`,
    counted from 0. An approval or a late response of a tool continues the invocation of its call, as
    `continued_turns` says. A session that contains traces only has a derived invocation for each trace that names no
    invocation. An invocation that a trace names has events, which have not arrived yet; results of a derived invocation
    would stay beside the results of the real one.

    An invocation says in `unread` which of its parts can be in records that were refused. One of which only such records
    are known comes last; a refused record without a readable invocation id can belong to each invocation. So can each
    one of a session that contains traces only.
    """
    return [turn for turn, _ in turns_with_events(session)]


def turns_with_events(session: Session) -> list[tuple[Turn, Sequence[InvocationEvent]]]:
    """Returns the invocations of a session as `turns_of` does, each with its events."""
    steps = event_steps(session.current_events)
    if not steps:
        derived = [trace for trace in session.current_traces if trace.metadata.invocation_id is None]
        if derived:
            # A trace names none of them, so a refused record can belong to each invocation.
            lost = LostParts(session.current_refused).sentences()
            return [(_with_unread(_derived_turn(trace), lost), ()) for trace in derived]
    moved: dict[int, set[str]] = {}
    for step in steps:
        if step.answer is not None:
            moved.setdefault(id(step.event), set()).add(step.answer)
    parts: dict[str, dict[str, _OpenTurn]] = {}
    events_of: dict[str, list[InvocationEvent]] = {}
    for step in steps:
        of_turn = parts.setdefault(step.turn, {})
        part = of_turn.get(step.name)
        if part is None:
            part = of_turn[step.name] = _OpenTurn("" if step.is_anonymous else step.name)
        if step.answer is None:
            part.add(step.event, without=moved.get(id(step.event), ()) if moved else ())
        else:
            part.add_answer(step.event, step.answer)
        events_of.setdefault(step.turn, []).append(step.event)
    turns = [_closed(list(of_turn.values()), index) for index, of_turn in enumerate(parts.values())]
    if refused := session.current_refused:
        turns = _with_refused(turns, list(parts.values()), refused)
    events = [*events_of.values(), *[()] * (len(turns) - len(events_of))]
    return list(zip(_with_unique_ids(turns), events, strict=True))


def _with_refused(
    turns: Sequence[Turn], names: Sequence[Collection[str]], refused: Sequence[RefusedRecord]
) -> list[Turn]:
    """Returns the turns with what can be in refused records, and those of which only refused records are known.

    Args:
        turns: The turns of the events.
        names: The invocations in which the source has the events of each turn.
        refused: The refused records.
    """
    by_id: dict[str, list[RefusedRecord]] = {}
    for each in refused:
        by_id.setdefault(each.invocation_id or "", []).append(each)
    of_any = LostParts(by_id.get("", ()))
    found = []
    known = {""}
    for turn, of_turn in zip(turns, names, strict=True):
        own_names = dict.fromkeys((*of_turn, turn.invocation.invocation_id))
        known.update(own_names)
        own = LostParts(each for name in own_names if name for each in by_id.get(name, ()))
        found.append(_with_unread(turn, own.with_others(of_any).sentences()))
    shared = session_dimensions([turn.dimensions for turn in turns])
    shared = shared.model_copy(update={"trace_context": None, "sampling_probability": None})
    for name, only in by_id.items():
        if name not in known:
            unread = LostParts(only, are_all=True).with_others(of_any).sentences()
            found.append(Turn(Invocation(invocation_id=name, unread=unread), dimensions=shared))
    return found


def _with_unread(turn: Turn, sentences: Sequence[str]) -> Turn:
    invocation = turn.invocation
    unread = [*(invocation.unread or ()), *sentences]
    return replace(turn, invocation=invocation.model_copy(update={"unread": unread or None}))


def _closed(parts: Sequence[_OpenTurn], index: int) -> Turn:
    """Returns the turn of an invocation and of those that continue it."""
    first, *later = [part.close(index) for part in parts]
    if not later:
        return first
    invocation = first.invocation
    for each in later:
        invocation = continued_invocation(invocation, each.invocation)
    started = next((part.started for part in parts if part.started is not None), None)
    completed = next((part.completed for part in reversed(parts) if part.completed is not None), None)
    if any(part.completed is not None for part in parts[1:]):
        missing = [sentence for part in parts for sentence in part.missing]
        invocation = invocation.model_copy(update={"latency_seconds": _latency(started, completed, missing)})
    return replace(
        first,
        invocation=invocation,
        reference=first.reference or next((each.reference for each in later if each.reference), None),
        reference_id=first.reference_id or next((each.reference_id for each in later if each.reference_id), None),
        dimensions=invocation_dimensions([known for part in parts for known in part.dimensions]),
    )


def withdrawn_turns(session: Session) -> list[Turn]:
    """Returns the invocations of a session of which no event counts any more, as its replaced events tell them.

    Of a session that contains traces only, they are those of the withdrawn traces.

    A former revision of the session can have scores of such an invocation.
    """
    counting_events = session.current_events
    if not any(event.of_invocation for event in session.events):
        withdrawn = (trace for trace in session.traces if trace.metadata.withdrawn)
        return [_derived_turn(trace) for trace in withdrawn if trace.metadata.invocation_id is None]
    continued = _continued_turns(counting_events) if session.revision else []
    if len(counting_events) == len(session.events):
        return continued
    counting = {event.invocation_id for event in counting_events}
    replaced = {name for event in session.events if event.replaces for name in event.replaces}
    found: dict[str, _OpenTurn] = {}
    for event in session.events:
        name = event.invocation_id
        withdraws = event.replaces is not None and event.event_id in event.replaces
        if name and name not in counting and event.event_id in replaced and not withdraws:
            found.setdefault(name, _OpenTurn(name)).add(event)
    return [*continued, *(turn.close(index) for index, turn in enumerate(found.values()))]


def _continued_turns(events: Sequence[InvocationEvent]) -> list[Turn]:
    """Returns the invocations that only continue others, as their own events tell them.

    A former revision has scores of them if the event with the call had not arrived yet.
    """
    steps = event_steps(events)
    if all(step.name == step.turn for step in steps):
        return []
    remaining = {step.turn for step in steps}
    found: dict[str, _OpenTurn] = {}
    for step in steps:
        if step.name not in remaining and not step.is_anonymous:
            found.setdefault(step.name, _OpenTurn(step.name)).add(step.event)
    return [turn.close(index) for index, turn in enumerate(found.values())]


def _with_unique_ids(turns: list[Turn]) -> list[Turn]:
    """Renames duplicate invocation ids, because result ids depend on them: the second `a` becomes `a#<index>`."""
    used: set[str] = set()
    for index, turn in enumerate(turns):
        name = turn.invocation.invocation_id
        while name in used:
            name = f"{name}#{index}"
        used.add(name)
        if name != turn.invocation.invocation_id:
            turns[index] = replace(turn, invocation=turn.invocation.model_copy(update={"invocation_id": name}))
    return turns


def trace_dimensions(trace: ReasoningTrace, turns: Sequence[Turn]) -> Dimensions:
    """Returns the dimensions of the invocation that a trace tells of, else those that the session's invocations share.

    A trace tells of an invocation if the invocation was derived from it, or if it names the invocation.
    """
    for turn in turns:
        if turn.invocation.invocation_id in (trace.id, trace.metadata.invocation_id):
            return turn.dimensions
    return session_dimensions([turn.dimensions for turn in turns])


def _derived_turn(trace: ReasoningTrace) -> Turn:
    agent = trace.metadata.agent_id
    known = Dimensions(agent_name=agent) if agent and len(agent) <= MAX_SHORT_CHARS else UNKNOWN
    return Turn(derived_invocation(trace), started_at=known_time(trace.created_at), dimensions=known)


@dataclass(slots=True)
class _OpenTurn:
    """Collects the events of an invocation."""

    invocation_id: str
    user_content: Content | None = None
    final_response: Content | None = None
    uses: list[FunctionCall] = field(default_factory=list)
    responses: list[FunctionResponse] = field(default_factory=list)
    intermediate_responses: list[tuple[str, list[Part]]] = field(default_factory=list)
    context: list[RetrievedChunk] | None = None
    model_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    began: float = 0.0
    first: datetime | None = None
    started: datetime | None = None
    completed: datetime | None = None
    error: str | None = None
    recorded: Invocation | None = None
    reference: Reference | None = None
    reference_id: str | None = None
    app_name: str = ""
    missing: list[str] = field(default_factory=list)
    dimensions: list[InvocationEvent | Dimensions] = field(default_factory=list)

    def add_answer(self, event: InvocationEvent, call_id: str) -> None:
        """Adds the response to one call alone, of an event that otherwise belongs to another invocation."""
        self.responses += [response for response in responses_in(event) if response.id == call_id]

    def add(self, event: InvocationEvent, *, without: Collection[str] = ()) -> None:
        """Adds an event, without the responses to some calls."""
        self.began = self.began or event.occurred_at.timestamp()
        # The events of a session are in the order of time.
        self.first = self.first or known_time(event.occurred_at)
        self.reference = event.reference or self.reference
        self.reference_id = event.reference_id or self.reference_id
        self.app_name = event.app_name or self.app_name
        if event.missing:
            self.missing += event.missing
        match event:
            case ToolCalled():
                call = FunctionCall.trusted(
                    id=event.call_id, name=event.name, args=event.args, model_call_id=event.model_call_id
                )
                self.uses.append(call)
            case ToolReturned():
                found = read_result(event.response)
                if found.unread:
                    self.missing += not_text_of_result(event.name, found.value, found.unread)
                answer: JsonValue = found.value if event.error is None else {"error": event.error}
                self.responses.append(FunctionResponse.trusted(id=event.call_id, name=event.name, response=answer))
            case ModelCalled():
                self.model_calls += 1
                self.input_tokens = known_sum((self.input_tokens, event.input_tokens))
                self.output_tokens = known_sum((self.output_tokens, event.output_tokens))
            case InvocationStarted():
                self.user_content = event.user_content or self.user_content
                self.started = self.started or event.occurred_at
            case InvocationCompleted():
                self.final_response = event.final_response or self.final_response
                self.error = event.error
                self.completed = event.occurred_at
            case ResponseIntermediate():
                self.intermediate_responses.append((event.author, event.content.parts or []))
            case RetrievalReturned():
                self.context = [*(self.context or ()), *event.chunks]
            case InvocationRecorded():
                self.recorded = event.invocation
                if event.row is not None:
                    self.recorded, expected, known = read_row(event.row)
                    self.reference = event.reference or expected or self.reference
                    self.dimensions.append(known)
                if self.recorded is not None:
                    self.recorded = with_text_results(self.recorded)
                if self.recorded is not None and without:
                    self.recorded = without_responses(self.recorded, without)
        self.dimensions.append(event)

    def close(self, index: int) -> Turn:
        name = self.invocation_id or (self.recorded.invocation_id if self.recorded else "") or f"#{index}"
        if self.recorded is not None:
            error = self.recorded.error or self.error
            invocation = self.recorded.model_copy(update={"invocation_id": name, "error": error})
        else:
            invocation = Invocation.trusted(
                invocation_id=name,
                user_content=self.user_content,
                final_response=self.final_response,
                intermediate_data=IntermediateData.trusted(
                    tool_uses=self.uses,
                    tool_responses=self.responses,
                    intermediate_responses=self.intermediate_responses,
                ),
                creation_timestamp=self.began,
                rubrics=None,
                app_details=None,
                retrieved_context=self.context,
                token_usage=self._usage(),
                latency_seconds=_latency(self.started, self.completed, self.missing),
                duration=None,
                inference_call_count=self.model_calls or None,
                unread=self.missing or None,
                error=self.error,
                labels=None,
                derived=False,
            )
        known = invocation_dimensions(self.dimensions)
        invocation = with_text_messages(invocation_without_reasoning(invocation))
        return Turn(invocation, self.reference, self.reference_id, self.app_name, self.first, known)

    def _usage(self) -> TokenUsage | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return TokenUsage.trusted(input_tokens=self.input_tokens, output_tokens=self.output_tokens)


def _latency(started: datetime | None, completed: datetime | None, missing: Sequence[str]) -> float | None:
    if started is None or completed is None or completed < started:
        return None
    if any(each.startswith("the times ") for each in missing):
        # The source of the events has made their times up.
        return None
    return (completed - started).total_seconds()

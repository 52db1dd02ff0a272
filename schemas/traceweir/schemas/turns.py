"""Folds the events of a session into invocations, each with its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import JsonValue

from traceweir.schemas.dimensions import (
    MAX_SHORT_CHARS,
    UNKNOWN,
    Dimensions,
    invocation_dimensions,
    session_dimensions,
)
from traceweir.schemas.evaluation_row_turn import read_row
from traceweir.schemas.events import (
    InvocationCompleted,
    InvocationEvent,
    InvocationRecorded,
    InvocationStarted,
    ModelCalled,
    ResponseIntermediate,
    RetrievalReturned,
    SessionEnded,
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
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import Session
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import ReasoningTrace

_CALLS = ("tool_call", "error_recovery")


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


def turns_of(session: Session) -> list[Turn]:
    """Returns the invocations of a session in the order of their first events.

    Events without an invocation id belong to the invocation of the event before them; an `invocation.started` or
    `invocation.recorded` without an id starts a new invocation. An invocation without an id is named `#<index>`,
    counted from 0. A session that contains traces only has a derived invocation for each trace that names no invocation.
    An invocation that a trace names has events, which have not arrived yet; results of a derived invocation would stay
    beside the results of the real one.
    """
    open_turns: dict[str, _OpenTurn] = {}
    anonymous = 0
    latest = ""
    for event in session.current_events:
        if isinstance(event, SessionEnded):
            continue
        key = event.invocation_id
        if not key:
            if not latest or isinstance(event, InvocationStarted | InvocationRecorded):
                anonymous += 1
                # The ids of senders do not start with a control character.
                latest = f"\0{anonymous}"
            key = latest
        latest = key
        turn = open_turns.get(key)
        if turn is None:
            turn = open_turns[key] = _OpenTurn(event.invocation_id)
        turn.add(event)
    if not open_turns:
        return [_derived_turn(trace) for trace in session.current_traces if trace.metadata.invocation_id is None]
    return _with_unique_ids([turn.close(index) for index, turn in enumerate(open_turns.values())])


def withdrawn_turns(session: Session) -> list[Turn]:
    """Returns the invocations of a session of which no event counts any more, as its replaced events tell them.

    Of a session that contains traces only, they are those of the withdrawn traces.

    A former revision of the session can have scores of such an invocation.
    """
    counting_events = session.current_events
    if not any(not isinstance(event, SessionEnded) for event in session.events):
        withdrawn = (trace for trace in session.traces if trace.metadata.withdrawn)
        return [_derived_turn(trace) for trace in withdrawn if trace.metadata.invocation_id is None]
    if len(counting_events) == len(session.events):
        return []
    counting = {event.invocation_id for event in counting_events}
    replaced = {name for event in session.events if event.replaces for name in event.replaces}
    found: dict[str, _OpenTurn] = {}
    for event in session.events:
        name = event.invocation_id
        withdraws = event.replaces is not None and event.event_id in event.replaces
        if name and name not in counting and event.event_id in replaced and not withdraws:
            found.setdefault(name, _OpenTurn(name)).add(event)
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


def derived_invocation(trace: ReasoningTrace) -> Invocation:
    """Returns an invocation with the objective, the tool calls and the result of a trace.

    A tool call is a step with a tool of type `tool_call`, or of type `error_recovery` for a call that recovers from an
    error. An `observation` with a tool is the response to a call.
    """
    uses = [
        FunctionCall.trusted(id=None, name=step.tool.name, args=step.input)
        for step in trace.steps
        if step.tool is not None and step.type in _CALLS
    ]
    return Invocation.trusted(
        invocation_id=trace.id,
        user_content=_message(trace.task.objective, "user"),
        final_response=_message(trace.outcome.result_summary, "model"),
        intermediate_data=IntermediateData.trusted(tool_uses=uses, tool_responses=[], intermediate_responses=[]),
        creation_timestamp=trace.created_at.timestamp(),
        rubrics=None,
        app_details=None,
        retrieved_context=None,
        token_usage=None,
        latency_seconds=None,
        duration=None,
        inference_call_count=None,
        unread=None,
        labels=None,
        derived=True,
    )


def _message(text: str, role: str) -> Content:
    part = Part.trusted(text=text, function_call=None, function_response=None, thought=None)
    return Content.trusted(parts=[part], role=role)


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
    recorded: Invocation | None = None
    reference: Reference | None = None
    reference_id: str | None = None
    app_name: str = ""
    missing: list[str] = field(default_factory=list)
    dimensions: list[InvocationEvent | Dimensions] = field(default_factory=list)

    def add(self, event: InvocationEvent) -> None:
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
                self.uses.append(FunctionCall.trusted(id=event.call_id, name=event.name, args=event.args))
            case ToolReturned():
                answer: JsonValue = event.response if event.error is None else {"error": event.error}
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
        self.dimensions.append(event)

    def close(self, index: int) -> Turn:
        name = self.invocation_id or (self.recorded.invocation_id if self.recorded else "") or f"#{index}"
        if self.recorded is not None:
            invocation = self.recorded.model_copy(update={"invocation_id": name})
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
                latency_seconds=self._latency(),
                duration=None,
                inference_call_count=self.model_calls or None,
                unread=self.missing or None,
                labels=None,
                derived=False,
            )
        known = invocation_dimensions(self.dimensions)
        return Turn(invocation, self.reference, self.reference_id, self.app_name, self.first, known)

    def _latency(self) -> float | None:
        if self.started is None or self.completed is None or self.completed < self.started:
            return None
        if any(each.startswith("the times ") for each in self.missing):
            # The source of the events has made their times up.
            return None
        return (self.completed - self.started).total_seconds()

    def _usage(self) -> TokenUsage | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return TokenUsage.trusted(input_tokens=self.input_tokens, output_tokens=self.output_tokens)

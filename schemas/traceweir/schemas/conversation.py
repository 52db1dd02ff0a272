"""Tells what happened in a session as people read it: questions, tool calls with their results, and answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import InvocationEvent, ModelCalled, ResponseIntermediate, ToolReturned
from traceweir.schemas.invocation import Content, FunctionResponse, Invocation, InvocationEvents
from traceweir.schemas.session import Session
from traceweir.schemas.tool_results import places_of_results
from traceweir.schemas.turns import Turn, turns_with_events


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool with what the tool returned."""

    name: str
    """Name of the tool."""
    call_known: bool = True
    """Whether the session has the call; a session can have a result only."""
    args: JsonObject | None = None
    """Arguments of the call; None if they are missing."""
    response_known: bool = False
    """Whether the session has the result."""
    response: JsonValue = None
    """What the tool returned."""
    error: str | None = None
    """The error message of a failed call."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An invocation: what the user asked, what the agent did, and what it answered."""

    turn: Turn
    """The invocation with its dimensions."""
    question: str | None
    """What the user asked; None if it is missing."""
    answer: str | None
    """What the agent answered; None if it is missing."""
    tools: list[ToolUse] = field(default_factory=list)
    """The calls of tools, in order; then results without a call."""
    agents: list[str] = field(default_factory=list)
    """Names of the agents that spoke, in order."""
    models: list[str] = field(default_factory=list)
    """Names of the models that were called, in order."""


def conversation_of(session: Session) -> list[Exchange]:
    """Returns the exchanges of a session, in order."""
    found = []
    for turn, events in turns_with_events(session):
        invocation = turn.invocation
        found.append(
            Exchange(
                turn,
                question=text_of(invocation.user_content),
                answer=text_of(invocation.final_response),
                tools=_tool_uses(invocation, events),
                agents=list(dict.fromkeys(_authors(invocation, events))),
                models=list(dict.fromkeys(each.model for each in events if isinstance(each, ModelCalled))),
            )
        )
    return found


def text_of(content: Content | None) -> str | None:
    """Returns the texts of a content, a line each; None without a text."""
    texts = [part.text for part in (content.parts if content is not None else None) or () if part.text is not None]
    return "\n".join(texts) if texts else None


class _Answer(NamedTuple):
    """The response of a tool, and what its event tells beside it."""

    response: FunctionResponse
    error: str | None
    is_missing: bool


def _tool_uses(invocation: Invocation, events: Sequence[InvocationEvent]) -> list[ToolUse]:
    calls = invocation.tool_uses
    responses = invocation.tool_responses
    returned = [each for each in events if isinstance(each, ToolReturned)]
    errors = {each.call_id or each.name: each.error for each in returned if each.error}
    answers = _answers_of(responses, returned)
    places, others = places_of_results(calls, responses)
    found = []
    for call, place in zip(calls, places, strict=True):
        answer = None if place is None else answers[place]
        found.append(
            ToolUse(
                call.name,
                args=call.args,
                response_known=answer is not None and not answer.is_missing,
                response=answer.response.response if answer is not None else None,
                error=answer.error if answer is not None else errors.get(call.id or call.name),
            )
        )
    return found + [
        ToolUse(
            each.response.name, call_known=False, response_known=not each.is_missing, response=each.response.response
        )
        for each in (answers[place] for place in others)
    ]


def _answers_of(responses: Sequence[FunctionResponse], returned: Sequence[ToolReturned]) -> list[_Answer]:
    if len(returned) == len(responses):
        pairs = zip(responses, returned, strict=True)
        return [_Answer(each, event.error, _lacks_response(each, event)) for each, event in pairs]
    # The invocation was recorded as a whole, and some responses have events beside it.
    by_key = {each.call_id or each.name: each for each in returned}
    answers = []
    for response in responses:
        event = by_key.get(response.id or response.name)
        is_missing = event is not None and _lacks_response(response, event)
        answers.append(_Answer(response, event.error if event is not None else None, is_missing))
    return answers


def _lacks_response(response: FunctionResponse, event: ToolReturned) -> bool:
    return response.response is None and bool(event.missing) and event.response is None


def _authors(invocation: Invocation, events: Sequence[InvocationEvent]) -> Iterable[str]:
    data = invocation.intermediate_data
    if isinstance(data, InvocationEvents):
        yield from (step.author for step in data.invocation_events if step.author)
    elif data is not None:
        yield from (author for author, _ in data.intermediate_responses if author)
    yield from (each.author for each in events if isinstance(each, ResponseIntermediate) and each.author)

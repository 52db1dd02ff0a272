"""Draws a session as lines of plain text: what the user asked, what the agent did, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson

from traceweir.schemas.events import InvocationEvent, ModelCalled, ResponseIntermediate, ToolReturned
from traceweir.schemas.figures import counted
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    Part,
)
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.turns import Turn, turns_of

_LONGEST = 2_000
"""The most characters of one text; `--json` prints whole texts."""


def lines_of(session: Session) -> Iterator[str]:
    """Yields the lines of a session; control characters in the text of agents are escaped."""
    turns = turns_of(session)
    segment = f", segment {session.segment}" if session.segment else ""
    yield (
        f"session {_shown(session.session_id)}{segment}: {counted(len(turns), 'invocation')}, "
        f"{counted(len(session.traces), 'reasoning trace')}, closed because {session.closed_because}"
    )
    for turn in turns:
        events = [each for each in session.events if each.invocation_id == turn.invocation.invocation_id]
        yield from (f"  {line}" for line in _turn(turn, events))


def _turn(turn: Turn, events: Sequence[InvocationEvent]) -> Iterator[str]:
    invocation = turn.invocation
    details = [f"app {_shown(turn.app_name)}"] if turn.app_name else []
    if turn.started_at is not None:
        details.append(turn.started_at.isoformat())
    if invocation.latency_seconds is not None:
        details.append(f"{invocation.latency_seconds:.3f} s")
    yield f"invocation {', '.join([_shown(invocation.invocation_id), *details])}"
    yield from (f"  {line}" for line in _content(invocation, events))


def _content(invocation: Invocation, events: Sequence[InvocationEvent]) -> Iterator[str]:
    question, answer = _text_of(invocation.user_content), _text_of(invocation.final_response)
    yield f"question: {'missing' if question is None else _shown(question)}"
    calls, responses = _tools(invocation)
    errors = {each.call_id or each.name: each.error for each in events if isinstance(each, ToolReturned) and each.error}
    open_responses = list(responses)
    for call in calls:
        yield f"tool {_shown(call.name)}({'args missing' if call.args is None else _json(call.args)})"
        found = next((each for each in open_responses if _answers(each, call)), None)
        if found is not None:
            open_responses.remove(found)
        error = errors.get(call.id or call.name)
        if error:
            yield f"  error: {_shown(error)}"
        elif found is None:
            yield "  result: missing"
        else:
            yield f"  result: {_json(found.response)}"
    for each in open_responses:
        yield f"tool {_shown(each.name)}: the call is missing"
        yield f"  result: {_json(each.response)}"
    agents = dict.fromkeys(_authors(invocation, events))
    if agents:
        yield f"agents: {', '.join(map(_shown, agents))}"
    if invocation.retrieved_context is not None:
        yield f"retrieved: {counted(len(invocation.retrieved_context), 'chunk')}"
    yield f"answer: {'missing' if answer is None else _shown(answer)}"
    models = dict.fromkeys(each.model for each in events if isinstance(each, ModelCalled))
    usage = invocation.token_usage
    tokens = "tokens: missing"
    if usage is not None and (usage.input_tokens, usage.output_tokens) != (None, None):
        tokens = f"tokens: {_figure(usage.input_tokens)} in, {_figure(usage.output_tokens)} out"
    yield tokens + (f" ({', '.join(map(_shown, models))})" if models else "")
    if invocation.unread:
        yield f"not read: {', '.join(map(_shown, invocation.unread))}"


def _tools(invocation: Invocation) -> tuple[list[FunctionCall], list[FunctionResponse]]:
    data = invocation.intermediate_data
    if isinstance(data, IntermediateData):
        return data.tool_uses, data.tool_responses
    parts = _parts(data)
    return (
        [part.function_call for part in parts if part.function_call is not None],
        [part.function_response for part in parts if part.function_response is not None],
    )


def _parts(data: InvocationEvents | None) -> list[Part]:
    steps = data.invocation_events if data is not None else []
    return [part for step in steps if step.content is not None for part in step.content.parts or ()]


def _authors(invocation: Invocation, events: Sequence[InvocationEvent]) -> Iterable[str]:
    data = invocation.intermediate_data
    if isinstance(data, InvocationEvents):
        yield from (step.author for step in data.invocation_events if step.author)
    elif data is not None:
        yield from (author for author, _ in data.intermediate_responses if author)
    yield from (each.author for each in events if isinstance(each, ResponseIntermediate) and each.author)


def _answers(response: FunctionResponse, call: FunctionCall) -> bool:
    return response.id == call.id if response.id and call.id else response.name == call.name


def _text_of(content: Content | None) -> str | None:
    texts = [part.text for part in (content.parts if content is not None else None) or () if part.text is not None]
    return "\n".join(texts) if texts else None


def _json(value: object) -> str:
    return _shown(orjson.dumps(value).decode())


def _figure(count: int | None) -> str:
    return "missing" if count is None else str(count)


def _shown(text: str) -> str:
    return printable(text, _LONGEST)

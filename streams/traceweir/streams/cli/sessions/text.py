"""Draws a session as lines of plain text: what the user asked, what the agent did, and what is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from traceweir.schemas.conversation import Exchange, ToolUse, conversation_of
from traceweir.schemas.figures import counted
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.base.json_values import write_json

_REASON = re.compile(r" (?:is|are) not (?:in the spans|in this trace|in the trace|read)(: )")
"""What stands between a part that was not read and the reason or the way out."""
_LONGEST = 2_000
"""The most characters of one text; `--json` prints whole texts."""


def lines_of(session: Session) -> Iterator[str]:
    """Yields the lines of a session; control characters in the text of agents are escaped."""
    exchanges = conversation_of(session)
    segment = f", segment {session.segment}" if session.segment else ""
    yield (
        f"session {_shown(session.session_id)}{segment}: {counted(len(exchanges), 'invocation')}, "
        f"{counted(len(session.current_traces), 'reasoning trace')}, closed because {session.closed_because}"
    )
    reasons = dict[str, int]()
    for exchange in exchanges:
        yield from (f"  {line}" for line in _exchange(exchange, reasons))
    yield from (f"  [{number}] {_shown(reason)}" for reason, number in reasons.items())


def _exchange(exchange: Exchange, reasons: dict[str, int]) -> Iterator[str]:
    turn = exchange.turn
    invocation = exchange.turn.invocation
    details = [f"app {_shown(turn.app_name)}"] if turn.app_name else []
    if turn.started_at is not None:
        details.append(turn.started_at.isoformat())
    if invocation.latency_seconds is not None:
        details.append(f"{invocation.latency_seconds:.3f} s")
    yield f"invocation {', '.join([_shown(invocation.invocation_id), *details])}"
    yield from (f"  {line}" for line in _content(exchange, reasons))


def _content(exchange: Exchange, reasons: dict[str, int]) -> Iterator[str]:
    invocation = exchange.turn.invocation
    yield f"question: {'missing' if exchange.question is None else _shown(exchange.question)}"
    for use in exchange.tools:
        yield from _tool(use)
    if exchange.agents:
        yield f"agents: {', '.join(map(_shown, exchange.agents))}"
    if invocation.retrieved_context is not None:
        yield f"retrieved: {counted(len(invocation.retrieved_context), 'chunk')}"
    yield f"answer: {'missing' if exchange.answer is None else _shown(exchange.answer)}"
    if invocation.error:
        yield f"error: {_shown(invocation.error)}"
    usage = invocation.token_usage
    tokens = "tokens: missing"
    if usage is not None and (usage.input_tokens, usage.output_tokens) != (None, None):
        tokens = f"tokens: {_figure(usage.input_tokens)} in, {_figure(usage.output_tokens)} out"
    yield tokens + (f" ({', '.join(map(_shown, exchange.models))})" if exchange.models else "")
    if invocation.unread:
        yield f"not read: {', '.join(_numbered(sentence, reasons) for sentence in invocation.unread)}"


def _numbered(sentence: str, reasons: dict[str, int]) -> str:
    """Returns what was not read, with the number of the reason, which most sentences of a session have in common."""
    found = _REASON.search(sentence)
    if found is None:
        return _shown(sentence)
    number = reasons.setdefault(sentence[found.end() :], len(reasons) + 1)
    return f"{_shown(sentence[: found.start(1)])} [{number}]"


def _tool(use: ToolUse) -> Iterator[str]:
    if not use.call_known:
        yield f"tool {_shown(use.name)}: the call is missing"
    else:
        yield f"tool {_shown(use.name)}({'args missing' if use.args is None else _json(use.args)})"
    if use.error:
        yield f"  error: {_shown(use.error)}"
    elif use.response_known:
        yield f"  result: {_json(use.response)}"
    else:
        yield "  result: missing"


def _json(value: JsonValue) -> str:
    return _shown(write_json(value).decode())


def _figure(count: int | None) -> str:
    return "missing" if count is None else str(count)


def _shown(text: str) -> str:
    return printable(text, _LONGEST)

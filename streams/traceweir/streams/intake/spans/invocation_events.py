"""Writes an invocation, as read from its spans, as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from traceweir.schemas.dimensions import UNKNOWN_MODEL
from traceweir.streams.intake.spans.attributes import ABSENT, is_cut, plain, plain_text
from traceweir.streams.intake.spans.content import bare_answer, is_protocol
from traceweir.streams.intake.spans.identity import MAX_NAME_CHARS, dimensions
from traceweir.streams.intake.spans.records import Reading
from traceweir.streams.intake.spans.tool_calls import ToolCall

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_214_400 * 10**9
"""The last time that is written: the end of the year 9999, less a day for the events after it."""


def events_of(reading: Reading, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Returns the events of an invocation in the order in which they happened; their times rise.

    Args:
        reading: The invocation.
        names: The names of the tool calls of the trace. If the span above two invocations is missing, both can tell of
            one call: the model is in one, the tool in the other. Only the first one is named after the call's id.
    """
    # Every value is made plain where it enters a document: a walk through each finished event takes twice the time.
    turn = reading.turn
    around = [turn.roots[0].span, *(node.span for node in turn.above)]
    model = next((call.model for call in reading.models if call.model), "")
    common = plain(dimensions(around, turn.nodes, reading.app, reading.agent, model, reading.user_id))
    envelope = plain({"session_id": reading.session_id, "invocation_id": reading.invocation_id})
    found: list[tuple[tuple[int, int, int, str], dict[str, Any]]] = []
    begin = (turn.start_ns, -1, 0, "")
    content = {"user_content": _content(reading.question, "user")} if reading.question else {}
    started = {"type": "invocation.started", **content, **reading.missing.on("question")}
    found.append((begin, {"id": f"{reading.invocation_id}:started", **started}))
    # Some spans of model calls end after the tools that the model asked for.
    asked_at: dict[int, int] = {}
    for call in reading.calls:
        if call.run is not None:
            asked_at[call.asked_ns] = min(call.order[0], asked_at.get(call.asked_ns, call.asked_ns))
    for each in reading.models:
        span = each.nodes[0].span
        # The span of several calls is around the tools of the earlier ones.
        at_ns = each.end_ns if each.earlier else asked_at.get(each.end_ns, each.end_ns)
        where = (max(at_ns, turn.start_ns), 0, 0, span.span_id)
        called = {"type": "model.called", "model": plain_text(each.model[:MAX_NAME_CHARS]) or UNKNOWN_MODEL}
        for earlier in each.earlier:
            at = (max(earlier.time_ns, turn.start_ns), 0, 0, span.span_id)
            counts = {"input_tokens": earlier.input_tokens, "output_tokens": earlier.output_tokens}
            found.append((at, {"id": f"{span.span_id}:model:{earlier.time_ns}", **called, **counts}))
        tokens = {"input_tokens": each.input_tokens, "output_tokens": each.output_tokens}
        known_tokens = {name: value for name, value in tokens.items() if value is not None}
        found.append((where, {"id": f"{span.span_id}:model", **called, **known_tokens}))
        for place, message in enumerate(each.rounds):
            if message.role == "assistant" and message.text and not is_protocol(message.text):
                at = (max(each.start_ns, turn.start_ns), 1, place, span.span_id)
                said = _intermediate(message.text, each.agent)
                found.append((at, {"id": f"{span.span_id}:round:{place}", **said}))
        text = each.text
        if text and not is_protocol(text) and (each.calls or bare_answer(text).strip() != reading.answer.strip()):
            said = _intermediate(text, each.agent)
            found.append(((where[0], 1, 0, span.span_id), {"id": f"{span.span_id}:text", **said}))
    for retrieval in reading.retrievals:
        document = {"type": "retrieval.returned", "chunks": plain(retrieval.chunks, 1)}
        found.append(
            ((retrieval.end_ns, 2, 0, retrieval.span_id), {"id": f"{retrieval.span_id}:retrieved", **document})
        )
    calls_of_answer = Counter(call.answer for call in reading.calls if not call.is_earlier)
    for place, call in enumerate(reading.calls):
        name = names[id(call)]
        call_id = call.call_id
        # A result finds its call by the id, which models that count calls repeat.
        if call_id and name == call.place:
            call_id = f"{call_id}#{name}"
        answer = call.answer if calls_of_answer[call.answer] > 1 else ""
        found += _tool_events(reading, call, call_id, place, name, answer)
    found.sort(key=lambda each: each[0])
    last: dict[str, Any] = {
        "type": "invocation.completed",
        **reading.missing.on(
            *("answer", "end", "choices", "tokens", "model", "tools", "agent", "root", "session", "user", "tool"),
            "operation",
        ),
    }
    if reading.error:
        last["error"] = reading.error
    if reading.answer:
        last["final_response"] = _content(reading.answer, "model")
    found.append(((turn.end_ns, 9, 0, ""), {"id": f"{reading.invocation_id}:completed", **last}))
    events = []
    latest_us = -1
    for (at_ns, *_), document in found:
        latest_us = max(_microseconds(at_ns), latest_us + 1)
        event_id = event_id_of(reading.trace_id, document.pop("id"))
        occurred_at = _text(latest_us)
        events.append({"event_id": plain_text(event_id), **envelope, "occurred_at": occurred_at, **common, **document})
    return events


def _intermediate(text: str, agent: str) -> dict[str, Any]:
    return {"type": "response.intermediate", "author": plain_text(agent), "content": _content(text, "model")}


def event_id_of(trace_id: str, name: str) -> str:
    """Returns the id of an event, from its name in the trace."""
    prefix = f"{trace_id}:"
    return f"otel:{prefix}{name.removeprefix(prefix)}"


def _tool_events(
    reading: Reading, call: ToolCall, call_id: str, place: int, name: str, answer: str
) -> list[tuple[tuple[int, int, int, str], dict[str, Any]]]:
    """Returns the call and its result. Calls keep the order of the model, a result comes after its call.

    Of a call of an earlier invocation there is the result alone.
    """
    known = {"name": plain_text(call.name), **({"call_id": plain_text(call_id)} if call_id else {})}
    args = arguments_of(call)
    document = {"type": "tool.called", **known, **({} if args is None else {"args": plain(args, 1)})}
    document |= {"model_call_id": plain_text(answer)} if answer else {}
    document |= reading.missing.on_call(place, "args")
    begin = max(call.order[0], reading.turn.start_ns)
    found = [] if call.is_earlier else [((begin, 3, place, ""), {"id": f"{name}:called", **document})]
    if call.result is ABSENT and call.error is None:
        note = reading.missing.on_call(place, "result")
        if not note:
            return found
        returned: dict[str, Any] = {"type": "tool.returned", **known, **note}
    else:
        returned = {
            "type": "tool.returned",
            **known,
            "response": None if call.result is ABSENT else plain(call.result, 1),
        }
        returned |= reading.missing.on_call(place, "result", "outcome", "error", "parts")
    if call.error is not None:
        returned["error"] = plain_text(call.error) or "the tool failed; its span tells no message"
    end = max(call.run.span.end_ns if call.run else begin, begin)
    found.append(((end, 4, place, ""), {"id": f"{name}:returned", **returned}))
    return found


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """Returns the arguments of a call as an object; None if the spans do not have them.

    A tool can take a text instead of an object, which is written as `{"input": text}`.
    """
    if call.args is ABSENT or call.args is None or is_cut(call.args):
        return None
    return call.args if isinstance(call.args, dict) else {"input": call.args}


def end_of_session(trace_id: str, after: str, events: int, traces: int) -> dict[str, Any]:
    """Returns the end of a session that is one trace, because the spans tell no id of a session.

    Args:
        trace_id: The trace, whose id is that of the session.
        after: When the last event occurred.
        events: Number of the session's events without this one.
        traces: Number of its reasoning traces.
    """
    at = datetime.fromisoformat(after) + timedelta(microseconds=1)
    return {
        "event_id": f"otel:{trace_id}:ended",
        "session_id": trace_id,
        "occurred_at": _text((at - _EPOCH) // timedelta(microseconds=1)),
        "type": "session.ended",
        "expects": {"events": events + 1, "traces": traces},
    }


def _content(text: str, role: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": plain_text(text)}]}


def _microseconds(at_ns: int) -> int:
    return min(max(at_ns, 0), _LAST_NS) // 1000


def utc_time(at_ns: int) -> str:
    """Returns a time as text, in UTC with a Z."""
    return _text(_microseconds(at_ns))


def _text(at_us: int) -> str:
    seconds, fraction = divmod(at_us, 1_000_000)
    return f"{_seconds_text(seconds)}.{fraction:06d}Z"


# The events of a trace lie in a few seconds.
@lru_cache(maxsize=1024)
def _seconds_text(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")

"""Writes an invocation, as read from its spans, as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from traceweir.schemas.dimensions import UNKNOWN_MODEL
from traceweir.schemas.event_steps import QUESTION_OF_RUN_BEFORE
from traceweir.streams.intake.spans.attributes import ABSENT, is_cut, plain, plain_text
from traceweir.streams.intake.spans.content import (
    bare_answer,
    began_with_question,
    given_answer,
    is_protocol,
    question_of,
    reads_only_results,
    resumption_of,
    written_answer,
)
from traceweir.streams.intake.spans.forced_answers import forced_answers
from traceweir.streams.intake.spans.identity import (
    MAX_NAME_CHARS,
    agent_name,
    app_of,
    dimensions,
    own_agent_name,
)
from traceweir.streams.intake.spans.missing import Missing
from traceweir.streams.intake.spans.model_calls import ModelCall, read_model_calls
from traceweir.streams.intake.spans.retrieval import Retrieval, read_retrievals
from traceweir.streams.intake.spans.texts_in_values import chat_text
from traceweir.streams.intake.spans.tool_calls import ToolCall, read_tool_calls
from traceweir.streams.intake.spans.tool_spans import tool_name
from traceweir.streams.intake.spans.turn_errors import error_of_turn
from traceweir.streams.intake.spans.turns import TurnSpans
from traceweir.streams.intake.spans.unread_names import unread_names
from traceweir.streams.intake.spans.unread_operations import unread_operations

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_214_400 * 10**9
"""The last time that is written: the end of the year 9999, less a day for the events after it."""


_NO_TEXT = "the question is not in the spans: the run goes on with the answer of a person, which is no text"
_OF_RUN_BEFORE = f"{QUESTION_OF_RUN_BEFORE}: this run only goes on with it, after the answer of a person"
_OF_CALL_BEFORE = f"{QUESTION_OF_RUN_BEFORE}: this model call only goes on with it, and its input has the results alone"


@dataclass(slots=True)
class Reading:
    """An invocation as read from its spans."""

    turn: TurnSpans
    trace_id: str
    session_id: str
    user_id: str
    invocation_id: str
    question: str
    answer: str
    failed: bool
    app: str
    error: str
    """The error message of the turn; empty if it did not fail."""
    agent: str
    models: list[ModelCall]
    calls: list[ToolCall]
    retrievals: list[Retrieval]
    missing: Missing

    @classmethod
    def of(cls, turn: TurnSpans, session_id: str, user_id: str, *, is_first: bool) -> Reading:
        """Reads an invocation.

        The first invocation of a trace has the trace's id, so that the id stays if an outer span comes late. A turn of a
        conversation has an id of its own: the turns before it can be forgotten when its spans come.
        """
        root = turn.roots[0].span
        models = read_model_calls(turn.nodes)
        # What is beside the agents can be the title of a chat.
        own = [model for model in models if not turn.is_beside(model.nodes[0])] or models
        failed = turn.failed
        given = "" if failed else given_answer(turn, own)
        ran = {tool_name(node.span) for node in turn.nodes if node.kind == "tool"}
        forced = forced_answers(own, ran, given)
        has_whole_history = turn.bare or began_with_question(turn, models)
        resumption = resumption_of(turn)
        only_results = turn.bare and reads_only_results(models)
        calls = read_tool_calls(
            turn.nodes,
            models,
            has_whole_history=has_whole_history,
            answering=forced.names,
            resumes=resumption is not None or only_results,
        )
        answers_calls = any(call.is_earlier for call in calls)
        question = question_of(turn, own) if resumption is None else resumption
        if answers_calls:
            # The answer of a person lets calls of a former invocation go on, and is no question.
            question = ""
        answer = "" if failed else chat_text(given or forced.text) or written_answer(turn, own)
        named = (own_agent_name(node) for node in turn.nodes if node.kind in ("agent", "workflow", "chain", "llm"))
        agent = agent_name(turn.roots[0])
        # There, only an agent that works for the lost one can have a name.
        if not agent and not turn.is_fragment:
            agent = next((name for name in named if name), "")
        has_session = session_id != root.trace_id
        missing = Missing.of(
            turn,
            models,
            calls,
            question=question,
            answer=answer,
            agent=agent,
            failed=failed,
            has_session=has_session,
        )
        if answers_calls:
            missing.parts["question"] = _OF_CALL_BEFORE if only_results else _OF_RUN_BEFORE
        elif resumption is not None and not question:
            missing.parts["question"] = _NO_TEXT
        missing.parts |= unread_names(
            [*turn.above, *turn.nodes],
            has_session=has_session,
            has_user=bool(user_id),
            tools={call.name for call in calls},
        )
        if unread := unread_operations(turn.nodes):
            missing.parts["operation"] = unread
        return cls(
            turn=turn,
            trace_id=root.trace_id,
            session_id=session_id,
            user_id=user_id,
            invocation_id=root.trace_id if is_first and not turn.in_conversation else f"{root.trace_id}:{root.span_id}",
            question=question,
            answer=answer,
            failed=failed,
            app=app_of([root, *(node.span for node in (*turn.above, *turn.nodes))]),
            error=error_of_turn(turn, models, answer),
            agent=agent,
            models=models,
            calls=calls,
            retrievals=read_retrievals(turn.nodes),
            missing=missing,
        )

    @property
    def is_empty(self) -> bool:
        """Whether the spans tell of no step, no question and no answer, as of a change of a state."""
        return not (self.models or self.calls or self.retrievals or self.question or self.answer or self.failed)


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
            *("answer", "end", "tokens", "model", "tools", "agent", "root", "session", "user", "tool", "operation")
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

"""Draws sessions, and writes each in the formats that can hold it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

BEGAN_S = 1_767_225_600


@dataclass(frozen=True)
class DrawnCall:
    """A call of a tool, and what the tool returned."""

    id: str
    name: str
    args: dict[str, Any]
    result: str


@dataclass(frozen=True)
class DrawnTurn:
    """A question, what the agent did, and its answer."""

    question: str
    calls: tuple[DrawnCall, ...]
    answer: str
    thought: str
    """Reasoning beside the answer; empty if there is none."""
    is_approved: bool
    """Whether the result of the last call, and the answer, come after an approval."""


DrawnSession = tuple[DrawnTurn, ...]

_WORDS = st.lists(
    st.sampled_from(
        [
            "Oslo",
            "the",
            "weather",
            "is",
            "rainy",
            "today",
            "Please",
            "book",
            "table",
            "7",
            "for",
            "two",
            "서울",
            "날씨",
            "café",
            "costs",
            "$12.50",
            "error",
        ]
    ),
    min_size=1,
    max_size=8,
).map(" ".join)
_ARGS = st.dictionaries(st.sampled_from(["city", "day", "n"]), st.one_of(_WORDS, st.integers(-9, 9), st.booleans()))


@st.composite
def drawn_sessions(draw: st.DrawFn) -> DrawnSession:
    """Draws a session of one to three turns."""
    turns = []
    for number in range(draw(st.integers(1, 3))):
        calls = tuple(
            DrawnCall(f"c{number}-{place}", draw(st.sampled_from(["look", "book", "pay"])), draw(_ARGS), draw(_WORDS))
            for place in range(draw(st.integers(0, 3)))
        )
        thought = draw(st.one_of(st.just(""), _WORDS))
        turns.append(DrawnTurn(draw(_WORDS), calls, draw(_WORDS), thought, bool(calls) and draw(st.booleans())))
    return tuple(turns)


def openai_chat(session: DrawnSession) -> list[Any]:
    messages: list[Any] = [{"role": "system", "content": "Be kind."}]
    for turn in session:
        messages.append({"role": "user", "content": turn.question})
        for call in turn.calls:
            function = {"name": call.name, "arguments": json.dumps(call.args)}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": call.id, "type": "function", "function": function}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": call.id, "content": call.result})
        thought = f"<think>{turn.thought}</think>" if turn.thought else ""
        messages.append({"role": "assistant", "content": thought + turn.answer})
    return [{"id": "s", "messages": messages}]


def anthropic_messages(session: DrawnSession) -> list[Any]:
    messages: list[Any] = []
    for turn in session:
        messages.append({"role": "user", "content": [{"type": "text", "text": turn.question}]})
        for call in turn.calls:
            use = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args}
            messages.append({"role": "assistant", "content": [use]})
            result = {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": [{"type": "text", "text": call.result}],
            }
            messages.append({"role": "user", "content": [result]})
        thought = [{"type": "thinking", "thinking": turn.thought, "signature": "x"}] if turn.thought else []
        messages.append({"role": "assistant", "content": [*thought, {"type": "text", "text": turn.answer}]})
    return [{"id": "s", "messages": messages}]


def openai_responses(session: DrawnSession) -> list[Any]:
    items: list[Any] = []
    for turn in session:
        items.append({"role": "user", "content": [{"type": "input_text", "text": turn.question}]})
        for call in turn.calls:
            items.append(
                {
                    "type": "function_call",
                    "id": f"fc-{call.id}",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": json.dumps(call.args),
                }
            )
            items.append({"type": "function_call_output", "call_id": call.id, "output": call.result})
        if turn.thought:
            items.append({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": turn.thought}]})
        text = {"type": "output_text", "text": turn.answer, "annotations": []}
        items.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]})
    return [{"object": "response", "id": "s", "input": items[:-1], "output": items[-1:]}]


def gemini_contents(session: DrawnSession) -> list[Any]:
    contents: list[Any] = []
    for turn in session:
        contents.append({"role": "user", "parts": [{"text": turn.question}]})
        for call in turn.calls:
            called = {"functionCall": {"id": call.id, "name": call.name, "args": call.args}}
            contents.append({"role": "model", "parts": [called]})
            response = {"id": call.id, "name": call.name, "response": {"output": call.result}}
            contents.append({"role": "user", "parts": [{"functionResponse": response}]})
        contents.append({"role": "model", "parts": _adk_answer(turn)})
    return [{"id": "s", "contents": contents}]


def _adk_answer(turn: DrawnTurn) -> list[Any]:
    thought = [{"text": turn.thought, "thought": True}] if turn.thought else []
    return [*thought, {"text": turn.answer}]


def adk_session(session: DrawnSession) -> list[Any]:
    events: list[Any] = []

    def event(author: str, invocation_id: str, *parts: Any) -> None:
        content = {"role": "user" if author == "user" else "model", "parts": list(parts)}
        events.append(
            {
                "id": f"ev{len(events)}",
                "invocationId": invocation_id,
                "author": author,
                "timestamp": BEGAN_S + len(events),
                "content": content,
            }
        )

    for number, turn in enumerate(session):
        name = f"e-{number}"
        event("user", name, {"text": turn.question})
        for call in turn.calls:
            event("agent", name, {"functionCall": {"id": call.id, "name": call.name, "args": call.args}})
            if turn.is_approved and call is turn.calls[-1]:
                name = f"e-{number}-approved"
            response = {"id": call.id, "name": call.name, "response": {"output": call.result}}
            event("agent", name, {"functionResponse": response})
        event("agent", name, *_adk_answer(turn))
    return [{"id": "s", "appName": "app", "userId": "u", "events": events}]


def _invocations(session: DrawnSession) -> list[dict[str, Any]]:
    found = []
    for number, turn in enumerate(session):
        uses = [{"id": call.id, "name": call.name, "args": call.args} for call in turn.calls]
        responses = [{"id": call.id, "name": call.name, "response": {"output": call.result}} for call in turn.calls]
        question = {"role": "user", "parts": [{"text": turn.question}]}
        answer = {"role": "model", "parts": _adk_answer(turn)}
        late = responses[-1:] if turn.is_approved else []
        early = responses[:-1] if turn.is_approved else responses
        first: dict[str, Any] = {
            "invocation_id": f"e-{number}",
            "user_content": question,
            "intermediate_data": {"tool_uses": uses, "tool_responses": early},
            "creation_timestamp": BEGAN_S + 10.0 * number,
        }
        if not turn.is_approved:
            found.append(first | {"final_response": answer})
            continue
        found.append(first)
        found.append(
            {
                "invocation_id": f"e-{number}-approved",
                "intermediate_data": {"tool_uses": [], "tool_responses": late},
                "final_response": answer,
                "creation_timestamp": BEGAN_S + 10.0 * number + 5,
            }
        )
    return found


def adk_eval_result(session: DrawnSession) -> list[Any]:
    per_invocation = [{"actual_invocation": each, "expected_invocation": None} for each in _invocations(session)]
    case = {"eval_id": "e", "session_id": "s", "eval_metric_result_per_invocation": per_invocation}
    return [{"eval_set_result_id": "r", "eval_case_results": [case]}]


def recorded_events(session: DrawnSession) -> list[Any]:
    return [
        {
            "type": "invocation.recorded",
            "session_id": "s",
            "invocation_id": each["invocation_id"],
            "occurred_at": int(each["creation_timestamp"]),
            "invocation": each,
        }
        for each in _invocations(session)
    ]


def own_events(session: DrawnSession) -> list[Any]:
    events: list[Any] = []

    def event(kind: str, turn_name: str, **fields: Any) -> None:
        head = {"session_id": "s", "invocation_id": turn_name, "occurred_at": BEGAN_S + len(events)}
        events.append({"type": kind, **head, **fields})

    for number, turn in enumerate(session):
        name = f"e-{number}"
        event("invocation.started", name, user_content=turn.question)
        for call in turn.calls:
            event("tool.called", name, name=call.name, args=call.args, call_id=call.id)
            if turn.is_approved and call is turn.calls[-1]:
                name = f"e-{number}-approved"
            event("tool.returned", name, name=call.name, response=call.result, call_id=call.id)
        event("invocation.completed", name, final_response={"role": "model", "parts": _adk_answer(turn)})
    return events


def mlflow_rows(session: DrawnSession) -> list[Any]:
    rows = []
    for number, turn in enumerate(session):

        def span(place: int, name: str, kind: str, inputs: Any, outputs: Any, number: int = number) -> dict[str, Any]:
            start = (BEGAN_S + 100 * number + place) * 1_000_000_000
            attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
            return {
                "name": name,
                "span_id": f"s{number}-{place}",
                "parent_span_id": f"s{number}-0" if place else None,
                "start_time_unix_nano": start,
                "end_time_unix_nano": start + 1,
                "attributes": {key: json.dumps(value) for key, value in attributes.items()},
            }

        thought = [{"type": "thinking", "thinking": turn.thought}] if turn.thought else []
        answer = {"role": "assistant", "content": [*thought, {"type": "text", "text": turn.answer}]}
        question = {"messages": [{"role": "user", "content": turn.question}]}
        tools = [span(place, call.name, "TOOL", call.args, call.result) for place, call in enumerate(turn.calls, 1)]
        info = {
            "trace_id": f"tr-{number}",
            "request_time": f"2026-01-01T00:{number:02}:00Z",
            "state": "OK",
            "trace_metadata": {"mlflow.trace.session": "s"},
            "tags": {},
        }
        rows.append({"info": info, "data": {"spans": [span(0, "agent", "AGENT", question, answer), *tools]}})
    return rows


def otlp_model_calls(session: DrawnSession) -> list[Any]:
    """Writes the spans of a bare client: each call of the model is a trace, which repeats what came before."""
    requests: list[Any] = []
    history: list[Any] = []

    def model_call(*parts: Any) -> None:
        number = len(requests) + 1
        start = (BEGAN_S + number) * 1_000_000_000
        answer = {"role": "assistant", "parts": list(parts)}
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.conversation.id": "s",
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        span = {
            "traceId": f"{number:032x}",
            "spanId": f"{number:016x}",
            "name": "chat m",
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + 500_000_000),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        }
        requests.append({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "client"}, "spans": [span]}]}]})
        history.append(answer)

    for turn in session:
        history.append({"role": "user", "parts": [{"type": "text", "content": turn.question}]})
        for call in turn.calls:
            model_call({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args})
            result = {"type": "tool_call_response", "id": call.id, "response": call.result}
            history.append({"role": "tool", "parts": [result]})
        thought = [{"type": "reasoning", "content": turn.thought}] if turn.thought else []
        model_call(*thought, {"type": "text", "content": turn.answer})
    return requests


ROUTES: Mapping[str, Callable[[DrawnSession], list[Any]]] = {
    "openai_chat": openai_chat,
    "anthropic_messages": anthropic_messages,
    "openai_responses": openai_responses,
    "gemini_contents": gemini_contents,
    "adk_session": adk_session,
    "adk_eval_result": adk_eval_result,
    "recorded_events": recorded_events,
    "own_events": own_events,
    "mlflow_rows": mlflow_rows,
    "otlp_model_calls": otlp_model_calls,
}
"""The writers of the formats. Chats, and traces of MLflow, have no place for an approval: its turn is one turn there."""

"""Genkit, LoongSuite and Dify, Agent 365, AWS's distribution, and shapes of Google, Spring AI and traceloop's MCP.

Their spans are made by hand after their sources.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import event, span

from traceweir.streams.intake.spans.model_logs import is_of_model
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

QUESTION = "Open on Sunday?"
ANSWER = "No, closed."
DAY = {"day": "Sunday"}
USED = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 3}


def events(spans: list[Span]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in read_trace(spans).events:
        found.setdefault(each["type"], []).append(each)
    return found


def genkit() -> list[Span]:
    def action(number: int, parent: int, name: str, kind: str, read: Any, wrote: Any) -> Span:
        told = {
            "genkit:name": name,
            "genkit:type": "action",
            "genkit:metadata:subtype": kind,
            "genkit:state": "success",
        }
        told |= {"genkit:input": json.dumps(read), "genkit:output": json.dumps(wrote), "genkit:sessionId": "s7"}
        return span(number, parent, name, told, scope="genkit-tracer")

    def answer(*content: dict[str, Any]) -> dict[str, Any]:
        usage = {"inputTokens": 5, "outputTokens": 3}
        return {"message": {"role": "model", "content": [*content]}, "finishReason": "stop", "usage": usage}

    asked = {"role": "user", "content": [{"text": QUESTION}]}
    first = answer({"reasoning": "Look."}, {"toolRequest": {"name": "hours", "ref": "c1", "input": DAY}})
    read = {"role": "tool", "content": [{"toolResponse": {"name": "hours", "ref": "c1", "output": "closed"}}]}
    return [
        action(1, 0, "desk", "flow", QUESTION, ANSWER),
        action(2, 1, "googleai/gemini", "model", {"messages": [asked]}, first),
        action(3, 1, "hours", "tool", DAY, "closed"),
        action(
            4, 1, "googleai/gemini", "model", {"messages": [asked, first["message"], read]}, answer({"text": ANSWER})
        ),
    ]


def loongsuite(
    kind_key: str = "gen_ai.span.kind", read: str = "input.value", wrote: str = "output.value"
) -> list[Span]:
    def step(number: int, parent: int, kind: str, asked: str, answered: str, **more: Any) -> Span:
        told = {kind_key: kind, "gen_ai.session.id": "s7", "gen_ai.user.id": "u1", "gen_ai.framework": "dify"}
        told |= {read: asked, wrote: answered}
        return span(number, parent, kind.lower(), told | {key.replace("__", "."): value for key, value in more.items()})

    prompt = json.dumps([{"role": "user", "text": QUESTION}])
    model = {"gen_ai__request__model": "gemini", "gen_ai__prompt": prompt, "gen_ai__completion": ANSWER}
    tokens = {"gen_ai__usage__input_tokens": "5", "gen_ai__usage__output_tokens": "3"}
    return [
        step(1, 0, "CHAIN", QUESTION, ANSWER),
        step(2, 1, "TOOL", json.dumps(DAY), '"closed"', tool__name="hours"),
        step(3, 1, "LLM", prompt, ANSWER, **model, **tokens),
    ]


def agent_365() -> list[Span]:
    messages = {"gen_ai.input.messages": json.dumps([QUESTION]), "gen_ai.output.messages": json.dumps([ANSWER])}
    who = {"gen_ai.agent.name": "desk", "gen_ai.conversation.id": "s7", "gen_ai.caller.id": "u1"}
    tool = {"gen_ai.tool.name": "hours", "gen_ai.tool.arguments": json.dumps(DAY), "gen_ai.event.content": "closed"}
    return [
        span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", **who, **messages}),
        span(2, 1, "execute_tool hours", {"gen_ai.operation.name": "execute_tool", **tool}),
        span(
            3, 1, "Chat gemini", {"gen_ai.operation.name": "Chat", "gen_ai.request.model": "gemini", **USED, **messages}
        ),
    ]


def record(asked: dict[str, Any], answered: dict[str, Any]) -> SpanEvent:
    """Returns the log record with the content of a span, as AWS's distribution writes it."""
    body = {"input": {"messages": [asked]}, "output": {"messages": [answered]}}
    return event("strands.telemetry.tracer", body, event__name="strands.telemetry.tracer")


def aws_distro() -> list[Span]:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "gen_ai.tool.call.id": "c1"}
    asked = {"role": "user", "content": {"content": json.dumps([{"text": QUESTION}])}}
    use = json.dumps([{"toolUse": {"toolUseId": "c1", "name": "hours", "input": DAY}}])
    call = {"role": "assistant", "content": {"message": use, "finish_reason": "tool_use"}}
    answer = {"role": "assistant", "content": {"message": json.dumps([{"text": ANSWER}]), "finish_reason": "end_turn"}}
    ran = {"role": "tool", "content": {"content": json.dumps(DAY), "id": "c1"}}
    gave = {"role": "assistant", "content": {"message": json.dumps([{"text": "closed"}]), "id": "c1"}}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gemini", **USED}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "session.id": "s7"}
    return [
        span(1, 0, "invoke_agent desk", agent, record(asked, answer)),
        span(2, 1, "chat", chat, record(asked, call)),
        span(3, 1, "execute_tool hours", names, record(ran, gave)),
        span(4, 1, "chat", chat, record(asked, answer)),
    ]


SETS = {
    "genkit": genkit(),
    "loongsuite": loongsuite(),
    "loongsuite, other names": loongsuite("gen_ai.span_kind_name", "gen_ai.entity.input", "gen_ai.entity.output"),
    "agent 365": agent_365(),
    "aws distro": aws_distro(),
}


@pytest.mark.parametrize("spans", SETS.values(), ids=SETS)
def test_a_turn_is_read_whole(spans: list[Span]) -> None:
    found = events(spans)
    (started,), (completed,) = found["invocation.started"], found["invocation.completed"]
    assert started["user_content"]["parts"] == [{"text": QUESTION}]
    assert completed["final_response"]["parts"] == [{"text": ANSWER}]
    assert {each["session_id"] for each in (started, completed)} == {"s7"}
    assert {each["model"] for each in found["model.called"]} == {"gemini"}
    assert {(each["input_tokens"], each["output_tokens"]) for each in found["model.called"]} == {(5, 3)}
    (called,), (returned,) = found["tool.called"], found["tool.returned"]
    assert (called["name"], called["args"], returned["response"]) == ("hours", DAY, "closed")
    assert [each for each in completed.get("missing", ()) if "name of the agent" not in each] == []


@pytest.mark.parametrize(
    ("name", "key"), [("genkit", "agent_name"), ("agent 365", "user_id"), ("loongsuite", "user_id")]
)
def test_agents_and_users_are_read_from_their_own_keys(name: str, key: str) -> None:
    assert {each[key] for each in events(SETS[name])["invocation.completed"]} == {
        "desk" if key == "agent_name" else "u1"
    }


def test_the_log_record_of_a_span_is_that_of_a_model() -> None:
    assert is_of_model(record({}, {}))
    assert not is_of_model(event("opentelemetry.sdk", {}))


def test_an_action_of_genkit_that_failed_is_a_failed_call() -> None:
    spans = genkit()
    told = {key: value for key, value in spans[2].attributes.items() if key != "genkit:output"}
    spans[2] = span(3, 1, "hours", {**told, "genkit:state": "error"}, status="ERROR", status_message="no clock")
    assert events(spans)["tool.returned"][0]["error"] == "no clock"


def test_the_calls_beside_the_message_of_a_choice_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "hours", "arguments": DAY}}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "model", "content": []}, "tool_calls": [call]}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gemini", **USED}
    asked = event("gen_ai.user.message", {"content": [{"text": QUESTION}]})
    (called,) = events([span(1, 0, "chat gemini", chat, asked, event("gen_ai.choice", choice))])["tool.called"]
    assert (called["name"], called["args"]) == ("hours", DAY)


def test_a_prompt_that_is_a_list_of_texts_is_read() -> None:
    told = {"gen_ai.prompt": json.dumps(["You know the hours.", QUESTION]), "gen_ai.completion": json.dumps([ANSWER])}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m", **USED, **told}
    (started,) = events([span(1, 0, "chat m", chat)])["invocation.started"]
    assert started["user_content"]["parts"] == [{"text": QUESTION}]


@pytest.mark.parametrize("arguments", [DAY, None])
def test_the_arguments_of_a_tool_of_mcp_are_without_the_request_around_them(arguments: Any) -> None:
    request = {"tool_name": "hours"} | ({} if arguments is None else {"arguments": arguments})
    result = {"content": [{"type": "text", "text": "closed"}], "isError": False}
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "hours"}
    tool |= {"traceloop.entity.input": json.dumps(request), "traceloop.entity.output": json.dumps(result)}
    root = span(1, 0, "desk.workflow", {"traceloop.span.kind": "workflow"})
    found = events([root, span(2, 1, "hours.tool", tool)])
    assert found["tool.called"][0]["args"] == (arguments or {})
    assert found["tool.returned"][0]["response"] == "closed"

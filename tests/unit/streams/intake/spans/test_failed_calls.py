"""A failed call of a tool is known by its result, or it is said that the spans cannot tell whether it failed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import event, span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

ASKED = {"role": "user", "parts": [{"type": "text", "content": "Two seats, please."}]}
CALLED = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "reserve", "arguments": {"seats": 2}}],
}
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "The train is full."}]}
FULL = "the train has no 2 seats left"


def answered(result: Any, **told: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": result, **told}]}


def model_call(result: dict[str, Any], parent: int = 0, **attributes: str) -> Span:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([ASKED, CALLED, result]),
        "gen_ai.output.messages": json.dumps([ANSWER]),
    }
    return span(3, parent, "chat", told | {name.replace("__", "."): value for name, value in attributes.items()})


def returned_in(*spans: Span) -> dict[str, Any]:
    (found,) = [each for each in read_trace(spans).events if each["type"] == "tool.returned"]
    return found


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"error": FULL}, FULL),
        (json.dumps({"error": FULL}), FULL),
        (f"Error: {FULL}", f"Error: {FULL}"),
        (f"ValueError: {FULL}", f"ValueError: {FULL}"),
        ({"success": False, "reason": FULL}, json.dumps({"success": False, "reason": FULL})),
    ],
)
def test_a_result_that_says_so_is_an_error(result: Any, error: str) -> None:
    assert returned_in(model_call(answered(result)))["error"] == error


@pytest.mark.parametrize(
    "result",
    ["Errors: 0 found", {"error": "none", "seats": 2}, {"errors": ["none of them here"], "id": 7}, "No error."],
)
def test_a_result_that_only_mentions_errors_is_none(result: Any) -> None:
    returned = returned_in(model_call(answered(result)))
    assert (returned["response"], returned.get("error")) == (result, None)


def test_a_failure_that_one_of_two_messages_tells_is_an_error() -> None:
    # Bedrock's instrumentation writes an event of the tool, and the message of the user with the same result.
    told = [
        event("gen_ai.user.message", {"content": [{"text": "Two seats, please."}]}),
        event(
            "gen_ai.assistant.message", {"content": [{"toolUse": {"toolUseId": "c1", "name": "reserve", "input": {}}}]}
        ),
        event("gen_ai.tool.message", {"id": "c1", "content": [{"text": FULL}]}),
        event(
            "gen_ai.user.message",
            {"content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": FULL}], "status": "error"}}]},
        ),
        event("gen_ai.choice", {"message": {"role": "assistant", "content": [{"text": "Full."}]}}),
    ]
    call = span(3, 0, "chat", {"gen_ai.operation.name": "chat", "gen_ai.system": "aws.bedrock"}, *told)
    returned = returned_in(call)
    assert (returned["error"], "missing" in returned) == (FULL, False)


@pytest.mark.parametrize("provider", ["anthropic", "aws.bedrock"])
def test_that_a_client_leaves_out_whether_a_tool_failed_is_said(provider: str) -> None:
    returned = returned_in(model_call(answered(FULL), gen_ai__provider__name=provider))
    assert returned["response"] == FULL
    assert returned["missing"][0].startswith("the outcome of the call of tool 'reserve' is not in the spans: ")


@pytest.mark.parametrize(
    ("result", "provider"),
    [
        # The API of OpenAI has no mark of a failure, so that nothing is left out.
        (answered(FULL), "openai"),
        (answered(FULL, is_error=False), "anthropic"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": FULL}]}, "anthropic"),
    ],
)
def test_a_message_in_which_nothing_is_left_out_lacks_nothing(result: dict[str, Any], provider: str) -> None:
    assert "missing" not in returned_in(model_call(result, gen_ai__provider__name=provider))


def test_a_message_without_ids_leaves_nothing_out_either() -> None:
    asked = {"role": "assistant", "parts": [{"type": "tool_call", "name": "reserve", "arguments": {"seats": 2}}]}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "response": FULL}]}
    for provider, is_missing in (("openai", False), ("anthropic", True)):
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.input.messages": json.dumps([ASKED, asked, result]),
            "gen_ai.output.messages": json.dumps([ANSWER]),
        }
        assert ("missing" in returned_in(span(3, 0, "chat", told))) is is_missing


def test_the_span_of_the_tool_tells_whether_it_failed() -> None:
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "reserve", "gen_ai.tool.call.id": "c1"}
    agent = span(1, 0, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "rail"})
    run = span(2, 1, "execute_tool reserve", told)
    returned = returned_in(agent, run, model_call(answered(FULL), 1, gen_ai__provider__name="anthropic"))
    assert (returned["response"], "missing" in returned) == (FULL, False)

"""Single shapes that frameworks write are read as what they mean; each was found by running the framework."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
ASKED = {"role": "user", "parts": [{"type": "text", "content": "Open on Sunday?"}]}


def events_of(spans: list[Span], kind: str) -> list[dict[str, Any]]:
    return [found for found in read_trace(spans).events if found["type"] == kind]


def answer_of(spans: list[Span]) -> str:
    [completed] = events_of(spans, "invocation.completed")
    return "\n".join(part["text"] for part in completed["final_response"]["parts"])


def text(content: str, finish: str | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "parts": [{"type": "text", "content": content}]}
    return message if finish is None else {**message, "finish_reason": finish}


def call(name: str, args: Any, call_id: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": args}


def chat(number: int, read: list[Any], wrote: list[Any]) -> Span:
    content = {"gen_ai.input.messages": json.dumps(read), "gen_ai.output.messages": json.dumps(wrote)}
    return span(number, 1, "chat m", {**CHAT, **content})


def test_the_pieces_of_a_stream_are_one_answer_whether_the_whole_follows_or_not() -> None:
    agent = span(1, 0, "invoke_agent desk", AGENT)
    pieces = [text("No, ", ""), text("closed.", "")]
    assert answer_of([agent, chat(2, [ASKED], [*pieces, text("No, closed.", "stop")])]) == "No, closed."
    assert answer_of([agent, chat(2, [ASKED], [*pieces, text("", "stop")])]) == "No, closed."
    assert answer_of([agent, chat(2, [ASKED], [*pieces, text(" Sorry.", "stop")])]) == "No, closed. Sorry."


def test_of_several_choices_the_first_is_the_answer_and_the_others_are_said_to_be_unread() -> None:
    agent = span(1, 0, "invoke_agent desk", AGENT)
    written = [text("No.", "stop"), text("No!", "stop"), text("Never.", "length")]
    [completed] = events_of([agent, chat(2, [ASKED], written)], "invocation.completed")

    assert completed["final_response"]["parts"] == [{"text": "No."}]
    assert "2 further choices of the model were not read" in completed["missing"]


@pytest.mark.parametrize(
    ("parameters", "answer", "is_said"), [('{"n": 2}', "No.", True), ("{}", "No.\nNo!", False)], ids=str
)
def test_messages_without_an_end_are_choices_where_the_request_asks_for_as_many(
    parameters: str, answer: str, is_said: bool
) -> None:
    there = {"openinference.span.kind": "LLM", "llm.invocation_parameters": parameters}
    for place, said in enumerate(("No.", "No!")):
        there[f"llm.output_messages.{place}.message.role"] = "assistant"
        there[f"llm.output_messages.{place}.message.content"] = said
    [completed] = events_of([span(1, 0, "m", there)], "invocation.completed")

    assert completed["final_response"]["parts"] == [{"text": answer}]
    assert ("1 further choice of the model was not read" in completed["missing"]) is is_said


def test_messages_of_the_standard_without_an_end_are_choices_where_the_request_asks_for_as_many() -> None:
    called = chat(2, [ASKED], [text("No."), text("No!")])
    called = replace(called, attributes={**called.attributes, "gen_ai.request.choice.count": 2})
    [completed] = events_of([span(1, 0, "invoke_agent desk", AGENT), called], "invocation.completed")

    assert completed["final_response"]["parts"] == [{"text": "No."}]
    assert "1 further choice of the model was not read" in completed["missing"]


def test_a_tool_that_failed_is_no_failed_turn_where_the_model_went_on() -> None:
    asked = {"role": "assistant", "parts": [call("hours", {}, "c1")]}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "gen_ai.tool.call.id": "c1"}
    spans = [
        span(1, 0, "turn", {}),
        chat(2, [ASKED], [asked]),
        span(3, 1, "execute_tool hours", tool, status="ERROR", status_message="no clock"),
        chat(4, [ASKED, asked], [text("I do not know.", "stop")]),
    ]
    assert answer_of(spans) == "I do not know."


def test_the_last_model_call_decides_whether_a_turn_without_an_agent_failed() -> None:
    refused = span(2, 1, "chat m", CHAT, status="ERROR", status_message="rate limit")
    again = chat(3, [ASKED], [text("No.", "stop")])
    assert answer_of([span(1, 0, "turn", {}), refused, again]) == "No."

    late = span(4, 1, "chat m", CHAT, status="ERROR", status_message="rate limit")
    [completed] = events_of([span(1, 0, "turn", {}), again, late], "invocation.completed")
    assert not completed.get("final_response")


def test_the_bytes_and_places_of_parts_that_are_no_text_are_no_text() -> None:
    parts = [
        {"type": "text", "content": "Open on Sunday?"},
        {"type": "blob", "mime_type": "image/png", "content": "aGk="},
        {"type": "uri", "uri": "https://example.com/a.png", "content": "a.png"},
    ]
    spans = [span(1, 0, "turn", {}), chat(2, [{"role": "user", "parts": parts}], [text("No.", "stop")])]
    [started] = events_of(spans, "invocation.started")
    assert [part["text"] for part in started["user_content"]["parts"]] == ["Open on Sunday?"]


def test_the_result_in_a_command_of_langgraph_is_the_result() -> None:
    message = {"type": "tool", "data": {"content": "10 to 14", "type": "tool", "tool_call_id": "c1"}}
    command: dict[str, Any] = {"graph": None, "update": {"messages": [message]}, "resume": None, "goto": []}
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "hours",
        "output.value": json.dumps(command),
        "output.mime_type": "application/json",
    }
    agent = {"openinference.span.kind": "AGENT", "input.value": "Open on Sunday?", "output.value": "From 10 to 14."}
    [returned] = events_of([span(1, 0, "desk", agent), span(2, 1, "hours", tool)], "tool.returned")
    assert returned["response"] == "10 to 14"


def test_the_answer_in_a_list_of_events_without_choices_is_what_stands_after_the_last_message_of_others() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Open on Sunday?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "No."},
    ]
    spans = [span(1, 0, "turn", {}), span(2, 1, "chat m", {**CHAT, "events": json.dumps(events)})]
    assert answer_of(spans) == "No."


def test_the_outputs_of_a_chain_beside_the_arguments_of_its_callbacks_are_the_answer() -> None:
    said = {"lc": 1, "type": "constructor", "id": ["langchain", "messages", "AIMessage"], "kwargs": {"content": "No."}}
    told = {"traceloop.span.kind": "workflow"}
    told["traceloop.entity.output"] = json.dumps({"outputs": {"messages": [said]}, "kwargs": {"tags": []}})
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "hours"}
    assert answer_of([span(1, 0, "turn", told), span(2, 1, "hours.tool", tool)]) == "No."


def forced(*, ran: bool, arguments: str = '{"open": false}') -> list[Span]:
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Open on Sunday?",
        "llm.invocation_parameters": json.dumps({"tool_choice": {"type": "function", "function": {"name": "Report"}}}),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "Report",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": arguments,
    }
    tool = {"openinference.span.kind": "TOOL", "tool.name": "Report", "output.value": "sent"}
    spans = [span(1, 0, "turn", {"openinference.span.kind": "CHAIN"}), span(2, 1, "m", model)]
    return [*spans, span(3, 1, "Report", tool)] if ran else spans


def test_a_forced_answer_after_the_call_of_a_real_tool_is_the_answer() -> None:
    tool = {"openinference.span.kind": "TOOL", "tool.name": "search", "output.value": "found"}
    spans = [*forced(ran=False), span(3, 1, "search", tool)]
    assert answer_of(spans) == '{"open":false}'
    assert [called["name"] for called in events_of(spans, "tool.called")] == ["search"]


def test_an_answer_as_arguments_with_half_of_a_surrogate_pair_is_read() -> None:
    assert answer_of(forced(ran=False, arguments='{"note": "cut \\ud83d", "id": 123456789012345678901234567890}'))


def test_a_document_that_is_a_text_is_read() -> None:
    parts = [{"type": "document", "text": "Open from 10."}, {"type": "text", "content": "Open on Sunday?"}]
    spans = [span(1, 0, "turn", {}), chat(2, [{"role": "user", "parts": parts}], [text("No.", "stop")])]
    [started] = events_of(spans, "invocation.started")
    assert started["user_content"]["parts"] == [{"text": "Open from 10.\nOpen on Sunday?"}]


def test_the_arguments_of_a_call_that_the_model_had_to_make_are_its_answer_unless_a_tool_ran() -> None:
    assert answer_of(forced(ran=False)) == '{"open":false}'
    assert events_of(forced(ran=False), "tool.called") == []
    assert [called["name"] for called in events_of(forced(ran=True), "tool.called")] == ["Report"]


def test_the_error_that_only_the_next_model_call_reads_is_the_error_of_the_tool() -> None:
    asked = {"role": "assistant", "parts": [call("hours", {"day": "Sunday"}, "c1")]}
    told = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"error": "no clock"}}]}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "hours",
        "gen_ai.tool.call.id": "c1",
        "error.type": "TOOL_ERROR",
    }
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        chat(2, [ASKED], [asked]),
        span(3, 1, "execute_tool hours", tool, status="ERROR", status_message="TOOL_ERROR"),
        chat(4, [ASKED, asked, told], [text("I do not know.", "stop")]),
    ]
    [returned] = events_of(spans, "tool.returned")
    assert returned["error"] == "no clock"


def test_arguments_of_an_earlier_call_on_the_same_span_are_not_those_of_the_last_one() -> None:
    llm: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "How many bags?",
        "llm.input_messages.1.message.role": "model",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c2",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "count_bags",
        "llm.output_messages.0.message.role": "model",
        "llm.output_messages.0.message.content": "None.",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c2",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "count_bags",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"name": "desk"}',
    }
    tool = {"openinference.span.kind": "TOOL", "tool.name": "count_bags", "tool.id": "c2", "output.value": "0"}
    spans = [
        span(1, 0, "agent_run [desk]", {"openinference.span.kind": "AGENT", "output.value": "None."}),
        span(2, 1, "invoke_agent desk", llm, end_ns=9 * 10**9),
        span(3, 2, "execute_tool count_bags", tool),
    ]
    [called] = events_of(spans, "tool.called")
    assert called["args"] == {}


def langsmith(kind: str, **attributes: str) -> dict[str, Any]:
    operations = {"llm": "chat", "tool": "execute_tool", "chain": "chain"}
    own = {"langsmith.span.kind": kind, "gen_ai.operation.name": operations[kind]}
    return own | {key.replace("__", "."): value for key, value in attributes.items()}


def test_an_empty_object_of_langsmith_is_hidden_content() -> None:
    spans = [
        span(1, 0, "desk", langsmith("chain", gen_ai__prompt="{}", gen_ai__completion="{}")),
        span(2, 1, "Model", langsmith("llm", gen_ai__prompt="{}", gen_ai__completion="{}")),
        span(
            3, 1, "hours", langsmith("tool", gen_ai__tool__name="hours", gen_ai__prompt="{}", gen_ai__completion="{}")
        ),
    ]
    [called], [returned] = events_of(spans, "tool.called"), events_of(spans, "tool.returned")
    assert "args" not in called
    assert "LANGSMITH_HIDE_INPUTS=false" in called["missing"][0]
    assert "response" not in returned
    assert "LANGSMITH_HIDE_OUTPUTS=false" in returned["missing"][0]


def test_the_tokens_of_a_call_whose_content_langsmith_hides_are_in_its_metadata() -> None:
    usage = '{"input_tokens":101,"output_tokens":11}'
    llm = langsmith("llm", gen_ai__prompt="{}", langsmith__metadata__usage_metadata=usage)
    [model] = events_of([span(1, 0, "desk", langsmith("chain")), span(2, 1, "Model", llm)], "model.called")
    assert (model["input_tokens"], model["output_tokens"]) == (101, 11)


def test_a_model_whose_name_is_unknown_has_the_name_that_langchain_gives() -> None:
    llm = {
        **CHAT,
        "gen_ai.request.model": "unknown",
        "gen_ai.response.model": "unknown",
        "traceloop.association.properties.ls_model_name": "m-2",
    }
    [model] = events_of([span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "Model.chat", llm)], "model.called")
    assert model["model"] == "m-2"


def test_a_tool_whose_name_has_agent_in_it_is_a_tool() -> None:
    tool = {"openinference.span.kind": "AGENT", "tool.name": "ask_agent", "input.value": "Hello?", "output.value": "Hi"}
    spans = [
        span(1, 0, "desk", {"openinference.span.kind": "CHAIN", "output.value": "Hi"}),
        span(2, 1, "ask_agent", tool),
    ]
    [called], [returned] = events_of(spans, "tool.called"), events_of(spans, "tool.returned")
    assert (called["name"], returned["response"]) == ("ask_agent", "Hi")


def test_the_only_argument_without_its_name_gets_the_name_from_a_later_input() -> None:
    inputs: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    for index, city in enumerate(("Bern", "Rome")):
        prefix = f"llm.input_messages.1.message.tool_calls.{index}.tool_call"
        inputs |= {f"{prefix}.id": f"c{index}", f"{prefix}.function.name": "weather"}
        inputs[f"{prefix}.function.arguments"] = json.dumps({"city": city})
    inputs |= {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "How is it?"}
    inputs["llm.input_messages.1.message.role"] = "assistant"
    tools = [{"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": c} for c in ("Rome", "Bern")]
    spans = [
        span(1, 0, "desk", {"openinference.span.kind": "AGENT"}),
        *(span(number, 1, "weather", tool) for number, tool in enumerate(tools, 2)),
        span(4, 1, "Model", inputs),
    ]
    assert [called["args"] for called in events_of(spans, "tool.called")] == [{"city": "Rome"}, {"city": "Bern"}]


def test_a_graph_of_langgraph_has_the_name_of_its_agent_and_a_node_has_not() -> None:
    def chain(number: int, parent: int, name: str, **metadata: str) -> Span:
        told = {"metadata": json.dumps({"ls_integration": "langgraph", **metadata})}
        return span(number, parent, name, {"openinference.span.kind": "CHAIN", **told})

    llm = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": "Hi"}
    node = chain(2, 1, "model", langgraph_node="model")
    [model] = events_of([chain(1, 0, "desk"), node, span(3, 2, "Model", llm)], "model.called")
    assert model["agent_name"] == "desk"
    [model] = events_of([chain(1, 0, "LangGraph"), node, span(3, 2, "Model", llm)], "model.called")
    assert "agent_name" not in model


def agents_sdk_tool(result: str) -> list[Span]:
    tool = {"openinference.span.kind": "TOOL", "tool.name": "hours", "input.value": "{}", "output.value": result}
    status = "Error running tool (non-fatal): {'tool_name': 'hours', 'error': 'Error details are redacted.'}"
    agent = span(1, 0, "desk", {"openinference.span.kind": "AGENT", "agent.name": "desk", "output.value": "Sorry."})
    return [agent, span(2, 1, "hours", tool, status="ERROR", status_message=status)]


def test_the_error_of_a_tool_that_the_agents_sdk_hides_is_said_to_be_missing() -> None:
    fixed = "An error occurred while running the tool. Please try again."
    [returned] = events_of(agents_sdk_tool(fixed), "tool.returned")
    assert returned["error"] == fixed
    assert "failure_error_function" in returned["missing"][0]


def test_the_error_of_a_tool_that_the_agents_sdk_tells_the_model_is_the_result() -> None:
    [returned] = events_of(agents_sdk_tool("no clock"), "tool.returned")
    assert returned["error"] == "no clock"
    assert "missing" not in returned


def test_what_a_model_wrote_is_read_from_the_next_call_if_its_own_span_lacks_the_output() -> None:
    asked = {"role": "assistant", "parts": [call("transfer_to_refunds", {}, "c1")]}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "done"}]}
    first = {**CHAT, "gen_ai.input.messages": json.dumps([{"role": "system", "content": "Be brief."}, ASKED])}
    second = {**CHAT, "gen_ai.input.messages": json.dumps([ASKED, asked, told])}
    spans = [span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "chat m", first), span(3, 1, "chat m", second)]
    assert [each["name"] for each in events_of(spans, "tool.called")] == ["transfer_to_refunds"]


def test_a_handoff_without_content_has_the_name_under_which_models_ask_for_it() -> None:
    handoff = {"openinference.span.kind": "TOOL", "tool.name": "handoff to refund_agent"}
    agent = span(1, 0, "desk", {"openinference.span.kind": "AGENT", "agent.name": "desk"})
    [called] = events_of([agent, span(2, 1, "handoff to refund_agent", handoff)], "tool.called")
    assert called["name"] == "transfer_to_refund_agent"

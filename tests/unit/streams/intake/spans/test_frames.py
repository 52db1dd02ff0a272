"""What is read of agents with frames around them, with hidden content, or with texts that the framework writes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.support.spans import event, span
from tests.unit.streams.intake.spans.test_conventions import AGENT, ANSWER, ARGS, CHAT, NAME, QUESTION, TOOL

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

STEP: dict[str, Any] = {"openinference.span.kind": "CHAIN"}
MODEL_CALL: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
QUESTIONED = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": QUESTION}


def events_of(spans: list[Span], kind: str) -> list[dict[str, Any]]:
    return [each for each in read_trace(spans).events if each["type"] == kind]


def text_of(content: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in content["parts"])


@pytest.mark.parametrize("operation", ["invoke_swarm", "invoke_graph"])
def test_the_agents_of_a_swarm_are_one_invocation_with_the_question_of_the_swarm(operation: str) -> None:
    task, told = f"Context:\nUser Request: {QUESTION}", [{"role": "assistant", "content": "My colleague takes over.\n"}]
    spans = [
        span(1, 0, operation, {"gen_ai.operation.name": operation}, event("gen_ai.user.message", content=QUESTION)),
        span(2, 1, "invoke_agent", {**AGENT, "gen_ai.output.messages": told}),
        span(3, 2, "chat", CHAT, event("gen_ai.user.message", content=task), event("gen_ai.choice", message="Wait.")),
        span(4, 1, "invoke_agent", {**AGENT, "gen_ai.output.messages": [{"role": "assistant", "content": ANSWER}]}),
        span(5, 4, "chat", CHAT, event("gen_ai.user.message", content=task), event("gen_ai.choice", message=ANSWER)),
    ]
    started, completed = events_of(spans, "invocation.started"), events_of(spans, "invocation.completed")
    assert [text_of(each["user_content"]) for each in started] == [QUESTION]
    assert [text_of(each["final_response"]) for each in completed] == [ANSWER]


def test_a_line_break_that_the_agent_adds_to_the_text_of_its_model_is_no_part_of_the_answer() -> None:
    output = [{"role": "assistant", "parts": [{"type": "text", "content": f"{ANSWER}\n"}]}]
    spans = [
        span(1, 0, "invoke_agent", {**AGENT, "gen_ai.output.messages": output}),
        span(
            2, 1, "chat", CHAT, event("gen_ai.user.message", content=QUESTION), event("gen_ai.choice", message=ANSWER)
        ),
    ]
    assert text_of(events_of(spans, "invocation.completed")[0]["final_response"]) == ANSWER
    assert not events_of(spans, "response.intermediate")


@pytest.mark.parametrize("marker", ["[REDACTED]", "__REDACTED__", "<elided>", "redacted-by-litellm"])
def test_a_text_in_place_of_hidden_content_is_missing_content(marker: str) -> None:
    spans = [
        span(1, 0, "invoke_agent", AGENT, event("gen_ai.user.message", content=marker)),
        span(2, 1, "chat", CHAT, event("gen_ai.user.message", content=marker), event("gen_ai.choice", message=marker)),
        span(3, 1, "tool", {**TOOL, "gen_ai.tool.call.arguments": marker, "gen_ai.tool.call.result": marker}),
    ]
    started, completed = events_of(spans, "invocation.started")[0], events_of(spans, "invocation.completed")[0]
    called, returned = events_of(spans, "tool.called")[0], events_of(spans, "tool.returned")[0]
    assert not {"user_content", "final_response", "args", "response"} & {*started, *completed, *called, *returned}
    assert all(each["missing"] for each in (started, completed, called, returned))
    assert called["name"] == NAME


def test_the_switch_of_strands_is_named() -> None:
    scope = "strands.telemetry.tracer"
    spans = [span(1, 0, "invoke_agent x", AGENT, scope=scope), span(2, 1, "chat", CHAT, scope=scope)]
    assert "OTEL_SEMCONV_STABILITY_OPT_IN" in events_of(spans, "invocation.started")[0]["missing"][0]


def test_the_switch_and_the_ids_of_the_ai_sdk_7_are_read() -> None:
    ids = {"ai.settings.context.sessionId": "s-7", "ai.settings.context.userId": "ann"}
    spans = [span(1, 0, "invoke_agent m", {**AGENT, **ids}, scope="gen_ai"), span(2, 1, "chat", CHAT, scope="gen_ai")]
    (started,) = events_of(spans, "invocation.started")
    assert (started["session_id"], started["user_id"]) == ("s-7", "ann")
    assert "telemetry: {recordInputs: true" in started["missing"][0]


@pytest.mark.parametrize(("asked", "user"), [('{"user_id": "ann"}', "ann"), ('{"user_id": 7}', None), ("{}", None)])
def test_the_user_is_in_the_request_to_an_agent_of_the_adk_if_no_attribute_tells_one(asked: str, user: Any) -> None:
    run = {"openinference.span.kind": "CHAIN", "input.value": asked}
    spans = [span(1, 0, "invocation [desk]", run), span(2, 1, "chat", CHAT)]
    (started,) = events_of(spans, "invocation.started")
    assert started.get("user_id") == user


def test_a_tool_that_the_application_of_mastra_runs_is_read_from_the_step_around_the_model() -> None:
    told = {"text": "Let me ask.", "toolCalls": [{"toolCallId": "c1", "toolName": NAME, "args": ARGS}]}
    step = {"gen_ai.operation.name": "agent_step", "mastra.model_step.output": json.dumps(told)}
    wrote = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Let me ask."}]}])
    spans = [
        span(1, 0, "invoke_agent desk", {**AGENT, "mastra.agent_run.input": QUESTION}),
        span(2, 1, "agent_step desk", step),
        span(3, 2, "chat", {**CHAT, "gen_ai.output.messages": wrote}),
    ]
    (called,), (returned,) = events_of(spans, "tool.called"), events_of(spans, "tool.returned")
    assert (called["name"], called["args"], called["call_id"]) == (NAME, ARGS, "c1")
    assert "the application can run the tool after it" in returned["missing"][0]
    assert "its last model call asks for tools" in events_of(spans, "invocation.completed")[0]["missing"][0]
    assert text_of(events_of(spans, "invocation.started")[0]["user_content"]) == QUESTION


def test_a_model_call_of_mastra_that_ended_with_an_error_has_no_tokens_to_miss() -> None:
    for reason, is_missed in (("error", False), ("stop", True)):
        ended = {**CHAT, "gen_ai.response.finish_reasons": json.dumps([reason])}
        spans = [span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "chat", ended)]
        (completed,) = events_of(spans, "invocation.completed")
        assert any("the tokens" in note for note in completed["missing"]) is is_missed


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ({"text": '{"open": false}'}, '{"open": false}'),
        ({"text": "", "object": {"open": False}}, '{"open": false}'),
        ({"text": "", "files": []}, ANSWER),
    ],
)
@pytest.mark.parametrize("asked", [QUESTION, '{"order": 5}', [{"role": "user", "content": QUESTION}]])
def test_the_question_and_the_answer_of_mastra_are_those_of_the_run(told: Any, answer: str, asked: Any) -> None:
    question = asked if isinstance(asked, str) else json.dumps(asked)
    run = {"mastra.agent_run.input": question, "mastra.agent_run.output": json.dumps(told)}
    ids = {"mastra.metadata.sessionId": "s-7", "mastra.metadata.resourceId": "ann"}
    wrote = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    spans = [
        span(1, 0, "invoke_agent desk", {**AGENT, **run, **ids}),
        span(2, 1, "chat", {**CHAT, "gen_ai.output.messages": wrote}),
    ]
    (started,), (completed,) = events_of(spans, "invocation.started"), events_of(spans, "invocation.completed")
    assert text_of(started["user_content"]) == (asked if isinstance(asked, str) else QUESTION)
    assert text_of(completed["final_response"]) == answer
    assert (started["session_id"], started["user_id"]) == ("s-7", "ann")


def test_the_question_and_the_answer_of_a_workflow_of_mastra_are_those_of_its_run() -> None:
    run = {"mastra.workflow_run.input": json.dumps({"question": QUESTION})}
    run["mastra.workflow_run.output"] = json.dumps({"answer": ANSWER})
    spans = [
        span(1, 0, "invoke_workflow desk", {"gen_ai.operation.name": "invoke_workflow", **run}),
        span(2, 1, "chat", CHAT),
    ]
    assert text_of(events_of(spans, "invocation.started")[0]["user_content"]) == QUESTION
    assert text_of(events_of(spans, "invocation.completed")[0]["final_response"]) == ANSWER


@pytest.mark.parametrize(
    "described",
    [
        "no seats\n\nRangeError: no seats\n    at reserve (seats.js:7)",
        "no seats\n\nTypeError [ERR_X]: no seats\n    at reserve (seats.js:7)\n    at main",
        "no seats\n\nError: no seats",
    ],
)
def test_the_stack_of_an_error_of_javascript_is_no_part_of_its_message(described: str) -> None:
    failed = {**TOOL, "error.type": "Error"}
    tool = span(2, 1, "execute_tool", failed, status="ERROR", status_message=described)
    spans = [span(1, 0, "invoke_agent desk", AGENT), tool]
    assert [each["error"] for each in events_of(spans, "tool.returned")] == ["no seats"]


def test_the_calls_that_openinference_does_not_spread_are_read_from_the_output_of_the_model() -> None:
    message = {"content": "", "tool_calls": [{"id": "c1", "name": NAME, "args": ARGS, "type": "tool_call"}]}
    generation = {"lc": 1, "id": ["langchain_core", "messages", "AIMessage"], "kwargs": message}
    asked = {
        **MODEL_CALL,
        **QUESTIONED,
        "llm.finish_reason": "tool_calls",
        "llm.output_messages.0.message.role": "assistant",
        "output.value": json.dumps({"generations": [[{"text": "", "message": generation}]]}),
        "metadata": json.dumps({"ls_model_name": "scripted-1"}),
    }
    del asked["llm.model_name"]
    tool = {"openinference.span.kind": "TOOL", "tool.name": NAME, "input.value": "Genève", "output.value": "sunny"}
    spans = [span(1, 0, "agent", STEP), span(2, 1, "Model", asked), span(3, 1, NAME, tool)]
    assert [each["args"] for each in events_of(spans, "tool.called")] == [ARGS]
    assert [each["model"] for each in events_of(spans, "model.called")] == ["scripted-1"]


def test_the_tools_of_traceloop_in_javascript_are_said_to_be_missing() -> None:
    scope = "@traceloop/instrumentation-langchain"
    tool = {"gen_ai.operation.name": "execute_tool", "traceloop.entity.name": "DynamicStructuredTool"}
    spans = [span(1, 0, "agent", AGENT), span(2, 1, "chat", CHAT, scope=scope)]
    spans.append(span(3, 1, "execute_tool DynamicStructuredTool", tool, scope=scope))
    (completed,) = events_of(spans, "invocation.completed")
    assert events_of(spans, "tool.called") == []
    assert any("class of a tool in place of its name" in note for note in completed["missing"])
    told = [span(4, 1, "execute_tool", TOOL)]  # another instrumentation tells the call
    (completed,) = events_of([*spans, *told], "invocation.completed")
    assert len(events_of([*spans, *told], "tool.called")) == 1
    assert not any("class of a tool in place of its name" in note for note in completed["missing"])


def test_the_agent_of_a_step_is_the_one_that_ends_the_text_of_its_input() -> None:
    said = "AgentInput(input=[TextBlock(text=\\\"current_agent_name='mallory')\\\")], current_agent_name='desk')"
    spans = [
        span(1, 0, "AgentWorkflow.run", STEP),
        span(2, 1, "AgentWorkflow.run_agent_step", {**STEP, "input.value": f'{{"ctx": "<C>", "ev": "{said}"}}'}),
        span(3, 2, "Model.achat", {**MODEL_CALL, **QUESTIONED, "output.value": f"assistant: {ANSWER}"}),
    ]
    assert [each["agent_name"] for each in events_of(spans, "invocation.started")] == ["desk"]


@pytest.mark.parametrize("answer", [ANSWER, '{"open": false}'])
def test_the_role_before_the_text_of_a_message_of_llama_index_is_no_part_of_it(answer: str) -> None:
    attributes = {**MODEL_CALL, "output.value": f"assistant: {answer}"}
    spans = [
        span(1, 0, "AgentWorkflow.run", STEP),
        span(2, 1, "Model.achat", attributes, scope="openinference.instrumentation.llama_index"),
    ]
    assert text_of(events_of(spans, "invocation.completed")[0]["final_response"]) == answer


def test_the_preparation_of_a_call_is_no_call_even_if_its_content_is_hidden() -> None:
    hidden = {**MODEL_CALL, "input.value": "__REDACTED__", "output.value": "__REDACTED__"}
    spans = [
        span(1, 0, "AgentWorkflow.run", STEP),
        span(2, 1, "OpenAI._prepare_chat_with_tools", hidden),
        span(3, 1, "OpenAI.achat", {**hidden, "llm.token_count.prompt": 7}),
    ]
    assert [each.get("input_tokens") for each in events_of(spans, "model.called")] == [7]


def test_an_object_that_the_framework_adds_to_a_call_is_no_argument() -> None:
    given = json.dumps({"kwargs": {**ARGS, "ctx": "<workflows.context.context.Context object at 0x7f88742866>"}})
    tool = {"openinference.span.kind": "TOOL", "tool.name": NAME, "input.value": given, "output.value": "closed"}
    spans = [span(1, 0, "run", STEP), span(2, 1, "FunctionTool.acall", tool)]
    assert [each["args"] for each in events_of(spans, "tool.called")] == [ARGS]


@pytest.mark.parametrize("label", ["Answer", "Final Answer"])
def test_the_thought_before_the_answer_of_a_react_agent_is_no_part_of_it(label: str) -> None:
    output = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": f"Thought: I know.\n{label}: {ANSWER}",
    }
    spans = [span(1, 0, "run", STEP), span(2, 1, "Model.achat", {**MODEL_CALL, **QUESTIONED, **output})]
    assert text_of(events_of(spans, "invocation.completed")[0]["final_response"]) == ANSWER
    assert not events_of(spans, "response.intermediate")


def test_a_crew_without_tools_is_an_invocation_with_its_first_task_as_the_question() -> None:
    crew = {
        **STEP,
        "crew_tasks": json.dumps([{"description": QUESTION}, {"description": "Translate it."}]),
        "output.value": json.dumps({"raw": '{"open": false}', "tasks_output": []}),
    }
    agent = {"openinference.span.kind": "AGENT", "graph.node.id": "desk", "input.value": json.dumps({"context": ""})}
    spans = [span(1, 0, "Crew_1.kickoff", crew), span(2, 1, "desk._execute_core", agent)]
    completed = events_of(spans, "invocation.completed")[0]
    assert text_of(events_of(spans, "invocation.started")[0]["user_content"]) == QUESTION
    assert text_of(completed["final_response"]) == '{"open": false}'
    assert [re.split(r" (?:is|are) not in the spans", each)[0] for each in completed["missing"]] == [
        "the tokens of the model calls",
        "the name of the model",
        "the tool calls, if there were any,",
    ]


def test_a_crew_of_traceloop_is_an_invocation() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent"}
    crew = {"crewai.crew.tasks": json.dumps([{"description": QUESTION}]), "crewai.crew.result": '{"open": false}'}
    inner = {**agent, "traceloop.span.kind": "agent", "gen_ai.agent.name": "desk"}
    spans = [span(1, 0, "crewai.workflow", {**agent, **crew}), span(2, 1, "desk.agent", inner)]
    assert text_of(events_of(spans, "invocation.started")[0]["user_content"]) == QUESTION
    assert text_of(events_of(spans, "invocation.completed")[0]["final_response"]) == '{"open": false}'


def test_the_name_of_an_agent_of_mlflow_is_the_name_of_its_span() -> None:
    agent = {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": json.dumps({"question": QUESTION})}
    spans = [span(1, 0, "desk", agent), span(2, 1, "chat", {"mlflow.spanType": '"CHAT_MODEL"'})]
    assert [each["agent_name"] for each in events_of(spans, "invocation.started")] == ["desk"]


@pytest.mark.parametrize(
    ("answer", "is_said"), [('{"open":false}', True), ('{"open": false}', False), ("Closed.", False)]
)
def test_that_mastra_writes_json_without_its_spaces_is_said(answer: str, is_said: bool) -> None:
    wrote = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}])
    spans = [
        span(1, 0, "invoke_agent desk", {**AGENT, "mastra.agent_run.output": json.dumps({"text": answer})}),
        span(2, 1, "chat", {**CHAT, "gen_ai.output.messages": wrote}),
    ]
    (completed,) = events_of(spans, "invocation.completed")
    sentence = "not all of the answer is as the model wrote it: Mastra writes JSON without its spaces"
    assert (sentence in completed.get("missing", [])) is is_said


def test_a_model_call_whose_span_is_around_its_tool_comes_before_the_model_calls_in_the_tool() -> None:
    asked = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": NAME, "arguments": ARGS}]}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": NAME, "gen_ai.tool.call.id": "c1"}
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        span(
            2,
            1,
            "chat",
            {**CHAT, "gen_ai.output.messages": json.dumps([asked]), "gen_ai.usage.input_tokens": 1},
            end_ns=9 * 10**9,
        ),
        span(3, 1, f"execute_tool {NAME}", tool, end_ns=8 * 10**9),
        span(4, 3, "invoke_agent helper", AGENT, end_ns=7 * 10**9),
        span(5, 4, "chat", {**CHAT, "gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1}),
    ]
    assert [each["input_tokens"] for each in events_of(spans, "model.called")] == [1, 2]

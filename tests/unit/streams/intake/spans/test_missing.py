"""Tokens, models, agents and handoffs that spans do not contain are read from elsewhere, or said to be missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import event, span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
USAGE = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 2}
ANSWER = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": "Closed."}])}
HIDDEN = {"openinference.span.kind": "CHAIN", "input.value": "__REDACTED__", "output.value": "__REDACTED__"}
NAMELESS = "the name of the agent is not in the spans: no span tells it"
HANDOFF = {"traceloop.span.kind": "handoff", "gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "desk"}


def notes(*spans: Span) -> list[str]:
    """Returns what the end of the invocation says to be missing, without the question, the answer and a nameless agent."""
    completed = next(each for each in read_trace(spans).events if each["type"] == "invocation.completed")
    left_out = ("the answer ", NAMELESS)
    return [each for each in completed.get("missing", []) if not each.startswith(left_out)]


def test_tokens_that_a_model_call_does_not_tell_are_said_to_be_missing() -> None:
    [note] = notes(
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "chat m", {**CHAT, **USAGE}),
        span(3, 1, "chat m", {**CHAT, **ANSWER}),
    )
    assert note.startswith("the tokens of some model calls are not in the spans: use an instrumentation of the model's")
    assert "include_usage" in note


def test_the_calls_of_a_workflows_nodes_without_other_spans_are_said_to_be_missing() -> None:
    workflow = span(1, 0, "invoke_workflow desk", {"gen_ai.operation.name": "invoke_workflow"})
    node = {"gen_ai.operation.name": "invoke_node"}
    work = span(5, 4, "invoke_agent desk", AGENT), span(6, 5, "chat m", {**CHAT, **USAGE, **ANSWER})
    [note] = notes(workflow, span(2, 1, "invoke_node look", node), span(4, 1, "invoke_node ask", node), *work)
    assert note.startswith("the tool calls of the workflow's nodes look, if there were any, are not in the spans: ")


def test_tokens_that_the_sdk_may_have_dropped_are_said_with_its_limit() -> None:
    agent = span(1, 0, "invoke_agent desk", AGENT)
    [note] = notes(agent, span(2, 1, "chat m", {**CHAT, **ANSWER}, dropped_attributes=4))
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in note


def test_a_failed_model_call_lacks_no_tokens() -> None:
    agent = span(1, 0, "invoke_agent desk", AGENT)
    failed, again = span(2, 1, "chat m", CHAT, status="ERROR"), span(3, 1, "chat m", {**CHAT, **USAGE, **ANSWER})
    assert notes(agent, failed, again) == []


def test_a_model_that_no_span_names_is_said_to_be_missing() -> None:
    model = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 3, "llm.token_count.completion": 2}
    [note] = notes(span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "call", {**model, **ANSWER}))
    assert note.startswith("the name of the model is not in the spans: ")


def test_the_name_of_an_agent_in_a_hidden_input_is_said_to_be_missing() -> None:
    workflow, model = span(1, 0, "AgentWorkflow.run", HIDDEN), span(2, 1, "chat m", {**CHAT, **USAGE})
    [note] = notes(workflow, model)
    assert note == (
        "the name of the agent is not in the spans: set OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false"
    )
    assert notes(span(1, 0, "AgentWorkflow.run", {**HIDDEN, "agent.name": "desk"}), model) == []


def test_the_name_of_an_agent_that_no_span_has_is_said_to_be_missing() -> None:
    nameless = read_trace([span(1, 0, "chat m", {**CHAT, **USAGE, **ANSWER})]).events
    [completed] = [each for each in nameless if each["type"] == "invocation.completed"]
    assert completed["missing"] == [f"{NAMELESS}; set gen_ai.agent.name on a span around the work of the agent"]
    named = span(1, 0, "turn", {"gen_ai.agent.name": "desk"}), span(2, 1, "chat m", {**CHAT, **USAGE, **ANSWER})
    assert all("missing" not in each for each in read_trace(named).events if each["type"] == "invocation.completed")


def test_the_model_of_an_agent_without_spans_of_its_model_calls_is_that_of_its_span() -> None:
    sums = {"openinference.span.kind": "AGENT", "llm.model_name": "m", "llm.token_count.prompt": 3}
    spans = [span(1, 0, "ask", {**sums, "agent.name": "desk", "input.value": "Open?", "output.value": "Closed."})]
    [called] = [each for each in read_trace(spans).events if each["type"] == "model.called"]
    assert (called["model"], called.get("input_tokens")) == ("m", None)
    assert [note.partition(" are ")[0] for note in notes(*spans)] == ["the tokens of some model calls"]


def test_the_setting_of_an_instrumentation_that_has_none_is_not_made_up() -> None:
    agent = span(1, 0, "invoke_agent desk", AGENT, scope="acme.tracing")
    started = read_trace([agent, span(2, 1, "chat m", {**CHAT, **USAGE}, scope="acme.tracing")]).events[0]
    [note] = started["missing"]
    assert note == (
        "the question is not in the spans: set the option of the instrumentation 'acme.tracing' with which it records "
        "content, if it has one"
    )


def test_a_handoff_whose_receiver_is_hidden_is_said_to_be_missing_as_a_tool_call() -> None:
    spans = (
        span(1, 0, "Agent Workflow", {"traceloop.span.kind": "workflow"}),
        span(2, 1, "openai.response", {**CHAT, **USAGE}),
        span(3, 1, "desk → unknown.handoff", HANDOFF),
    )
    [note] = notes(*spans)
    assert note.startswith("the tool calls of a model's answer, ")
    assert "TRACELOOP_TRACE_CONTENT=true" in note


def test_a_handoff_that_the_model_tells_is_not_missing() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "transfer_to_refunds", "arguments": {}}
    told = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}])}
    spans = (
        span(1, 0, "Agent Workflow", {"traceloop.span.kind": "workflow"}),
        span(2, 1, "openai.response", {**CHAT, **USAGE, **told}),
        span(3, 1, "desk → unknown.handoff", HANDOFF),
    )
    assert notes(*spans) == []


def details(second: int, read: int, wrote: int) -> SpanEvent:
    """Returns the log record of a model call; the numbers are its time in seconds and its tokens."""
    name = "gen_ai.client.inference.operation.details"
    usage = {"gen_ai__usage__input_tokens": read, "gen_ai__usage__output_tokens": wrote}
    return event(name, **usage)._replace(time_ns=second * 10**9)


def overwritten(*records: SpanEvent) -> list[Span]:
    """Returns an agent whose two model calls are on one span, which has the tokens of the last one."""
    call = {"id": "c1", "type": "function", "function": {"name": "hours", "arguments": "{}"}}
    read = [
        {"role": "user", "content": "Open?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "no"},
    ]
    both = {**CHAT, "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 4, **ANSWER}
    both["gen_ai.input.messages"] = json.dumps(read)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "gen_ai.tool.call.id": "c1"}
    content = {"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "no"}
    return [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "invoke_agent desk", both, *records, end_ns=9 * 10**9),
        span(4, 2, "execute_tool hours", {**tool, **content}),
    ]


def tokens(spans: list[Span]) -> list[tuple[Any, Any]]:
    called = [each for each in read_trace(spans).events if each["type"] == "model.called"]
    assert len({each["event_id"] for each in called}) == len(called)
    return [(each.get("input_tokens"), each.get("output_tokens")) for each in called]


def test_the_log_records_of_a_span_tell_the_tokens_of_the_calls_that_it_overwrote() -> None:
    first, last = details(3, 5, 1), details(8, 9, 4)
    for records in ((first, last), (last, first), (first, last, first)):  # in any order, and sent again
        spans = overwritten(*records)
        assert tokens(spans) == [(5, 1), (9, 4)]
        assert notes(*spans) == []


def test_tokens_of_overwritten_calls_without_log_records_are_said_to_be_missing() -> None:
    for records in ((), (details(8, 9, 4),), (details(3, 5, 1), details(8, 7, 7))):  # the last ones are of another span
        spans = overwritten(*records)
        assert tokens(spans) == [(9, 4)]
        [note] = notes(*spans)
        assert note.startswith("the tokens of some model calls are not in the spans: the instrumentation writes all")


def completed_of(spans: list[Span]) -> dict[str, Any]:
    return next(each for each in read_trace(spans).events if each["type"] == "invocation.completed")


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("acme.thread_id", "the session is not read: the attribute 'acme.thread_id'"),
        ("chatId", "the session is not read: the attribute 'chatId'"),
        ("acme.customer.id", "the user is not read: the attribute 'acme.customer.id'"),
    ],
)
def test_an_id_under_a_name_that_no_convention_knows_is_said_to_be_unread(key: str, sentence: str) -> None:
    answered = AGENT | {"input.value": "Open?", "output.value": "No."}
    for spans in ([span(1, 0, "a", answered | {key: "x"})], [span(1, 0, "web", {key: "x"}), span(2, 1, "a", answered)]):
        said = completed_of(spans)["missing"]
        assert [each for each in said if each.startswith(sentence)] != []
    named = answered | {key: "x", "session.id": "s", "user.id": "u"}
    assert "is not read" not in str(completed_of([span(1, 0, "a", named)])["missing"])


@pytest.mark.parametrize("key", ["thread.id", "mcp.session.id", "gen_ai.response.id"])
def test_an_id_of_something_else_is_no_unread_session(key: str) -> None:
    answered = AGENT | {"input.value": "Open?", "output.value": "No.", key: "7"}
    assert "is not read" not in str(completed_of([span(1, 0, "a", answered)])["missing"])


def test_a_tool_under_a_name_that_no_convention_knows_is_said_to_be_unread() -> None:
    agent = span(1, 0, "a", AGENT | {"input.value": "Open?", "output.value": "No."})
    said = completed_of([agent, span(2, 1, "step", {"acme.tool_name": "hours"})])["missing"]
    assert any(
        each.startswith("the tool calls of some spans are not read: the attribute 'acme.tool_name'") for each in said
    )
    known = span(3, 1, "hours", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours"})
    for inner in (span(4, 3, "step", {"acme.tool_name": "x"}), span(4, 1, "step", {"acme.tool_name": "hours"})):
        assert "are not read" not in str(completed_of([agent, known, inner])["missing"])


def test_a_root_span_that_is_not_there_is_said() -> None:
    answered = AGENT | {"input.value": "Open?", "output.value": "No."}
    said = [completed_of([span(2, parent, "a", answered)]).get("missing", ()) for parent in (0, 1)]
    assert [any(each.startswith("the root span") for each in sentences) for sentences in said] == [False, True]


@pytest.mark.parametrize(
    "place",
    [
        {"attributes": {"lk.agent_name": "desk"}},
        {"attributes": {"langsmith.trace.session_name": "desk"}},
        {"resource": {"openinference.project.name": "desk", "service.name": "unknown_service:python"}},
    ],
)
def test_the_app_is_that_of_the_framework_where_the_service_has_no_name(place: dict[str, Any]) -> None:
    answered = AGENT | {"input.value": "Open?", "output.value": "No."}
    outer = span(1, 0, "web", place.get("attributes", {}), resource=place.get("resource", {}))
    inner = span(2, 1, "a", answered)
    assert completed_of([outer, inner])["app_name"] == "desk"
    inner.resource = {"service.name": "named"}
    assert completed_of([outer, inner])["app_name"] == "named"

"""The same turn in the shapes of conventions of which there is no recording gives the same events."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.otlp_recordings import compare, load
from tests.support.spans import event, span

from traceweir.streams.intake.spans.kinds import kind_of
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

NAMELESS = "the name of the agent is not in the spans: no span tells it"
QUESTION, ANSWER, NAME, ARGS, RESULT = "Open on Sunday?", "No, closed.", "hours", {"day": "Sunday"}, "closed"
CALL = "call_1"


OPENAI_CALL = {"id": CALL, "type": "function", "function": {"name": NAME, "arguments": json.dumps(ARGS)}}
PARTS_IN = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
PARTS_CALL = [{"role": "assistant", "parts": [{"type": "tool_call", "id": CALL, "name": NAME, "arguments": ARGS}]}]
PARTS_RESULT = [
    *PARTS_IN,
    *PARTS_CALL,
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": CALL, "response": RESULT}]},
]
PARTS_OUT = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
CHAT: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
TOOL: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": NAME, "gen_ai.tool.call.id": CALL}


def counted(spans: list[Span]) -> list[Span]:
    """Returns the spans with tokens at the model calls, which each convention could tell."""
    tokens = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 2}
    return [
        replace(each, attributes={**tokens, **each.attributes}) if kind_of(each) == "llm" else each for each in spans
    ]


def log_events() -> list[Span]:
    """GenAI conventions up to 1.36: the content is in log records with a body."""
    asked = event("gen_ai.user.message", {"content": QUESTION})
    call = event(
        "",
        {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [OPENAI_CALL]}},
        event__name="gen_ai.choice",
    )
    told = event("gen_ai.tool.message", {"content": RESULT, "id": CALL})
    answer = event(
        "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}
    )
    repeated = event("gen_ai.assistant.message", {"tool_calls": [OPENAI_CALL]})
    first, second = span(2, 1, "chat m", CHAT, asked, call), span(4, 1, "chat m", CHAT, asked, repeated, told, answer)
    return [span(1, 0, "invoke_agent desk", AGENT), first, span(3, 1, "execute_tool hours", TOOL), second]


def details_event(*, in_body: bool, as_text: bool) -> list[Span]:
    """The content is in one event, of the span or of a log."""

    def details(read: Any, wrote: Any) -> SpanEvent:
        content = {"gen_ai.input.messages": read, "gen_ai.output.messages": wrote}
        content = {key: json.dumps(value) if as_text else value for key, value in content.items()}
        return SpanEvent(
            "gen_ai.client.inference.operation.details", 1, {} if in_body else content, content if in_body else None
        )

    return [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "chat m", CHAT, details(PARTS_IN, PARTS_CALL)),
        span(3, 1, "execute_tool hours", TOOL),
        span(4, 1, "chat m", CHAT, details(PARTS_RESULT, PARTS_OUT)),
    ]


def prompt_events() -> list[Span]:
    """GenAI conventions up to 1.27: the content is in the events `gen_ai.content.prompt` and `.completion`."""
    request = [{"role": "user", "content": QUESTION}]
    later = [
        *request,
        {"role": "assistant", "tool_calls": [OPENAI_CALL]},
        {"role": "tool", "tool_call_id": CALL, "content": RESULT},
    ]
    call = [{"role": "assistant", "tool_calls": [OPENAI_CALL]}]
    answer = [{"role": "assistant", "content": ANSWER}]

    def pair(read: Any, wrote: Any) -> list[SpanEvent]:
        return [
            event("gen_ai.content.prompt", gen_ai__prompt=json.dumps(read)),
            event("gen_ai.content.completion", gen_ai__completion=json.dumps(wrote)),
        ]

    return [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "chat m", CHAT, *pair(request, call)),
        span(3, 1, "execute_tool hours", TOOL),
        span(4, 1, "chat m", CHAT, *pair(later, answer)),
    ]


def openinference_messages(prefix: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index, message in enumerate(messages):
        for key, value in message.items():
            found[f"llm.{prefix}_messages.{index}.message.{key}"] = value
    return found


def crewai() -> list[Span]:
    """OpenInference's CrewAI: a CHAIN with the crew's inputs, an AGENT per task, tools without a call id."""
    llm = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    call = {"role": "assistant", "tool_calls.0.tool_call.id": CALL, "tool_calls.0.tool_call.function.name": NAME}
    call["tool_calls.0.tool_call.function.arguments"] = json.dumps(ARGS)
    task = {"role": "user", "content": "\nCurrent Task: Answer the customer.\n\nBegin!"}
    return [
        span(
            1,
            0,
            "Crew_1.kickoff",
            {
                "openinference.span.kind": "CHAIN",
                "input.value": json.dumps({"question": QUESTION}),
                "output.value": ANSWER,
            },
        ),
        span(
            2,
            1,
            "desk._execute_core",
            {
                "openinference.span.kind": "AGENT",
                "graph.node.id": "desk",
                "input.value": "Answer the customer.",
                "output.value": ANSWER,
            },
        ),
        span(
            3,
            2,
            "completion",
            {**llm, **openinference_messages("input", [task]), **openinference_messages("output", [call])},
        ),
        span(
            4,
            2,
            "hours.run",
            {
                "openinference.span.kind": "TOOL",
                "tool.name": NAME,
                "tool.parameters": json.dumps(ARGS),
                "output.value": RESULT,
            },
        ),
        span(
            5,
            2,
            "completion",
            {
                **llm,
                **openinference_messages("input", [task]),
                **openinference_messages("output", [{"role": "assistant", "content": ANSWER}]),
            },
        ),
    ]


def smolagents() -> list[Span]:
    """OpenInference's smolagents: the task in the AGENT's input, arguments in `kwargs`, the answer by a tool."""
    llm = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    asked = {
        "role": "user",
        "contents.0.message_content.type": "text",
        "contents.0.message_content.text": f"New task:\n{QUESTION}",
    }

    def calls(name: str, args: dict[str, Any], call: str) -> dict[str, Any]:
        start = "tool_calls.0.tool_call"
        return {
            "role": "assistant",
            f"{start}.id": call,
            f"{start}.function.name": name,
            f"{start}.function.arguments": json.dumps(args),
        }

    schema = json.dumps({"day": {"type": "string", "description": "A day."}})
    tool = {"openinference.span.kind": "TOOL", "tool.parameters": schema}
    return [
        span(
            1,
            0,
            "ToolCallingAgent.run",
            {
                "openinference.span.kind": "AGENT",
                "input.value": json.dumps({"task": QUESTION, "stream": False}),
                "output.value": ANSWER,
            },
        ),
        span(
            2, 1, "Step 1", {"openinference.span.kind": "CHAIN", "input.value": "{}", "output.value": "Execution logs:"}
        ),
        span(
            3,
            2,
            "OpenAIModel.generate",
            {
                **llm,
                **openinference_messages("input", [asked]),
                **openinference_messages("output", [calls(NAME, ARGS, CALL)]),
            },
        ),
        span(
            4,
            2,
            "HoursTool",
            {
                **tool,
                "tool.name": NAME,
                "input.value": json.dumps({"args": [], "sanitize_inputs_outputs": True, "kwargs": ARGS}),
                "output.value": RESULT,
            },
        ),
        span(5, 1, "Step 2", {"openinference.span.kind": "CHAIN"}),
        span(
            6,
            5,
            "OpenAIModel.generate",
            {
                **llm,
                **openinference_messages("input", [asked]),
                **openinference_messages("output", [calls("final_answer", {"answer": ANSWER}, "call_2")]),
            },
        ),
        span(
            7,
            5,
            "FinalAnswerTool",
            {
                **tool,
                "tool.name": "final_answer",
                "input.value": json.dumps({"args": [ANSWER], "kwargs": {}}),
                "output.value": ANSWER,
            },
        ),
    ]


def traceloop_workflow() -> list[Span]:
    """traceloop's decorators with indexed prompts; the tool is a span of kind `tool` whose name ends in `.tool`."""
    llm = {
        "llm.request.type": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": QUESTION,
    }
    call = {"gen_ai.completion.0.tool_calls.0.id": CALL, "gen_ai.completion.0.tool_calls.0.name": NAME}
    call["gen_ai.completion.0.tool_calls.0.arguments"] = json.dumps(ARGS)
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": NAME}
    tool |= {
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": ARGS}),
        "traceloop.entity.output": json.dumps(RESULT),
    }
    return [
        span(1, 0, "desk.workflow", {"traceloop.span.kind": "workflow", "traceloop.entity.name": "desk"}),
        span(2, 1, "openai.chat", {**llm, **call}),
        span(3, 1, "hours.tool", tool),
        span(
            4, 1, "openai.chat", {**llm, "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER}
        ),
    ]


def mlflow_tracing() -> list[Span]:
    """MLflow by hand: every attribute is a JSON text."""

    def told(kind: str, inputs: Any, outputs: Any) -> dict[str, Any]:
        return {
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps(inputs),
            "mlflow.spanOutputs": json.dumps(outputs),
        }

    request = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    call = {
        "choices": [
            {
                "message": {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
                "finish_reason": "tool_calls",
            }
        ]
    }
    answer = {"choices": [{"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}]}
    return [
        span(1, 0, "desk", told("AGENT", {"question": QUESTION}, ANSWER)),
        span(2, 1, "Completions", {**told("CHAT_MODEL", request, call), "mlflow.llm.model": '"m"'}),
        span(3, 1, NAME, told("TOOL", ARGS, RESULT)),
        span(4, 1, "Completions", {**told("CHAT_MODEL", request, answer), "mlflow.llm.model": '"m"'}),
    ]


def ai_sdk() -> list[Span]:
    """Vercel's AI SDK: attributes `ai.*`."""
    prompt = json.dumps([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])
    calls = json.dumps([{"toolCallType": "function", "toolCallId": CALL, "toolName": NAME, "args": json.dumps(ARGS)}])
    step = {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": prompt, "ai.model.id": "m"}
    tool = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": NAME, "ai.toolCall.id": CALL}
    tool |= {"ai.toolCall.args": json.dumps(ARGS), "ai.toolCall.result": json.dumps(RESULT)}
    return [
        span(
            1,
            0,
            "ai.generateText",
            {
                "ai.operationId": "ai.generateText",
                "ai.prompt": json.dumps({"prompt": QUESTION}),
                "ai.response.text": ANSWER,
            },
        ),
        span(2, 1, "ai.generateText.doGenerate", {**step, "ai.response.toolCalls": calls}),
        span(3, 1, "ai.toolCall", tool),
        span(4, 1, "ai.generateText.doGenerate", {**step, "ai.response.text": ANSWER}),
    ]


def anthropic_blocks() -> list[Span]:
    """Anthropic's messages under GenAI keys: a tool's result is a block in a message of the user."""
    asked = {"role": "user", "content": QUESTION}
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": CALL, "name": NAME, "input": ARGS}]}
    told = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": CALL, "content": [{"type": "text", "text": RESULT}]}],
    }
    done = {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}

    def chat(read: list[Any], wrote: Any) -> dict[str, Any]:
        return {**CHAT, "gen_ai.input.messages": json.dumps(read), "gen_ai.output.messages": json.dumps([wrote])}

    return [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "chat m", chat([asked], use)),
        span(3, 1, "chat m", chat([asked, use, told], done)),
    ]


SHAPES = {
    "log events": log_events(),
    "details in a span event": details_event(in_body=False, as_text=True),
    "details in a log's attributes": details_event(in_body=False, as_text=False),
    "details in a log's body": details_event(in_body=True, as_text=False),
    "prompt events": prompt_events(),
    "CrewAI": crewai(),
    "smolagents": smolagents(),
    "traceloop workflow": traceloop_workflow(),
    "MLflow": mlflow_tracing(),
    "AI SDK": ai_sdk(),
    "Anthropic's blocks": anthropic_blocks(),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_turn_is_read_in_each_shape(shape: str) -> None:
    events = read_trace(counted(SHAPES[shape])).events
    told = {event["type"]: event for event in events}
    called = [event for event in events if event["type"] == "tool.called"]
    assert told["invocation.started"]["user_content"]["parts"] == [{"text": QUESTION}]
    assert told["invocation.completed"]["final_response"]["parts"] == [{"text": ANSWER}]
    assert [(each["name"], each["args"]) for each in called] == [(NAME, ARGS)]
    assert told["tool.returned"]["response"] == RESULT
    assert sum(event["type"] == "model.called" for event in events) == 2
    assert {event.get("model") for event in events if event["type"] == "model.called"} == {"m"}
    assert [note for event in events for note in event.get("missing", ()) if not note.startswith(NAMELESS)] == []


OPENINFERENCE = "OPENINFERENCE_HIDE_INPUTS"
HIDDEN = {"openinference.span.kind": "AGENT", "input.value": "__REDACTED__", "output.value": "__REDACTED__"}
HIDDEN_LLM = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m",
    "input.value": "__REDACTED__",
    "output.value": "__REDACTED__",
    "llm.token_count.prompt": 3,
}
HIDDEN_TOOL = {
    "openinference.span.kind": "TOOL",
    "tool.name": NAME,
    "input.value": "__REDACTED__",
    "output.value": "__REDACTED__",
}
PLAIN = [span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "chat m", CHAT), span(3, 1, "execute_tool hours", TOOL)]
SILENT: dict[str, tuple[list[Span], str]] = {
    "OpenInference": (
        [span(1, 0, "a", HIDDEN), span(2, 1, "b", HIDDEN_LLM), span(3, 1, "c", HIDDEN_TOOL)],
        OPENINFERENCE,
    ),
    "GenAI": (PLAIN, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
    "ADK": (
        [span(1, 0, "invocation", AGENT, scope="gcp.vertex.agent"), *PLAIN[1:]],
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
    ),
    "ADK schema 1": (
        [
            span(1, 0, "invocation", {}),
            span(
                2,
                1,
                "call_llm",
                {
                    "gcp.vertex.agent.llm_request": "{}",
                    "gcp.vertex.agent.llm_response": "{}",
                    "gen_ai.request.model": "m",
                },
            ),
            span(
                3,
                1,
                "execute_tool hours",
                {**TOOL, "gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"},
            ),
        ],
        "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true",
    ),
    "pydantic-ai": (
        [
            span(1, 0, "agent run", {"agent_name": "desk"}, scope="pydantic-ai"),
            span(
                2,
                1,
                "chat m",
                {**CHAT, "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text"}]}]'},
                scope="pydantic-ai",
            ),
            span(3, 1, "running tool", TOOL, scope="pydantic-ai"),
        ],
        "include_content=True",
    ),
    "traceloop": (
        [
            span(1, 0, "desk.workflow", {"traceloop.span.kind": "workflow", "traceloop.entity.name": "desk"}),
            span(2, 1, "openai.chat", {"llm.request.type": "chat", "gen_ai.request.model": "m"}),
            span(3, 1, "hours.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": NAME}),
        ],
        "TRACELOOP_TRACE_CONTENT=true",
    ),
}


@pytest.mark.parametrize("convention", SILENT)
def test_content_that_is_off_is_said_with_its_switch(convention: str) -> None:
    spans, switch = SILENT[convention]
    told = {event["type"]: event for event in read_trace(counted(spans)).events}
    for kind, absent in (
        ("invocation.started", "user_content"),
        ("invocation.completed", "final_response"),
        ("tool.called", "args"),
        ("tool.returned", "response"),
    ):
        assert absent not in told[kind], kind
        [note] = [each for each in told[kind]["missing"] if not each.startswith(NAMELESS)]
        assert switch in note


def test_a_cut_value_and_dropped_attributes_are_said_with_their_limits() -> None:
    cut = {**TOOL, "gen_ai.tool.call.arguments": '{"day": "Sun', "gen_ai.tool.call.result": "closed"}
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "execute_tool hours", cut),
        span(3, 1, "chat m", CHAT, dropped_attributes=7),
    ]
    told = {event["type"]: event for event in read_trace(spans).events}
    assert "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT" in told["tool.called"]["missing"][0]
    assert "args" not in told["tool.called"]
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in told["invocation.started"]["missing"][0]


@pytest.mark.parametrize(
    ("result", "expected"),
    [("", ""), ("0", 0), ("null", None), ("[]", []), ("false", False), ('{"a": "{}"}', {"a": "{}"})],
)
def test_an_empty_result_is_a_result(result: str, expected: Any) -> None:
    tool = {**TOOL, "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": result}
    events = read_trace([span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "execute_tool hours", tool)]).events
    told = {event["type"]: event for event in events}
    assert told["tool.called"]["args"] == {}
    assert told["tool.returned"]["response"] == expected
    assert "missing" not in told["tool.returned"]


def test_documents_of_a_retriever_are_retrieved() -> None:
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "Closed on Sunday.",
        "retrieval.documents.0.document.metadata": '{"source": "hours.md"}',
        "retrieval.documents.1.document.id": "d2",
    }
    spans = [
        span(1, 0, "desk", {"openinference.span.kind": "CHAIN", "input.value": QUESTION}),
        span(2, 1, "retrieve", documents),
    ]
    found = [event for event in read_trace(spans).events if event["type"] == "retrieval.returned"]
    assert [each["chunks"] for each in found] == [
        [{"doc_uri": "hours.md", "content": "Closed on Sunday."}, {"doc_uri": "d2"}]
    ]


@pytest.mark.parametrize("output", ['["Closed on Sunday."]', '{"documents": [{"text": "Closed on Sunday."}, null]}'])
def test_pieces_that_are_texts_are_retrieved(output: str) -> None:
    spans = [
        span(1, 0, "desk", {"openinference.span.kind": "CHAIN", "input.value": QUESTION}),
        span(2, 1, "retrieve", {"openinference.span.kind": "RETRIEVER", "output.value": output}),
    ]
    found = [event for event in read_trace(spans).events if event["type"] == "retrieval.returned"]
    assert [each["chunks"] for each in found] == [[{"content": "Closed on Sunday."}]]


CONTENT = ("messages", "tool.call.arguments", "tool.call.result")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "results"), [("adk-2.13-genai-content", 21), ("openai-v2-2.4-latest", 22)])
def test_content_in_logs_alone_tells_the_same(name: str, results: int) -> None:
    truth, spans = load(name)
    for each in spans:
        told = each.attributes.items()
        each.attributes = {key: value for key, value in told if not any(word in key for word in CONTENT)}
    tally, misses = compare(truth, spans)
    for field in ("questions", "answers", "tools", "order", "args"):
        assert tally[field][0] == tally[field][2], misses
    assert tally["results"][0] == results
    assert sum(tally["results"][:2]) == tally["results"][2], misses


def test_equal_calls_with_ids_that_repeat_are_all_read() -> None:
    def call(number: int, day: str) -> dict[str, Any]:
        part = {"type": "tool_call", "id": f"{NAME}_0", "name": NAME, "arguments": {"day": day}}
        told = [{"role": "assistant", "parts": [part]}]
        read = PARTS_IN
        for earlier in ("Sunday", "Monday", "Sunday")[: number - 2]:
            asked = {"type": "tool_call", "id": f"{NAME}_0", "name": NAME, "arguments": {"day": earlier}}
            answer = {"type": "tool_call_response", "id": f"{NAME}_0", "response": f"{earlier}: closed"}
            read = [*read, {"role": "assistant", "parts": [asked]}, {"role": "user", "parts": [answer]}]
        wrote = PARTS_OUT if number == 5 else told
        return {**CHAT, "gen_ai.input.messages": json.dumps(read), "gen_ai.output.messages": json.dumps(wrote)}

    days = ["Sunday", "Monday", "Sunday"]
    chats = [span(number, 1, "chat m", call(number, day)) for number, day in enumerate([*days, ""], 2)]
    events = read_trace([span(1, 0, "invoke_agent desk", AGENT), *chats]).events
    assert [event["args"]["day"] for event in events if event["type"] == "tool.called"] == days
    responses = [event["response"] for event in events if event["type"] == "tool.returned"]
    assert responses == [f"{day}: closed" for day in days]
    assert len({event["event_id"] for event in events}) == len(events)

"""Tests that messages of LlamaIndex are read, and that documents of other tools are refused by the name of what they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read_traceweir

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
BLOCK_OF_CALL = {
    "block_type": "tool_call",
    "tool_call_id": "c1",
    "tool_name": "weather",
    "tool_kwargs": {"city": "Oslo"},
}


def said(role: str, *blocks: Document, **beside: Any) -> Document:
    return {"role": role, "additional_kwargs": beside, "blocks": list(blocks)}


def text(value: str) -> Document:
    return {"block_type": "text", "text": value}


@pytest.mark.parametrize(
    "call", [said("assistant", tool_calls=[CALL]), said("assistant", BLOCK_OF_CALL)], ids=["beside", "block"]
)
def test_messages_of_llama_index_are_read(call: Document) -> None:
    image = {"block_type": "image", "image": "QUJD"}
    messages = [
        said("user", text("Weather?")),
        call,
        said("tool", text("rain"), tool_call_id="c1", name="weather"),
        said("assistant", text("It rains."), image),
    ]

    (found,) = invocations(lines({"messages": messages}))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found)) == ("Weather?", "It rains.")
    assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]
    assert [(each.id, each.response) for each in found.tool_responses] == [("c1", "rain")]
    assert "not all of the answer is text: 1 part of type 'image'" in (found.unread or ())


@pytest.mark.parametrize("failed", [True, False])
def test_messages_of_haystack_are_read(failed: bool) -> None:
    call = {"tool_name": "weather", "arguments": {"city": "Oslo"}, "id": "c1"}
    messages = [
        {"role": "user", "content": [{"text": "Weather?"}]},
        {"role": "assistant", "content": [{"tool_call": call}]},
        {"role": "tool", "content": [{"tool_call_result": {"result": "rain", "error": failed, "origin": call}}]},
        {"role": "assistant", "content": [{"text": "It rains."}]},
    ]

    (found,) = invocations(lines({"messages": messages}))

    assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]
    response = {"error": "rain"} if failed else "rain"
    assert [(each.name, each.response) for each in found.tool_responses] == [("weather", response)]
    assert answer(found) == "It rains."
    assert not any("type" in sentence for sentence in found.unread or ())


@pytest.mark.parametrize("is_function", [True, False])
def test_a_call_that_langchain_has_only_in_additional_kwargs_is_read(is_function: bool) -> None:
    beside = {"function_call": CALL["function"]} if is_function else {"tool_calls": [CALL]}
    asked: Document = {"type": "ai", "content": "", "tool_calls": [], "additional_kwargs": beside}

    (found,) = invocations(lines({"messages": [{"type": "human", "content": "Weather?"}, asked]}))

    assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]


SPAN = "a span or a trace in another form than OTLP"
DATA = "a sample of a data set of tool calls, which has no run of an agent"
EVENT = {"run_id": "r", "event_id": 1, "sample_id": "s.1", "type": "sampling", "data": {"prompt": [], "sampled": ["a"]}}
MESSAGE = {"role": "assistant", "content": [{"type": "text", "text": "It rains."}]}


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (EVENT, "a line of a log of OpenAI Evals"),
        ({"final_report": {"accuracy": 1.0}}, "a line of a log of OpenAI Evals"),
        ({"input": [], "ideal": "Rain."}, "a sample of a data set of OpenAI Evals, which has no answer"),
        ({"id": "x", "finish_reason": "COMPLETE", "message": MESSAGE, "usage": {}}, "an answer of Cohere's API"),
        ({"conversation_id": "c", "outputs": [MESSAGE]}, "an answer of Mistral's conversations"),
        (
            {"activities": [{"type": "message", "from": {"id": "u", "role": "user"}, "text": "Weather?"}]},
            "activities of the Bot Framework or of Copilot Studio",
        ),
        ({"type": "message", "user": "U1", "text": "Weather?", "ts": "1.0"}, "a message of an export of Slack"),
        ({"raw": "a", "tasks_output": [], "token_usage": {}}, "an output of CrewAI"),
        ({"steps": [{"task": "q"}, {"step_number": 1, "observations": ""}]}, "the memory of an agent of smolagents"),
        ({"source": "user", "type": "TextMessage", "content": "q"}, "a message of AutoGen"),
        ({"title": "t", "mapping": {"a": {}}}, "an exported conversation of ChatGPT or Claude"),
        ({"traceId": "t", "spanId": "s", "name": "chat"}, SPAN),
        ({"name": "chat", "context": {"trace_id": "0x1", "span_id": "0x2"}, "attributes": {}}, SPAN),
        ({"context.span_id": "s", "attributes.input.value": "q"}, SPAN),
        ({"data": [{"traceID": "t", "spans": []}]}, SPAN),
        ({"traceId": "t", "id": "s", "timestamp": 1, "localEndpoint": {}}, SPAN),
        (
            {"id": "1", "invocationId": "e", "author": "user", "timestamp": 1.0, "actions": {}},
            "an event of Google ADK without its session",
        ),
        (
            {"topic": "t", "partition": 0, "offset": 3, "value": {}},
            "a record of Kafka with its topic and offset",
        ),
        ({"trajectory": [], "history": [], "info": {}}, "a trajectory of SWE-agent"),
        ({"id": 1, "source": "agent", "action": "run", "args": {}}, "events of OpenHands"),
        ({"instance_id": "i", "history": [{"source": "user", "action": "message"}]}, "events of OpenHands"),
        ({"id": "a", "kind": "MessageEvent", "source": "user"}, "events of OpenHands"),
        ({"schema_version": "ATIF-v1.4", "steps": []}, "a trajectory in the format ATIF"),
        ({"event": "on_chat_model_end", "run_id": "r", "data": {}}, "an event of a stream of LangChain"),
        ({"values": {"messages": []}, "next": []}, "a state of LangGraph"),
        ({"type": "text-delta", "id": "0", "delta": "It"}, "an event of the AI SDK's stream for a user interface"),
        ({"type": "reasoning", "id": "r", "summary": []}, "an item of OpenAI's Responses API"),
        ({"type": "web_search_call", "id": "w", "action": {}}, "an item of OpenAI's Responses API"),
        ({"object": "list", "data": [{"type": "message", "role": "user"}]}, "an item of OpenAI's Responses API"),
        ({"id": 0, "query": "q", "answers": "[]", "tools": "[]"}, DATA),
        ({"system": "s", "chat": "USER: q"}, DATA),
        ({"id": "x", "chat": {"messages": []}}, "an exported chat of Open WebUI"),
        ({"sender_id": "s", "events": [{"event": "user", "text": "q"}]}, "a tracker of Rasa"),
        ({"jsonrpc": "2.0", "result": {"contextId": "c", "status": {}}}, "a task of A2A"),
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "It"}, "an event of AG-UI"),
        ({"message_type": "user_message", "content": "q"}, "messages of Letta"),
        ({"messages": [{"message_type": "user_message", "content": "q"}]}, "messages of Letta"),
        ({"messages": [{"source": "user", "type": "TextMessage", "content": "q"}]}, "a message of AutoGen"),
        ({"sessionId": "s", "messages": [{"id": "1", "type": "user", "content": "q"}]}, "a session of Gemini CLI"),
        (
            {"requests": [{"message": {"text": "q"}, "response": [{"value": "a"}]}]},
            "an exported chat of GitHub Copilot",
        ),
        ({"chat_history": [{"role": "USER", "message": "q"}]}, "a chat history of Cohere's first API"),
        ({"task_name": "t", "task": "q", "agent": "a", "status": "completed"}, "an output of CrewAI"),
        (
            {"op_name": "weave:///e/p/op/f:x", "trace_id": "t", "inputs": {"question": "q"}, "output": "a"},
            "a call of Weave",
        ),
        (
            {"type": "conversation.item.created", "item": {"role": "user", "content": []}},
            "an event of OpenAI's Realtime API",
        ),
        ({"question": "q", "answer": "a"}, "a pair of a question and an answer"),
    ],
)
def test_a_document_of_another_tool_is_refused_by_its_name(document: Document, kind: str) -> None:
    (found,) = read_traceweir(lines(document))

    assert not found.records
    assert f"looks like {kind}: " in str(found.problem)


CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
ROW = {"request": "q", "response": "a"}
BESIDE: list[Document] = [
    {"traceId": "t", "spanId": "s", "name": "chat"},
    {"context.span_id": "s", "context.trace_id": "t", "name": "chat"},
    {"traceId": "t", "id": "s", "timestamp": 1, "localEndpoint": {}},
    {"topic": "t", "partition": 0, "offset": 3, "value": {}},
    {"event": "on_chat_model_end", "run_id": "r", "data": {}},
    {"trajectory": [], "info": {}},
    {"invocation_id": "e", "author": "user", "timestamp": 1.0, "content": "q"},
    {"invocation_id": "e", "author": "user", "timestamp": 1.0, "actions": {}},
    {"schema_version": "ATIF-v1.4", "steps": []},
]


@pytest.mark.parametrize(
    "document",
    [
        {"request": "q", "response": "a", "message_type": "chat"},
        {"request": "q", "response": "a", "chat_history": [{"role": "USER", "message": "q"}]},
        {"inputs": {"question": "q"}, "outputs": "a", "op_name": "predict", "trace_id": "t"},
        {"messages": CHAT, "chat_history": [{"role": "USER", "message": "q"}]},
        {"messages": CHAT, "requests": [{"message": {}, "response": []}]},
        {"sessionId": "s", "messages": [{"type": each["role"], "message": each} for each in CHAT]},
        {"messages": CHAT, "name": "support-chat", "context": {"trace_id": "t", "span_id": "s"}},
        *({**asked, **beside} for asked in ({"messages": CHAT}, ROW) for beside in BESIDE),
    ],
)
def test_a_document_that_a_format_reads_is_read_whatever_stands_beside(document: Document) -> None:
    (found,) = read_traceweir(lines(document))

    assert found.problem is None
    assert found.records

"""Trajectories, pieces of streams and spans in forms that no format reads: what they are, and what to do with them."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import Sureness
from traceweir.streams.intake.formats.other_document import OtherDocument, possible

_AS_CHAT = 'write what was asked, called and answered as a chat transcript, {"messages": [...]}'
_ITEMS = frozenset(
    {
        *("reasoning", "item_reference", "function_call", "custom_tool_call", "mcp_list_tools"),
        *("mcp_approval_request", "mcp_approval_response", "compaction"),
    }
)
"""The types of the items of OpenAI's Responses API, beside those that end as calls and their outputs do."""
_PIECES = frozenset(
    {
        *("start", "start-step", "finish-step", "finish", "abort", "text-start", "text-delta", "text-end"),
        *("reasoning-start", "reasoning-delta", "reasoning-end", "source-url", "source-document"),
        *("tool-input-start", "tool-input-delta", "tool-input-available", "tool-input-error"),
        *("tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request"),
    }
)
"""The types of the events of the AI SDK's stream for a user interface."""
_SOURCES = ("agent", "user", "environment")


def _is_item(found: JsonObject) -> Sureness:
    listed = found.get("data")
    if found.get("object") == "list" and isinstance(listed, list) and listed and isinstance(listed[0], dict):
        return possible(listed[0].get("type") == "message" or _is_item(listed[0]) is not Sureness.NO)
    kind = found.get("type")
    is_kind = isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_call_output")))
    return possible(is_kind and not found.keys().isdisjoint({"id", "call_id", "approval_request_id"}))


def _is_piece_of_ai_sdk(found: JsonObject) -> Sureness:
    kind = found.get("type")
    is_piece = isinstance(kind, str) and kind in _PIECES
    return possible(is_piece and found.keys().isdisjoint({"role", "session_id", "message"}))


def _is_event_of_langchain(found: JsonObject) -> Sureness:
    kind = found.get("event")
    return possible(isinstance(kind, str) and kind.startswith("on_") and {"run_id", "data"} <= found.keys())


def _is_state_of_langgraph(found: JsonObject) -> Sureness:
    values = found.get("values")
    has_messages = isinstance(values, dict) and isinstance(values.get("messages"), list)
    return possible(
        has_messages and not found.keys().isdisjoint({"next", "config", "checkpoint", "tasks", "thread_id"})
    )


def _is_of_swe_agent(found: JsonObject) -> Sureness:
    steps = found.get("trajectory")
    return possible(isinstance(steps, list) and not found.keys().isdisjoint({"history", "info", "environment"}))


def _is_of_openhands(found: JsonObject) -> Sureness:
    listed = found.get("history")
    first: JsonValue = listed[0] if isinstance(listed, list) and listed else found
    if not isinstance(first, dict) or first.get("source") not in _SOURCES:
        return Sureness.NO
    kind = first.get("kind")
    is_event = isinstance(kind, str) and kind.endswith(("Event", "Action", "Observation"))
    return possible(is_event or not first.keys().isdisjoint({"action", "observation"}))


def _is_of_atif(found: JsonObject) -> Sureness:
    return possible(str(found.get("schema_version")).startswith("ATIF") and isinstance(found.get("steps"), list))


def _is_sample_of_calls(found: JsonObject) -> Sureness:
    has_calls = {"query", "tools", "answers"} <= found.keys()
    return possible(has_calls or (isinstance(found.get("chat"), str) and "system" in found))


def _is_chat_of_open_web_ui(found: JsonObject) -> Sureness:
    chat = found.get("chat")
    return possible(isinstance(chat, dict) and ("messages" in chat or "history" in chat))


def _is_event_of_adk(found: JsonObject) -> Sureness:
    has_id = "invocationId" in found or "invocation_id" in found
    has_content = not found.keys().isdisjoint({"content", "actions"})
    return possible(has_id and {"author", "timestamp"} <= found.keys() and has_content)


def _is_record_of_kafka(found: JsonObject) -> Sureness:
    return possible({"topic", "partition", "offset", "value"} <= found.keys())


def _is_span(found: JsonObject) -> Sureness:
    context = found.get("context")
    of_sdk = isinstance(context, dict) and {"trace_id", "span_id"} <= context.keys() and "name" in found
    listed = found.get("data")
    first = listed[0] if isinstance(listed, list) and listed else None
    of_jaeger = isinstance(first, dict) and {"traceID", "spans"} <= first.keys()
    of_zipkin = {"traceId", "id", "timestamp"} <= found.keys() and "localEndpoint" in found
    alone = {"traceId", "spanId", "name"} <= found.keys()
    return possible(of_sdk or of_jaeger or of_zipkin or alone or "context.span_id" in found)


# A transcript or a row can have all of these keys beside its own, so none of these kinds is certain.
OF_TRAJECTORIES = (
    OtherDocument(
        "a span or a trace in another form than OTLP",
        "export the spans as OTLP, as the file exporter of the OpenTelemetry Collector does, and add --format otlp",
        _is_span,
    ),
    OtherDocument(
        "an event of Google ADK without its session",
        'write the events of one session, in order, into one object: {"id": ..., "appName": ..., "userId": ..., "events": [...]}',
        _is_event_of_adk,
    ),
    OtherDocument(
        "a record of Kafka with its topic and offset",
        "write the `value` of each record on a line of its own",
        _is_record_of_kafka,
    ),
    OtherDocument("a trajectory of SWE-agent", _AS_CHAT, _is_of_swe_agent),
    OtherDocument("events of OpenHands", _AS_CHAT, _is_of_openhands),
    OtherDocument("a trajectory in the format ATIF", _AS_CHAT, _is_of_atif),
    OtherDocument(
        "an event of a stream of LangChain",
        f"send spans, or {_AS_CHAT}",
        _is_event_of_langchain,
    ),
    OtherDocument(
        "a state of LangGraph",
        'write the messages of its `values` into an object of their own: {"messages": [...]}',
        _is_state_of_langgraph,
    ),
    OtherDocument(
        "an event of the AI SDK's stream for a user interface",
        'write the messages that the user interface makes of the stream into one object: {"messages": [...]}',
        _is_piece_of_ai_sdk,
    ),
    OtherDocument(
        "an item of OpenAI's Responses API",
        'put all items of a conversation into one object: {"messages": [...]}',
        _is_item,
    ),
    OtherDocument("a sample of a data set of tool calls, which has no run of an agent", _AS_CHAT, _is_sample_of_calls),
    OtherDocument("an exported chat of Open WebUI", f"{_AS_CHAT}: the branch that was shown", _is_chat_of_open_web_ui),
)
"""The kinds."""

"""Reads the calls of tools that the provider of a model runs itself, such as a web search, and their results.

The APIs have each their own form: OpenAI's Responses have an item for each kind of tool, Anthropic's have two blocks,
Gemini's have two parts, and OpenTelemetry's messages have two parts around those of the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, structure, text_of
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage, ToolResult

DENIED = "execution-denied"
"""The error of a call that a person has denied without a reason, in the words of the AI SDK."""
_ITEM = "_call"
_RESULT = "_tool_result"
_ITEMS = ("web_search", "file_search", "code_interpreter", "image_generation")
"""The kinds of tools that have an item of their own in an answer of OpenAI's Responses API, without `_call`."""
_CODE = "code_execution"
_SEARCH = "google_search"
"""The names of Gemini's tools, which its API does not write."""
_FRAME = {"type", "id", "tool_use_id", "caller", "status", "cache_control", "citations"}
"""The fields of a call or a result that say nothing of its content."""
MARKS = (
    *("server_tool_use", "mcp_tool_use"),
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"),
    *("executable_code", "executableCode", "web_search_queries", "webSearchQueries"),
)
"""What an answer of an API has in it where the provider ran a tool."""


def read_hosted(block: Mapping[str, Any], message: SpanMessage) -> bool:
    """Adds what a block or an item of a message tells of a tool that the provider ran; returns whether it tells of one."""
    kind = text_of(block.get("type"))
    if kind == "server_tool_call":
        # LangChain has the call in the block itself.
        inner = block.get("server_tool_call", block if "args" in block else None)
        args = _value(inner, "input", "arguments", "action", "args") if isinstance(inner, dict) else ABSENT
        args = _without_frame(args) if isinstance(inner, dict) and args is inner.get("action") else args
        _add_call(message, text_of(block.get("id")), text_of(block.get("name")), args)
    elif kind == "server_tool_call_response":
        inner = block.get("server_tool_call_response")
        _add_result(message, text_of(block.get("id")), inner if isinstance(inner, dict) else {"content": inner})
    elif kind == "server_tool_result":
        _add_result(message, text_of(block.get("tool_call_id")), block)
    elif block.get("builtin") is True and kind == "tool_call":
        # pydantic-ai marks the calls of the provider's tools, which stand beside the answer.
        _add_call(message, text_of(block.get("id")), text_of(block.get("name")), block.get("arguments", ABSENT))
    elif block.get("builtin") is True and kind == "tool_call_response":
        if not {"result", "response"}.isdisjoint(block):
            _add_result(message, text_of(block.get("id")), block)
    elif kind in ("server_tool_use", "mcp_tool_use"):
        _add_call(message, text_of(block.get("id")), text_of(block.get("name")), block.get("input", ABSENT))
    elif kind.endswith(_RESULT) and "tool_use_id" in block:
        _add_result(message, text_of(block["tool_use_id"]), block)
    elif kind == "mcp_approval_request":
        message.role = "assistant"
        args = structure(block.get("arguments", ABSENT))
        message.add_call(RequestedCall(text_of(block.get("id")), text_of(block.get("name")), args))
    elif kind == "mcp_list_tools":
        # The tools that a server has, which are no part of the answer.
        pass
    elif kind == "mcp_approval_response":
        if block.get("approve") is False:
            reason = text_of(block.get("reason")) or DENIED
            message.results.append(ToolResult(text_of(block.get("approval_request_id")), "", reason, failed=True))
    elif kind == "mcp_call" or (kind.endswith(_ITEM) and kind.removesuffix(_ITEM) in _ITEMS):
        _read_item(block, kind, message)
    elif (code := _part(block, "executable_code", "executableCode")) is not None:
        _add_call(message, text_of(code.get("id")), _CODE, {key: each for key, each in code.items() if key != "id"})
    elif (done := _part(block, "code_execution_result", "codeExecutionResult")) is not None:
        _add_result(message, text_of(done.get("id")), done)
    else:
        return False
    return True


def hosted_rounds(outputs: Iterable[SpanMessage]) -> list[SpanMessage]:
    """Takes from an answer the calls of tools that the provider ran, their results and the texts before these."""
    rounds: list[SpanMessage] = []
    for message in outputs:
        if any(call.hosted for call in message.calls):
            before = message.said_before_results
            hosted = [call for call in message.calls if call.hosted]
            rounds.append(SpanMessage("assistant", message.texts[:before], hosted, message.results))
            message.texts = message.texts[before:]
            message.calls = [call for call in message.calls if not call.hosted]
            message.results = []
    return rounds


def read_grounding(candidate: Mapping[str, Any], message: SpanMessage) -> None:
    """Adds the searches on which Gemini based an answer, which stand beside its content."""
    found = _part(candidate, "grounding_metadata", "groundingMetadata") or {}
    queries = found.get("web_search_queries") or found.get("webSearchQueries")
    if queries:
        chunks = found.get("grounding_chunks") or found.get("groundingChunks")
        message.add_call(RequestedCall("", _SEARCH, {"queries": queries}, hosted=True))
        message.results.append(ToolResult("", _SEARCH, ABSENT if chunks is None else chunks))


def _part(block: Mapping[str, Any], *keys: str) -> dict[str, Any] | None:
    return next((block[key] for key in keys if isinstance(block.get(key), dict)), None)


def _without_frame(action: Any) -> Any:
    """Returns what a search of OpenAI looked for, without the kind of the action and the pages that it found."""
    return (
        {k: each for k, each in action.items() if k not in ("type", "sources")} if isinstance(action, dict) else action
    )


def _read_item(item: Mapping[str, Any], kind: str, message: SpanMessage) -> None:
    """Reads an item of OpenAI's Responses API, which has the call and its result in one."""
    message.role = "assistant"
    # A call that a person has approved is the one that was asked for.
    call_id = text_of(item.get("approval_request_id")) or text_of(item.get("id"))
    name = text_of(item.get("name")) or kind.removesuffix(_ITEM)
    action = item.get("action")
    if isinstance(action, dict):
        args: Any = _without_frame(action)
        result = action.get("sources")
    else:
        keys = ("arguments", "queries", "code", "revised_prompt")
        args = structure(item["arguments"]) if "arguments" in item else {k: item[k] for k in keys if k in item}
        result = next((item[key] for key in ("output", "outputs", "results", "result") if item.get(key)), None)
        if kind == "image_generation_call" and isinstance(result, str):
            result = {"type": "image", "data": result}
    _add_call(message, call_id, name, args)
    error = item.get("error")
    if error or item.get("status") == "failed":
        message.results.append(ToolResult(call_id, name, text_of(error) if error else ABSENT, failed=True))
    elif result is not None:
        message.results.append(ToolResult(call_id, name, result))


def _add_call(message: SpanMessage, call_id: str, name: str, args: Any) -> None:
    args = structure(args)
    message.add_call(RequestedCall(call_id, name, args, hosted=True))


def _add_result(message: SpanMessage, call_id: str, value: Mapping[str, Any]) -> None:
    """Adds a result; texts that stand before it are not the answer, which the model writes after its last tool."""
    found = _value(value, "content", "response", "result", "output", "outputs", "results", "sources")
    if isinstance(found, list) and found and all(isinstance(each, dict) and set(each) >= {"text"} for each in found):
        found = "\n".join(text_of(each["text"]) for each in found if each.get("type") == "text") or found
    outcome = text_of(value.get("outcome"))
    failed = value.get("is_error") is True or value.get("status") == "error"
    failed = failed or (outcome.startswith("OUTCOME_") and outcome != "OUTCOME_OK")
    if isinstance(found, dict) and "error_code" in found:
        found = text_of(found["error_code"])
        failed = True
    message.results.append(ToolResult(call_id, "", found, failed))
    message.said_before_results = len(message.texts)


def _value(value: Mapping[str, Any], *keys: str) -> Any:
    """Returns the field that holds the content; else all fields that say something of it."""
    for key in keys:
        if value.get(key) is not None:
            return value[key]
    return {key: each for key, each in value.items() if key not in _FRAME}

"""Reads messages of models: one reader for the shapes in which OpenAI, Anthropic, Bedrock, Gemini, LangChain, the AI SDK
and OpenTelemetry write a message, because instrumentations pass them on as they are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from traceweir.schemas.finish_reasons import finish_in
from traceweir.schemas.part_kinds import transcript_in
from traceweir.schemas.reasoning_text import without_reasoning
from traceweir.schemas.result_parts import has_media
from traceweir.schemas.text import printable
from traceweir.schemas.user_notes import without_notes
from traceweir.streams.intake.spans.ai_sdk_messages import APPROVAL, read_ui_tool, with_denials
from traceweir.streams.intake.spans.attributes import ABSENT, structure, text_of
from traceweir.streams.intake.spans.hosted_tools import read_hosted
from traceweir.streams.intake.spans.message import HIDDEN, RequestedCall, Role, SpanMessage, ToolResult, is_hidden, said
from traceweir.streams.intake.spans.message_calls import read_call, read_result_with_call
from traceweir.streams.intake.spans.message_content import KIND_CHARS, MAX_DEPTH, is_converse_block, read_content
from traceweir.streams.intake.spans.python_text import python_value

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "systemmessage": "system",
    "human": "user",
    "user": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
    "toolmessage": "tool",
    "functionmessage": "tool",
    "tool-response": "tool",
    "tool_response": "tool",
    "tool-call": "assistant",
    "tool_call": "assistant",
}
_BEGINNINGS = ('[{"', '{"', "[{'", "{'")
_MESSAGE_KEYS = {"role", "content", "contents", "parts", "text", "message", "tool_calls", "summary"}
"""The keys of which a message has one, in contrast to an item of another kind."""


def read_messages(value: Any, role: Role = "user") -> list[SpanMessage]:
    """Returns the messages in a list, in a list of lists, or in an object with `messages`.

    Args:
        value: The messages, or a JSON text of them.
        role: The role of a text without a role.
    """
    found: list[SpanMessage] = []
    if value is not None:
        inner = python_value(structure(value))
        if _begins_as_messages(inner):
            # A text that is still one was not read.
            return [SpanMessage(role, hidden=True)]
        # Nearly no messages have approvals. Only of a text that can be told without a look at each message.
        if isinstance(inner, list) and (not isinstance(value, str) or APPROVAL in value):
            inner = with_denials(inner)
        _collect(inner, role, found, 0)
    return found


def is_broken(value: Any) -> bool:
    """Returns whether a text begins as messages in JSON, or in Python's text of them, and can be read as neither.

    >>> is_broken('[{"role": "user"}]'), is_broken("[{'role': 'user'}]"), is_broken('[{"role": "user",, }]')
    (False, False, True)
    """
    return _begins_as_messages(value) and isinstance(python_value(structure(value)), str)


def _begins_as_messages(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_BEGINNINGS)


def _collect(value: Any, role: Role, found: list[SpanMessage], depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and _is_block(each) for each in value):
            found.append(read_message({"role": role, "content": value}, role))
            return
        for each in value:
            _collect(structure(each) if isinstance(each, str) else each, role, found, depth + 1)
    elif isinstance(value, dict):
        if "messages" in value and "role" not in value:
            _collect(structure(value["messages"]), role, found, depth + 1)
        else:
            found.append(read_message(value, role))
    elif isinstance(value, str) and value:
        found.append(said(role, value))


def _is_block(value: dict[str, Any]) -> bool:
    """Returns whether an object is a part of a message, and no message."""
    if "role" in value or "kwargs" in value or "data" in value:
        return False
    is_typed = "toolUse" in value or "toolResult" in value or value.get("type") == "text"
    return is_typed or set(value) == {"text"} or is_converse_block(value)


def read_message(value: dict[str, Any], role: Role = "user") -> SpanMessage:
    """Returns a message in any of the known shapes."""
    finish = finish_in(value)
    value, name = _unpacked(value)
    word = value.get("role") or value.get("type") or name or ""
    # AutoGen and Haystack: {"value": "user"}.
    if isinstance(word, dict):
        word = word.get("value", "")
    message = SpanMessage(_ROLES.get(str(word).lower().rpartition(".")[2], role))
    if message.role == "user" and isinstance(value.get("tool_call_id"), str) and value["tool_call_id"]:
        # Anthropic's results are in a message of the user.
        message.role = "tool"
    message.name = text_of(value.get("name")) if message.role != "tool" else ""
    message.finish = finish
    _read_item(value, message)
    # LangChain keeps the calls with broken arguments apart.
    for key in ("tool_calls", "toolCalls", "function_calls", "invalid_tool_calls"):
        if key in value:
            for each in _listed(value[key]):
                read_call(each, message)
    for each in _listed(value.get("tool_results")):
        read_result_with_call(each, message)
    for each in _listed(value.get("toolInvocations")):
        read_ui_tool(each, message)
    extra = value.get("additional_kwargs")
    if not message.calls and isinstance(extra, dict):
        for each in _listed(extra.get("tool_calls")):
            read_call(each, message)
    if not message.calls and isinstance(value.get("function_call"), dict):
        read_call(value["function_call"], message)
    if not message.calls and isinstance(value.get("function_call_name"), str):
        # OpenInference, of the API before `tool_calls`.
        args = value.get("function_call_arguments_json", "")
        read_call({"name": value["function_call_name"], "arguments": args}, message)
    refused = text_of(value.get("refusal") or "")
    spoken = transcript_in({"audio": value.get("audio")})
    content_key = ""
    for key in ("parts", "content", "contents", "_content", "blocks"):
        if value.get(key) is not None:
            content_key = key
            break
    if message.role == "tool" and message.calls and not content_key:
        # What a tool returned has a content: some give this role to the call as well.
        message.role = "assistant"
    elif message.role == "tool" and not message.results:
        _read_tool_message(value, content_key, message)
    elif content_key:
        read_content(value[content_key], message, 0)
        if content_key == "content" and not message.texts and value.get("contents") is not None:
            read_content(value["contents"], message, 0)
    elif isinstance(value.get("text"), str) and "content" not in value:
        message.add_text(value["text"])
    elif isinstance(value.get("message"), str):
        message.add_text(value["message"])
    elif not (message.calls or message.results or message.unread or refused or spoken):
        message.hidden = True
    if not message.texts and (refused or spoken):
        message.texts.append(refused or spoken)
    if message.role == "assistant":
        message.texts = [without_reasoning(text) for text in message.texts]
    elif message.role == "user":
        read = [without_notes(text) for text in message.texts]
        message.texts = [each.said for each in read]
        if any(message.texts):
            # A message of notes alone is no question; beside one, they are parts of it that are left out.
            message.unread += sum((each.notes for each in read), Counter())
    if not HIDDEN.isdisjoint(message.texts):
        message.hidden = True
        message.texts = [text for text in message.texts if not is_hidden(text)]
    return message


def _unpacked(value: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Returns the message in its wrappings (LangChain's dumps, choices, events) and the role that these tell."""
    name = ""
    for _ in range(4):
        if isinstance(value.get("kwargs"), dict) and ("lc" in value or isinstance(value.get("id"), list)):
            path = value.get("id")
            name = str(path[-1]) if isinstance(path, list) and path else name
            value = value["kwargs"]
        elif isinstance(value.get("data"), dict) and isinstance(value.get("type"), str) and "role" not in value:
            value = {**value["data"], "type": value["type"]}
        elif isinstance(value.get("message"), dict):
            # Google's instrumentation writes the calls of a choice beside its message.
            beside = {"tool_calls": value["tool_calls"]} if "tool_calls" in value else {}
            value = {**beside, **value["message"]}
            name = name or "assistant"
        elif isinstance(value.get("message"), str) and "content" not in value and "role" not in value:
            value = {"role": "assistant", "content": value["message"]}
        else:
            break
    event = value.get("event.name")
    if isinstance(event, str) and "role" not in value:
        name = {"gen_ai.choice": "assistant"}.get(event, event.removeprefix("gen_ai.").removesuffix(".message"))
    return value, name


def _listed(value: Any) -> list[dict[str, Any]]:
    value = structure(value)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _read_item(value: dict[str, Any], message: SpanMessage) -> None:
    """Reads an item of OpenAI's Responses API, which is no message: a call, or the output of a call."""
    if read_hosted(value, message):
        return
    match value.get("type"):
        case "function_call" | "custom_tool_call" | "tool_call" if "name" in value:
            message.role = "assistant"
            read_call({"id": value.get("call_id") or value.get("id"), **_without(value, "id")}, message)
        case str(kind) if kind.endswith("_call_output"):
            message.role = "tool"
            call = text_of(value.get("call_id") or value.get("id") or "")
            found = value.get("output", ABSENT)
            message.results.append(ToolResult(call, text_of(value.get("name")), found, value.get("status") == "failed"))
        case str(kind) if kind.endswith("_call") and isinstance(value.get("call_id"), str):
            # What the application runs by itself, such as the use of a computer.
            message.role = "assistant"
            args = next((value[key] for key in ("action", "operation") if isinstance(value.get(key), dict)), ABSENT)
            message.add_call(RequestedCall(value["call_id"], kind.removesuffix("_call"), args))
        case "reasoning":
            message.role = "assistant"
        case str(kind) if kind not in ("", "message") and kind.lower() not in _ROLES and not _MESSAGE_KEYS & set(value):
            message.role = "assistant"
            message.unread[printable(kind, KIND_CHARS)] += 1


def _without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {each: inner for each, inner in value.items() if each != key}


def _read_tool_message(value: dict[str, Any], content_key: str, message: SpanMessage) -> None:
    """Reads a message that answers a call: with blocks of results, or with the result as its content."""
    content = structure(value[content_key]) if content_key and content_key != "content" else value.get(content_key)
    if isinstance(content, list):
        inner = SpanMessage("tool")
        read_content(content, inner, 0)
        message.results += inner.results
        if message.results:
            return
        is_text = content and all(isinstance(each, dict) and each.get("type") == "text" for each in content)
        read = is_text or (
            inner.texts and not any(isinstance(each, str) for each in content) and not has_media(content)
        )
        content = inner.text if read else content
    keys = ("tool_call_id", "toolCallId", "call_id", "id")
    call = text_of(next((value[key] for key in keys if isinstance(value.get(key), str)), ""))
    name = text_of(value.get("name") or value.get("tool_name") or "")
    found = content if content_key else ABSENT
    hidden = is_hidden(found)
    message.hidden = message.hidden or hidden or found is ABSENT
    tells = value.get("event.name") != "gen_ai.tool.message" or "status" in value
    failed = value.get("status") == "error"
    message.results.append(ToolResult(call, name, ABSENT if hidden else found, failed, tells_failure=tells))

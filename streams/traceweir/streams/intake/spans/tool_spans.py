"""Reads a tool's span: the name, the arguments, the result and the error of one call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from traceweir.schemas.result_parts import has_media
from traceweir.schemas.tool_results import is_failure
from traceweir.streams.intake.spans.attributes import ABSENT, first_text, structure, text_of
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of, sources_of
from traceweir.streams.intake.spans.conventions.source import Identified, SourceTable
from traceweir.streams.intake.spans.interrupts import waits_for_person
from traceweir.streams.intake.spans.key_sets import keys_there
from traceweir.streams.intake.spans.message import SpanMessage, is_hidden
from traceweir.streams.intake.spans.message_content import read_content
from traceweir.streams.intake.spans.python_text import python_value
from traceweir.streams.intake.spans.span import Attributes, Span
from traceweir.streams.intake.spans.span_events import named_events

_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>")
_OBJECTS = re.compile(r"\[?<[\w.]+ object at 0x[0-9a-f]+>(?:, <[\w.]+ object at 0x[0-9a-f]+>)*\]?")
_OPERATIONS = re.compile("(?:execute_tool )+")
"""The operation of the standard, which some put before each name, and others before that again."""
_IDS = keys_there(keys_of(lambda each: each.tool_ids))
_NO_IDS = keys_of(lambda each: each.no_tool_ids)
_NAMES = keys_there(keys_of(lambda each: each.tool_names))
_ASKED_TOOLS = hooks_of(lambda each: each.asked_tool)
_PREFIXES = keys_of(lambda each: each.tool_name_prefixes)
_SUFFIXES = keys_of(lambda each: each.tool_name_suffixes)
_ARE_SERVER_CALLS = hooks_of(lambda each: each.is_server_call)
_HANDOFFS = hooks_of(lambda each: each.handoff)
_ARGUMENTS = SourceTable(sources_of(lambda each: each.arguments))
_NO_ARGUMENTS = frozenset(keys_of(lambda each: each.no_arguments))
_RESULTS = SourceTable(sources_of(lambda each: each.results))
_FAILURES = keys_there(keys_of(lambda each: each.failures))
_MESSAGES = keys_of(lambda each: each.failure_messages)
_HIDES_CALL = hooks_of(lambda each: each.hides_call)
_FRAMES_RESULTS = hooks_of(lambda each: each.frames_results)
_INNER_RESULTS = hooks_of(lambda each: each.inner_result)
_HAS_FAILED = hooks_of(lambda each: each.has_failed)
_ERRORS_IN_RESULTS = hooks_of(lambda each: each.error_in_result)
_HIDE_ERRORS = hooks_of(lambda each: each.hides_error)
_WITHOUT_STACKS = hooks_of(lambda each: each.without_stack)
_BLOCKS = {"text", "image", "audio", "resource", "resource_link"}
_RESULT_WITH_BLOCKS = {"content", "isError", "structuredContent", "_meta", "meta"}


@dataclass(slots=True)
class ToolRun:
    """What a tool's span tells about the call."""

    span: Span
    name: str
    call_id: str
    args: Any
    """The arguments: an object, a text, or ABSENT."""
    result: Any
    """The result, or ABSENT."""
    error: str | None
    """The error message of a failed call, possibly empty; None if the call succeeded."""
    waits: bool = False
    """Whether the tool stopped to wait for a person."""
    has_unnamed_args: bool = False
    """Whether the span has values of arguments without the names of their parameters, so that `args` is ABSENT."""

    @property
    def handoff(self) -> str:
        """The name under which a model asks for the handover to another agent that the span is; empty for other tools."""
        return next((asked for handoff in _HANDOFFS if (asked := handoff(self.name))), "")

    @property
    def is_server_call(self) -> bool:
        """Whether the tool is one of a server, which the client or the server recorded."""
        return is_server_call(self.span.attributes)


def read_tool(span: Span) -> ToolRun:
    """Returns what a tool's span tells about the call."""
    result, id_in_result, failed = _result(span)
    framed_args, id_in_event = _args(span)
    args = unwrapped_args(framed_args)
    is_unnamed = args is ABSENT and has_unnamed_args(framed_args)
    if any(hides(span) for hides in _HIDES_CALL):
        args = result = ABSENT
    call_id = first_text(span.attributes, *_IDS.of(span.key_set))
    call_id = "" if call_id.startswith(_NO_IDS) else call_id
    call_id = call_id or id_in_result or id_in_event
    if waits_for_person(span):
        return ToolRun(span, tool_name(span), call_id, args, ABSENT, None, waits=True, has_unnamed_args=is_unnamed)
    error = error_of(span, result, failed)
    return ToolRun(span, tool_name(span), call_id, args, result, error, has_unnamed_args=is_unnamed)


def tool_name(span: Span) -> str:
    """Returns the name of a span's tool."""
    name = next((found for tell in _ASKED_TOOLS if (found := tell(span.attributes))), "")
    name = name or first_text(span.attributes, *_NAMES.of(span.key_set))
    if not name:
        name = span.name
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
    name = name.rpartition("tools/call ")[2] if is_server_call(span.attributes) else name
    begin = _OPERATIONS.match(name)
    return name[begin.end() :] if begin else name


def is_server_call(attributes: Attributes) -> bool:
    """Returns whether a span is the call of a server's tool, as its client or the server recorded it."""
    return any(tell(attributes) for tell in _ARE_SERVER_CALLS)


def _args(span: Span) -> tuple[Any, str]:
    """Returns the arguments, in the frame that they have, and the id of the call beside them."""
    value = _value_in(span, _ARGUMENTS)
    return (value.value, value.call_id) if isinstance(value, Identified) else (value, "")


def _value_in(span: Span, sources: SourceTable) -> Any:
    """Returns the first value that is there."""
    for value in sources.read_all(span):
        if value is not ABSENT:
            return value
    return ABSENT


def unwrapped_args(value: Any) -> Any:
    """Returns the arguments of a call without the frame that a framework puts around them.

    >>> unwrapped_args('{"kwargs": {"a": 1}}'), unwrapped_args("{'a': 1}")
    ({'a': 1}, {'a': 1})
    """
    if value is ABSENT or is_hidden(value) or (isinstance(value, str) and value in _NO_ARGUMENTS):
        return ABSENT
    value = python_value(structure(value))
    if not isinstance(value, dict):
        return value
    if "inputs" in value and set(value) <= {"inputs", "tags", "metadata", "kwargs", "input_str"}:
        return unwrapped_args(value["inputs"])
    if _is_of_function(value):
        if has_unnamed_args(value):
            return ABSENT
        return {name: each for name, each in value["kwargs"].items() if not _is_object(each)}
    if value.get("type") == "tool_call" and isinstance(value.get("args"), dict):
        return value["args"]
    return value


def _is_of_function(value: dict[str, Any]) -> bool:
    """Returns whether an object has the arguments of a function in Python: those by place, and those by name."""
    return isinstance(value.get("kwargs"), dict) and set(value) <= {"args", "kwargs", "sanitize_inputs_outputs"}


def has_unnamed_args(value: Any) -> bool:
    """Returns whether the arguments of a function have values without the names of their parameters.

    The object whose method the function is does not count.

    >>> has_unnamed_args('{"args": ["Oslo"], "kwargs": {"day": 1}}'), has_unnamed_args('{"args": [], "kwargs": {"day": 1}}')
    (True, False)
    """
    value = structure(value)
    if not isinstance(value, dict) or not _is_of_function(value) or not isinstance(value.get("args"), list):
        return False
    return any(not _is_object(each) for each in value["args"])


def _is_object(value: Any) -> bool:
    """Returns whether a value is Python's text of an object, such as a context that the framework adds to a call."""
    return isinstance(value, str) and _OBJECT.fullmatch(value) is not None


def _result(span: Span) -> tuple[Any, str, bool]:
    """Returns the result, the id of the call and whether the result says that the tool failed."""
    value = _value_in(span, _RESULTS)
    # A frame is an object, or a list with one.
    if not isinstance(value, dict | list):
        return unwrapped_result(value)
    return unwrapped_result(value, framed=any(frames(span) for frames in _FRAMES_RESULTS))


def unwrapped_result(value: Any, *, framed: bool = False, depth: int = 0) -> tuple[Any, str, bool]:
    """Returns a result without its frame, the id of the call in the frame, and whether the frame says `error`.

    Args:
        value: The result.
        framed: Whether the frame can be `{"result": value}`, which is the result of some tools as well.
        depth: Number of frames around it.
    """
    if is_hidden(value) or value is ABSENT or (isinstance(value, str) and _OBJECTS.fullmatch(value)):
        return ABSENT, "", False
    if depth > 4:
        return value, "", False
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        block = value[0]
        if set(block) == {"text"} or (block.get("type") == "text" and "text" in block):
            return python_value(structure(block["text"])), "", False
        if set(block) == {"json"}:
            return block["json"], "", False
    if isinstance(value, dict | str):
        for tell in _INNER_RESULTS:
            if (inner := tell(value)) is not None:
                return unwrapped_result(inner, framed=framed, depth=depth + 1)
    if not isinstance(value, dict):
        return python_value(structure(value)), "", False
    if isinstance(value.get("kwargs"), dict) and "lc" in value:
        return unwrapped_result(value["kwargs"], framed=framed, depth=depth + 1)
    if isinstance(value.get("data"), dict) and "content" in value["data"]:
        return unwrapped_result({**value["data"], "type": value.get("type", "tool")}, framed=framed, depth=depth + 1)
    if "content" in value and ("tool_call_id" in value or value.get("type") in ("tool", "ToolMessage")):
        content = value["content"]
        call = text_of(value.get("tool_call_id"))
        is_text = isinstance(content, list) and content and all(isinstance(each, dict) for each in content)
        if is_text and not has_media(content):
            message = SpanMessage("tool")
            read_content(content, message, 0)
            content = message.text
        return python_value(structure(content)), call, value.get("status") == "error"
    if set(value) <= _RESULT_WITH_BLOCKS and (kinds := _kinds_of_blocks(value.get("content"))):
        if has_media(value):
            return {key: each for key, each in value.items() if key != "isError"}, "", value.get("isError") is True
        message = SpanMessage("tool")
        read_content(value["content"], message, 0)
        is_text = kinds == {"text"} and message.texts
        body = structure(message.text) if is_text else value.get("structuredContent", value["content"])
        return body, "", value.get("isError") is True
    if "raw_output" in value and ("tool_name" in value or "blocks" in value):
        return structure(value["raw_output"]), "", value.get("is_error") is True
    if set(value) <= {"id", "name", "response", "will_continue", "scheduling", "parts"} and {"name", "response"} <= set(
        value
    ):
        inner, _, failed = unwrapped_result(value["response"], framed=True, depth=depth + 1)
        return inner, text_of(value.get("id")), failed
    if "output" in value and set(value) <= {"output", "kwargs", "tags", "metadata"}:
        return unwrapped_result(structure(value["output"]), framed=framed, depth=depth + 1)
    if framed and set(value) == {"result"}:
        return value["result"], "", False
    return value, "", False


def _kinds_of_blocks(content: object) -> set[str]:
    """Returns the kinds of the blocks of MCP's results; empty if the content is not that of such a result."""
    if not isinstance(content, list):
        return set()
    kinds = {text_of(block.get("type")) if isinstance(block, dict) else "" for block in content}
    return kinds if kinds <= _BLOCKS else set()


def exception_message(span: Span) -> str:
    """Returns the message of the last exception that a span recorded; empty if there is none."""
    message = ""
    for event in named_events(span, "exception"):
        message = text_of(event.attributes.get("exception.message"))
    return message


def exception_type(span: Span) -> str:
    """Returns the type of the last exception that a span recorded, or of its error; empty if it tells none."""
    kind = first_text(span.attributes, "error.type")
    for event in named_events(span, "exception"):
        kind = text_of(event.attributes.get("exception.type")) or kind
    return kind


def last_line(text: str) -> str:
    """Returns the message in a traceback's last line; any other text unchanged.

    >>> last_line("Traceback (most recent call last):\\n  File x\\nValueError: no such shop")
    'no such shop'
    """
    if "Traceback (most recent call last)" not in text:
        return text
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    last = next((line for line in reversed(lines) if not line.startswith(("During task", "Traceback"))), "")
    kind, colon, message = last.partition(": ")
    return message if colon and kind.replace(".", "").replace("_", "").isalnum() else last


def error_in(result: Any) -> str:
    """Returns the error message that a result is, as `{"error": message}`; empty if it is none."""
    error = result.get("error") if isinstance(result, dict) and len(result) <= 2 else None
    return error if isinstance(error, str) and is_failure(result) else ""


def says_failure(span: Span) -> bool:
    """Returns whether an attribute of a span says that its step failed, which some instrumentations write in place of the
    status.
    """
    return first_text(span.attributes, *_FAILURES.of(span.key_set)).lower() == "error"


def error_of(span: Span, result: Any, failed: bool) -> str | None:
    """Returns the error message of a failed call; None if nothing says that it failed."""
    attributes = span.attributes
    in_result = error_in(result)
    if isinstance(result, str):
        in_result = next((found for tell in _ERRORS_IN_RESULTS if (found := tell(result))), in_result)
    failed = failed or says_failure(span) or any(has_failed(span, result) for has_failed in _HAS_FAILED)
    if not (span.status == "ERROR" or failed or in_result or "error.type" in attributes):
        return None
    text = result if isinstance(result, str) else ""
    described = last_line(span.status_message) if span.status_message else ""
    if span.status_message == first_text(attributes, "error.type"):
        described = ""
    message = exception_message(span) or in_result or first_text(attributes, *_MESSAGES)
    if described and any(hides(span.status_message, described) for hides in _HIDE_ERRORS):
        described = ""
    found = message or described or text
    for without_stack in _WITHOUT_STACKS:
        found = without_stack(found)
    return found

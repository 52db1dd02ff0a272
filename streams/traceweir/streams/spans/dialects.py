"""Reads the input and output messages of a model call, in the attribute or event where each convention writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from traceweir.streams.spans.attributes import ABSENT, decoded, structure
from traceweir.streams.spans.message import Message, Role, is_hidden, newest_turn
from traceweir.streams.spans.messages import read_message, read_messages
from traceweir.streams.spans.span import Span, SpanEvent

DETAILS = "gen_ai.client.inference.operation.details"
"""The event, of a span or in a log, with the whole content of a model call."""
GENAI_EVENT = "gen_ai."
"""The beginning of the names of log records that belong to a model call."""
_CHOICES = {"gen_ai.choice", "gen_ai.assistant.choice"}
_INPUT_EVENTS = {
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.tool.message",
}
_SPREAD = ("llm.input_messages.", "gen_ai.prompt.", "llm.prompts.", "llm.output_messages.", "gen_ai.completion.")
"""The beginnings of keys by which an instrumentation spreads messages over attributes."""
MAX_INDEX = 10_000
_ROUNDS = "automatic_function_calling_history"
_FAILED = ('"is_error": true', '"is_error":true', '"status": "error"', '"status":"error"')
"""What a request has in it where it says that a tool failed; OpenInference's messages leave it out."""
PYTHON_TEXT = re.compile(r"[A-Za-z_.]{0,128}[A-Z]\w{0,64}\([\w.]{1,64}=")
"""The beginning of Python's text of an object, which instrumentations write where they cannot serialize.

Names are bounded: with unbounded ones, the time grows with the square of a long word in an agent's text.
"""


def input_messages(span: Span) -> list[Message]:
    """Returns the messages that a model read, oldest first; empty if the span does not have them."""
    return with_content(_inputs(span))


def output_messages(span: Span) -> list[Message]:
    """Returns the messages that a model wrote; empty if the span does not have them."""
    return with_content(_outputs(span))


def played_rounds(span: Span) -> list[Message]:
    """Returns the tool calls and results of the rounds that a client played by itself in one call.

    Google's SDK does so with functions as tools (automatic function calling), and tells the rounds in its response.
    """
    value = span.attributes.get("output.value")
    if not isinstance(value, str) or _ROUNDS not in value:
        return []
    value = structure(value)
    return newest_turn(read_messages(value.get(_ROUNDS))) if isinstance(value, dict) else []


def with_content(candidates: Iterable[list[Message]]) -> list[Message]:
    """Returns the first messages of which one has content; else the first messages, which are without."""
    hidden: list[Message] = []
    for found in candidates:
        if not found:  # as most are
            continue
        for message in found:
            if message.has_content:
                return found
        hidden = hidden or found
    return hidden


def _inputs(span: Span) -> Iterator[list[Message]]:
    # A span has one or two of these attributes: each is looked for before a reader is called.
    attributes, spread = span.attributes, _spread(span)
    if "gen_ai.input.messages" in attributes:
        yield read_messages(attributes["gen_ai.input.messages"])
    for event in named_events(span, DETAILS):
        yield read_messages(_field(event, "gen_ai.input.messages"))
    if spread:
        yield _with_failures(_openinference(span, spread, "llm.input_messages.", "user"), attributes.get("input.value"))
        yield _indexed(spread, "gen_ai.prompt.")
    for key in ("gcp.vertex.agent.llm_request", "mlflow.spanInputs", "gen_ai.prompt"):
        if key in attributes:
            yield _requested(attributes[key])
    if "events" in attributes:
        yield [message for message, chosen in _event_list(attributes["events"]) if not chosen]
    if "ai.prompt.messages" in attributes:
        yield read_messages(attributes["ai.prompt.messages"])
    if "ai.prompt" in attributes:
        yield _requested(attributes["ai.prompt"])
    if span.events:
        yield _of_events(span, _INPUT_EVENTS)
    for event in named_events(span, "gen_ai.content.prompt"):
        yield _requested(_field(event, "gen_ai.prompt"))
    if "input.value" in attributes:
        yield _requested(attributes["input.value"])
    if spread:
        yield _indexed(spread, "llm.prompts.")
    for key in ("traceloop.entity.input", "langfuse.observation.input", "gen_ai.task.input", "gen_ai.request.messages"):
        if key in attributes:
            yield _requested(attributes[key])


def _outputs(span: Span) -> Iterator[list[Message]]:
    attributes, spread = span.attributes, _spread(span)
    if "gen_ai.output.messages" in attributes:
        yield _choices(attributes["gen_ai.output.messages"])
    for event in named_events(span, DETAILS):
        yield _choices(_field(event, "gen_ai.output.messages"))
    if spread:
        yield _openinference(span, spread, "llm.output_messages.", "assistant")
        yield _indexed(spread, "gen_ai.completion.", "assistant")
    for key in ("gcp.vertex.agent.llm_response", "mlflow.spanOutputs", "gen_ai.completion"):
        if key in attributes:
            yield _answered(attributes[key])
    if "events" in attributes:
        yield [message for message, chosen in _event_list(attributes["events"]) if chosen]
    yield _ai_sdk(attributes)
    if span.events:
        yield _of_events(span, _CHOICES)
    for event in named_events(span, "gen_ai.content.completion"):
        yield _answered(_field(event, "gen_ai.completion"))
    value = attributes.get("output.value")
    if isinstance(value, str) and value.startswith("assistant: ") and "llama_index" in span.scope:
        yield [Message("assistant", [value.removeprefix("assistant: ")])]  # LlamaIndex's text of a message
    if value is not None:
        yield _answered(value)
    if "traceloop.entity.output" in attributes:
        yield _answered(attributes["traceloop.entity.output"])
    if "langfuse.observation.output" in attributes:
        value = attributes["langfuse.observation.output"]
        yield _answered(value) or ([Message("assistant", [value])] if isinstance(value, str) else [])


def _choices(value: Any) -> list[Message]:
    """Returns the messages that a model wrote; the pieces of a stream, which end without a reason, become one message.

    ADK writes the pieces, and then the whole text again.
    """
    if value is None:
        return []
    value = structure(value)
    items = value if isinstance(value, list) else []
    if len(items) < 2 or any(not isinstance(item, dict) or item.get("finish_reason") != "" for item in items[:-1]):
        return read_messages(value, "assistant")
    *pieces, last = read_messages(items, "assistant")
    text = "".join(part for piece in pieces for part in piece.texts)
    whole = "".join(last.texts)
    last.texts = [whole if whole.startswith(text) else text + whole]
    last.calls = [call for piece in pieces for call in piece.calls if call not in last.calls] + last.calls
    return [last]


def event_name(event: SpanEvent) -> str:
    """Returns the name of an event; a log record can have the name in its attribute `event.name`."""
    named = event.attributes.get("event.name")
    return event.name or (named if isinstance(named, str) else "")


def is_genai_event(event: SpanEvent) -> bool:
    """Returns whether a log record belongs to a model call, as its name or its attribute `event.name` says."""
    names = (event.name, event.attributes.get("event.name"))
    return any(isinstance(name, str) and name.startswith(GENAI_EVENT) for name in names)


def named_events(span: Span, name: str) -> list[SpanEvent]:
    """Returns the events of that name."""
    return [event for event in span.events if event_name(event) == name] if span.events else []


def _field(event: SpanEvent, key: str) -> Any:
    value = event.attributes.get(key)
    if value is None and isinstance(event.body, dict):
        value = event.body.get(key)
    return value


def event_fields(event: SpanEvent) -> dict[str, Any]:
    """Returns the attributes and the body of an event as one object; a body that is a text is its `content`."""
    value: dict[str, Any] = dict(event.attributes)
    body = structure(event.body)
    content = structure(value.get("gen_ai.event.content"))
    for each in (content, body):
        if isinstance(each, dict):
            value.update(each)
        elif each is not None and each != "":
            value["content"] = each
    return value


def _event_message(event: SpanEvent) -> Message:
    name = event_name(event)
    role: Role = "assistant" if name in _CHOICES else "user"
    return read_message({**event_fields(event), "event.name": name}, role)


def _of_events(span: Span, names: Set[str]) -> list[Message]:
    """Returns the messages in the events of these names.

    If the user's text is there, content is not hidden, and a call without arguments has none: botocore's
    instrumentation leaves out an empty object.
    """
    messages = [_event_message(event) for event in span.events if event_name(event) in names]
    if any(call.args is ABSENT for message in messages for call in message.calls):
        asked = (_event_message(event) for event in span.events if event_name(event) == "gen_ai.user.message")
        if any(message.has_content for message in asked):
            for message in messages:
                message.calls = [
                    call._replace(args={}) if call.args is ABSENT and call.name else call for call in message.calls
                ]
    return messages


def _event_list(value: Any) -> list[tuple[Message, bool]]:
    """Returns the messages of pydantic-ai's list of events, each with whether the model wrote it in this call."""
    items = structure(value)
    if not isinstance(items, list):
        return []
    found = [item for item in items if isinstance(item, dict) and isinstance(item.get("event.name"), str)]
    return [(read_message(item), item["event.name"] in _CHOICES) for item in found]


def _spread(span: Span) -> Mapping[str, Any]:
    """Returns the attributes that are parts of messages."""
    return {key: value for key, value in span.attributes.items() if key.startswith(_SPREAD)}


def _openinference(span: Span, spread: Mapping[str, Any], prefix: str, role: Role) -> list[Message]:
    """Returns OpenInference's messages. A call without arguments has no attribute for them, unless one was dropped.

    Nor has a call whose arguments are an object, which the SDK refuses: smolagents has such; `output.value` tells them.
    """
    messages = _indexed(spread, prefix, role)
    cut = any(value is None and key.startswith(prefix) for key, value in spread.items())
    calls = [call for message in messages for call in message.calls]
    if span.dropped_attributes or cut or all(call.args is not ABSENT for call in calls):
        return messages
    told = [call for message in _answered(span.attributes.get("output.value")) for call in message.calls]
    args = {call.id: call.args for call in told if call.id and call.args is not ABSENT}
    for message in messages:
        message.calls = [
            call._replace(args=args.get(call.id, {})) if call.args is ABSENT and call.name else call
            for call in message.calls
        ]
    return messages


def _with_failures(messages: list[Message], request: Any) -> list[Message]:
    """Returns the messages with the results marked of which the request says that the tool failed."""
    if isinstance(request, str) and any(mark in request for mark in _FAILED):
        failed = {result.id for message in _requested(request) for result in message.results if result.failed}
        for message in messages:
            message.results = [
                result._replace(failed=True) if result.id and result.id in failed else result
                for result in message.results
            ]
    return messages


def _indexed(spread: Mapping[str, Any], prefix: str, role: Role = "user") -> list[Message]:
    """Returns messages that are spread over attributes such as `llm.input_messages.0.message.role`."""
    if not spread:
        return []
    tree: dict[str, Any] = {}
    for key, value in spread.items():
        if value is not None and key.startswith(prefix):
            parts = key[len(prefix) :].split(".")
            if not parts[0].isdecimal() or len(parts) > 16:
                continue
            node = tree
            for part in parts[:-1]:
                following = node.setdefault(part, {})
                if not isinstance(following, dict):
                    break
                node = following
            else:
                node.setdefault(parts[-1], value)
    return [read_message(each, role) for each in _as_list(tree) if isinstance(each, dict)]


def _as_list(tree: dict[str, Any]) -> list[Any]:
    """Returns an object whose keys are numbers as a list, in the order of the numbers; its objects likewise."""
    numbered = sorted((int(key), key) for key in tree if key.isdecimal() and len(key) < 9)
    return [_with_lists(tree[key]) for _, key in numbered[:MAX_INDEX]]


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return _as_list(value)
    return {key: _with_lists(inner) for key, inner in value.items()}


def _requested(value: Any) -> list[Message]:
    """Returns the messages of a request to a model: `messages`, `contents`, `input`, `prompt`, or a list of messages."""
    if value is None:
        return []
    value = structure(value)
    if isinstance(value, list):
        return read_messages([each for each in value if isinstance(each, dict | list)])
    if not isinstance(value, dict):
        return []
    for key in ("messages", "contents", "input", "inputs", "prompt", "prompts", "chat_history"):
        inner = structure(value.get(key))
        if isinstance(inner, list) and inner:
            if all(isinstance(each, str) for each in inner) and any(each.startswith("ChatMessage(") for each in inner):
                continue  # a text for people, in which parts can be left out
            return read_messages(inner)
        if isinstance(inner, dict) and key != "messages":
            return _requested(inner)
        if isinstance(inner, str) and inner and not is_hidden(inner):
            return [Message("user", [inner])]
    return []


def _answered(value: Any, depth: int = 0) -> list[Message]:
    """Returns the messages of a model's response: choices, generations, candidates, items, or one message."""
    if value is None or depth > 5:
        return []
    value = structure(value)
    if isinstance(value, list):
        return [message for each in value for message in _answered(each, depth + 1)]
    if isinstance(value, str):
        value = decoded(value) if value.startswith('"') else value
        if not isinstance(value, str) or not value or PYTHON_TEXT.match(value):
            return []
        return [Message("assistant", [] if is_hidden(value) else [value], hidden=is_hidden(value))]
    if not isinstance(value, dict):
        return []
    for key in ("choices", "generations", "candidates", "messages", "outputs"):
        inner = structure(value.get(key))
        if isinstance(inner, list) and inner:
            return _answered(inner[-1:] if key in ("messages", "outputs") else inner, depth + 1)
        if isinstance(inner, dict) and key == "outputs":
            return _answered(inner, depth + 1)
    inner = value.get("output")
    if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner):
        return read_messages(inner, "assistant")
    content = value.get("content")
    if isinstance(content, dict) and "parts" in content:  # Gemini
        return [
            read_message({"role": "assistant", **content, "finish_reason": value.get("finish_reason")}, "assistant")
        ]
    if {"content", "tool_calls", "message", "kwargs", "text", "parts"} & set(value):
        return [read_message(value, "assistant")]
    return []


def _ai_sdk(attributes: Mapping[str, Any]) -> list[Message]:
    text = next((attributes[k] for k in ("ai.response.text", "ai.result.text") if k in attributes), None)
    calls = structure(
        next((attributes[k] for k in ("ai.response.toolCalls", "ai.result.toolCalls") if k in attributes), None)
    )
    if text is None and not isinstance(calls, list):
        return []
    return [read_message({"role": "assistant", "content": text or "", "tool_calls": calls}, "assistant")]

"""Reads the input and output messages of a model call, in the attribute or event where each convention writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, first_text, structure
from traceweir.streams.intake.spans.conventions import haystack
from traceweir.streams.intake.spans.message import Message, Role, newest_turn
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.span import Span, SpanEvent
from traceweir.streams.intake.spans.spread_messages import indexed, openinference, spread_attributes, with_failures

DETAILS = "gen_ai.client.inference.operation.details"
"""The event, of a span or in a log, with the whole content of a model call."""
GENAI_EVENT = "gen_ai."
"""The beginning of the names of log records that belong to a model call."""
_CALLING = {"tool_calls", "tool_call", "tool_use", "function_call"}
"""The reasons with which the answer of a model ends if it asks for tools."""
_CHOICES = {"gen_ai.choice", "gen_ai.assistant.choice"}
_INPUT_EVENTS = {
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.tool.message",
}
_ROUNDS = "automatic_function_calling_history"


def input_messages(span: Span) -> list[Message]:
    """Returns the messages that a model read, oldest first; empty if the span does not have them."""
    return with_content(_inputs(span))


def output_messages(span: Span) -> list[Message]:
    """Returns the messages that a model wrote; empty if the span does not have them."""
    found = with_content(_outputs(span))
    asks = found and (found[-1].finish in _CALLING or first_text(span.attributes, "llm.finish_reason") in _CALLING)
    if asks and not any(message.calls for message in found):
        # LiteLLM writes the text and the calls of an answer under different keys; OpenInference's LangChain in JavaScript
        # spreads the calls of some models only, and its `output.value` has all.
        for others in _outputs(span):
            if calls := [call for message in others for call in message.calls]:
                found[-1].calls += calls
                break
    return found


def step_message(span: Span) -> Message | None:
    """Returns what a model wrote in a step of Mastra; None for any other span.

    The span of the model call, which is inside, has the text alone, and a tool that the application runs has no span.
    """
    told = structure(span.attributes.get("mastra.model_step.output"))
    if not isinstance(told, dict):
        return None
    message = {"role": "assistant", "content": told.get("text") or "", "tool_calls": told.get("toolCalls")}
    return read_message(message, "assistant")


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
    attributes = span.attributes
    if "gen_ai.input.messages" in attributes:
        yield read_messages(attributes["gen_ai.input.messages"])
    for event in named_events(span, DETAILS):
        yield read_messages(_field(event, "gen_ai.input.messages"))
    spread = spread_attributes(span)
    if spread:
        yield with_failures(openinference(span, spread, "llm.input_messages.", "user"), attributes.get("input.value"))
        yield indexed(spread, "gen_ai.prompt.")
    for key in ("gcp.vertex.agent.llm_request", "mlflow.spanInputs", "gen_ai.prompt"):
        if key in attributes:
            yield requested(attributes[key])
    if "events" in attributes:
        yield [message for message, chosen in _event_list(attributes["events"]) if not chosen]
    if "ai.prompt.messages" in attributes:
        yield read_messages(attributes["ai.prompt.messages"])
    if "ai.prompt" in attributes:
        yield requested(attributes["ai.prompt"])
    if span.events:
        yield _of_events(span, _INPUT_EVENTS)
    for event in named_events(span, "gen_ai.content.prompt"):
        yield requested(_field(event, "gen_ai.prompt"))
    if "input.value" in attributes:
        yield requested(attributes["input.value"])
    for key in haystack.INPUTS:
        if key in attributes:
            yield requested(attributes[key])
    if spread:
        yield indexed(spread, "llm.prompts.")
    for key in ("traceloop.entity.input", "langfuse.observation.input", "gen_ai.task.input", "gen_ai.request.messages"):
        if key in attributes:
            yield requested(attributes[key])


def _outputs(span: Span) -> Iterator[list[Message]]:
    attributes = span.attributes
    if "gen_ai.output.messages" in attributes:
        yield _choices(attributes["gen_ai.output.messages"])
    for event in named_events(span, DETAILS):
        yield _choices(_field(event, "gen_ai.output.messages"))
    spread = spread_attributes(span)
    if spread:
        yield openinference(span, spread, "llm.output_messages.", "assistant")
        yield indexed(spread, "gen_ai.completion.", "assistant")
    for key in ("gcp.vertex.agent.llm_response", "mlflow.spanOutputs", "gen_ai.completion"):
        if key in attributes:
            yield answered(attributes[key])
    if "events" in attributes:
        yield [message for message, chosen in _event_list(attributes["events"]) if chosen]
    yield _ai_sdk(attributes)
    if span.events:
        yield _of_events(span, _CHOICES)
    for event in named_events(span, "gen_ai.content.completion"):
        yield answered(_field(event, "gen_ai.completion"))
    value = attributes.get("output.value")
    if isinstance(value, str) and value.startswith("assistant: ") and "llama_index" in span.scope:
        yield [Message("assistant", [value.removeprefix("assistant: ")])]  # LlamaIndex's text of a message
    if value is not None:
        yield answered(value)
    if haystack.is_of_haystack(attributes):
        yield haystack.replies(attributes)
    if "traceloop.entity.output" in attributes:
        yield answered(attributes["traceloop.entity.output"])
    if "langfuse.observation.output" in attributes:
        value = attributes["langfuse.observation.output"]
        yield answered(value) or ([Message("assistant", [value])] if isinstance(value, str) else [])


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


def _ai_sdk(attributes: Mapping[str, Any]) -> list[Message]:
    text = next((attributes[k] for k in ("ai.response.text", "ai.result.text") if k in attributes), None)
    calls = structure(
        next((attributes[k] for k in ("ai.response.toolCalls", "ai.result.toolCalls") if k in attributes), None)
    )
    if text is None and not isinstance(calls, list):
        return []
    return [read_message({"role": "assistant", "content": text or "", "tool_calls": calls}, "assistant")]

"""pydantic-ai, whose spans have lists of events and of messages in attributes of their own."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import CHOICES
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage, is_hidden, newest_turn
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.span import Kind, Span

_HISTORIES = ("pydantic_ai.all_messages", "all_messages_events")


def _kind_of_name(span: Span) -> Kind | None:
    if span.name == "running tool" or span.name.startswith("running tool:"):
        return "tool"
    return "agent" if span.name == "agent run" else None


def _event_list(value: Any) -> list[tuple[SpanMessage, bool]]:
    """Returns the messages of pydantic-ai's list of events, each with whether the model wrote it in this call."""
    items = structure(value)
    if not isinstance(items, list):
        return []
    found = [item for item in items if isinstance(item, dict) and isinstance(item.get("event.name"), str)]
    return [(read_message(item), item["event.name"] in CHOICES) for item in found]


def _read_inputs(value: Any) -> list[SpanMessage]:
    listed = _event_list(value)
    written = len(_read_outputs(value))
    if any(chosen for _, chosen in listed) or not written:
        return [message for message, chosen in listed if not chosen]
    return [message for message, _ in listed[:-written]]


def _read_outputs(value: Any) -> list[SpanMessage]:
    """Returns what the model wrote: the choices, or else what stands after the last message of the user or a tool.

    Logfire writes the answers of OpenAI Agents as messages of the assistant.
    """
    listed = _event_list(value)
    if chosen := [message for message, is_choice in listed if is_choice]:
        return chosen
    last = [place for place, (message, _) in enumerate(listed) if message.role in ("user", "tool")]
    return [message for message, _ in listed[last[-1] + 1 :]] if last else []


def _read_run(value: Any) -> list[SpanMessage]:
    """Returns what the models of an agent wrote and read after the question."""
    return newest_turn(read_messages(value))


def _result(_: Span, value: Any) -> str:
    """Returns what the agent returned, as it is: an object is JSON."""
    text = text_of(value)
    return "" if is_hidden(text) else text


def _is_no_run(name: str, _: object) -> bool:
    """Returns whether a span is around several calls: it is called `running 2 tools`."""
    return name.startswith("running ")


def _tells_no_error(_: str, message: str) -> bool:
    """Returns whether a status has the type of an exception alone: `ToolRetryError: `."""
    return message.endswith(": ")


PYDANTIC_AI = Convention(
    name="pydantic-ai",
    kind_of_name=_kind_of_name,
    switches=(
        Switch(
            "InstrumentationSettings(include_content=True)",
            keys=("pydantic_ai.", "model_request_parameters"),
            scopes=("pydantic-ai*",),
        ),
    ),
    frameworks=(("pydantic-ai", "pydantic-ai"), ("pydantic_ai", "pydantic-ai")),
    agents=("agent_name",),
    requested_models=("model_name",),
    contents=("final_result",),
    only_json=_HISTORIES,
    inputs=attributes(_read_inputs, Rank.BODY, "events"),
    outputs=(
        *attributes(_read_outputs, Rank.BODY, "events"),
        # Of an agent without the spans of its models' calls.
        *attributes(_read_run, Rank.REST, *_HISTORIES),
    ),
    histories=_HISTORIES,
    answers=(Source("final_result", _result, Rank.BODY),),
    arguments=(Source("tool_arguments", as_it_is, Rank.VALUE),),
    results=attributes(structure, Rank.BODY, "tool_response"),
    tool_name_prefixes=("running tool: ",),
    hides_error=_tells_no_error,
    is_no_run=_is_no_run,
    answering_tools=("final_result",),
)

"""Haystack's own tracing: values of Python as JSON, in attributes of its own.

A span says by its name what it is: a run of an agent, a step of it, a component of a pipeline. The type of a component
tells whether it calls a model. Haystack 2 writes the steps of an agent as components.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.api_bodies import requested
from traceweir.streams.intake.spans.attributes import first_text, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span import Attributes, Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_SPAN = "haystack."
_AGENT = "haystack.agent.run"
_COMPONENT = "haystack.component.type"
_KINDS: dict[str, Kind] = {
    "haystack.pipeline.run": "workflow",
    "haystack.async_pipeline.run": "workflow",
    _AGENT: "agent",
    "haystack.agent.step.llm": "llm",
    "haystack.agent.step.tool": "tool",
}
_INPUTS = ("haystack.agent.step.llm.input", "haystack.component.input")
_OUTPUTS = ("haystack.agent.step.llm.output", "haystack.component.output")


def _read_replies(span: Span, _: object) -> list[SpanMessage]:
    """Returns the messages that a model wrote: chat messages, or texts."""
    value = _output(span.attributes).get("replies")
    return read_messages(value, "assistant") if isinstance(value, list) else []


def _metadata_of(of_span: Attributes) -> Mapping[str, Any]:
    """Returns what the API tells of the answer: `model` and `usage`; empty if it is not there."""
    output = _output(of_span)
    if not output:
        return {}
    for value in (output.get("replies"), output.get("meta")):
        last = value[-1] if isinstance(value, list) and value else None
        meta = last.get("meta", last) if isinstance(last, dict) else None
        if isinstance(meta, dict) and ("model" in meta or "usage" in meta):
            return meta
    return {}


def _component_values(value: Any) -> list[dict[str, Any]]:
    """Returns the inputs or the outputs of the components of a pipeline, which are under the names of the components."""
    value = structure(value)
    return [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []


def _only_text(value: Any) -> str:
    """Returns the text of a pipeline's input, if it is the only one: components get the same question by any name."""
    texts = {each for inputs in _component_values(value) for each in inputs.values() if isinstance(each, str) and each}
    return texts.pop() if len(texts) == 1 else ""


def _kind_of_name(span: Span) -> Kind | None:
    if not span.name.startswith(_SPAN):
        return None
    return _KINDS.get(span.name) or _of_component(span.attributes)


def _of_component(of_span: Attributes) -> Kind:
    """Returns the kind of a component: its type tells it, and that a model replies."""
    component = first_text(of_span, _COMPONENT)
    if component == "Agent":
        return "agent"
    # The model of an agent of Haystack 2.
    is_model = first_text(of_span, "haystack.component.name") == "chat_generator"
    # The text can be cut, so that it is no JSON.
    is_model = is_model or first_text(of_span, "haystack.component.output").startswith('{"replies":')
    is_model = is_model or next(iter(_output(of_span)), "") == "replies"
    if is_model or component.endswith("Generator"):
        return "llm"
    return "retriever" if component.endswith("Retriever") else "other"


def _agent_of(span: Span) -> str:
    """Returns the name of the component that is an agent: an agent of Haystack has no name of its own."""
    if span.attributes.get(_COMPONENT) != "Agent":
        return ""
    return text_of(span.attributes.get("haystack.component.name"))


def _output(of_span: Attributes) -> dict[str, Any]:
    value = next((structure(of_span[key]) for key in _OUTPUTS if key in of_span), None)
    return value if isinstance(value, dict) else {}


def _question_of_pipeline(value: Any) -> str:
    asked = (question_in(inputs) for inputs in _component_values(value))
    return next((text for text in asked if text), "") or _only_text(value)


def _answer_of_pipeline(value: Any) -> str:
    component_answers = (answer_in(outputs) for outputs in _component_values(value))
    return next((text for text in component_answers if text), "")


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if seen.agent or not any(node.span.name == _AGENT for node in seen.nodes):
        return {}
    return {
        "agent": "the name of the agent is not in the spans: an agent of Haystack has no name; run it in a pipeline, where it "
        "has the name of its component"
    }


def _has_failed(span: Span, _: object) -> bool:
    return span.attributes.get("haystack.tool.error") is True


HAYSTACK = Convention(
    name="Haystack",
    kind_of_name=_kind_of_name,
    switches=(Switch("HAYSTACK_CONTENT_TRACING_ENABLED=true", keys=(_SPAN,), scopes=("haystack*",)),),
    frameworks=(("haystack", "haystack"),),
    agent_of={"agent": _agent_of},
    answer_metadata=_metadata_of,
    contents=("haystack.agent.output",),
    documents=("haystack.component.output",),
    inputs=attributes(requested, Rank.FRAME, *_INPUTS),
    outputs=tuple(Source(key, _read_replies, Rank.FRAME) for key in _OUTPUTS),
    questions=(
        *attributes(question_in, Rank.FRAME, "haystack.agent.input", "haystack.component.input"),
        *attributes(_question_of_pipeline, Rank.REST, "haystack.pipeline.input_data"),
    ),
    answers=(
        *attributes(answer_in, Rank.FRAME, "haystack.agent.output", "haystack.component.output"),
        *attributes(_answer_of_pipeline, Rank.REST, "haystack.pipeline.output_data"),
    ),
    quirks=_quirks,
    content_spans=(_SPAN,),
    tool_names=("haystack.tool.name",),
    arguments=(Source("haystack.agent.step.tool.input", as_it_is, Rank.REST),),
    results=attributes(structure, Rank.REST, "haystack.agent.step.tool.output"),
    has_failed=_has_failed,
)

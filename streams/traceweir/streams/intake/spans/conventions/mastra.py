"""Mastra: the standard, and the runs of agents and workflows in attributes of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.spans.attributes import plain, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, attributes
from traceweir.streams.intake.spans.message import SpanMessage, is_hidden
from traceweir.streams.intake.spans.messages import read_message
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_INPUT = "mastra.agent_run.input"
_MESSAGE_KEYS = {"role", "content", "parts", "messages"}


def _step(span: Span) -> SpanMessage | None:
    """Returns what a model wrote in a step; None for any other span.

    The span of the model call, which is inside, has the text alone, and a tool that the application runs has no span.
    """
    value = span.attributes.get("mastra.model_step.output")
    output = None if value is None else structure(value)
    if not isinstance(output, dict):
        return None
    message = {"role": "assistant", "content": output.get("text") or "", "tool_calls": output.get("toolCalls")}
    return read_message(message, "assistant")


def _question_of_json(asked: Any) -> str:
    """Returns a question that is an object of JSON and no message, as it is."""
    asked_fields = structure(asked) if isinstance(asked, str) else None
    return str(asked) if isinstance(asked_fields, dict) and not asked_fields.keys() & _MESSAGE_KEYS else ""


def _answer(value: Any) -> str:
    """Returns the text that an agent returned, also if it is JSON, or else its object as JSON."""
    run = structure(value)
    text = run.get("text") if isinstance(run, dict) else None
    if isinstance(text, str) and text and not is_hidden(text):
        return text
    made = run.get("object") if isinstance(run, dict) else None
    return text_of(made) if isinstance(made, (dict, list)) else ""


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    last = max(seen.models, key=lambda each: each.end_ns, default=None)
    text = last.text if last is not None else ""
    if not text.startswith(("{", "[")):
        return {}
    is_of_mastra = any(key.startswith("mastra.") for node in seen.nodes for key in node.span.attributes)
    written = structure(text)
    if is_of_mastra and not isinstance(written, str) and write_json(plain(written)).decode() == text:
        return {"answer": "not all of the answer is as the model wrote it: Mastra writes JSON without its spaces"}
    return {}


MASTRA = Convention(
    name="Mastra",
    switches=(Switch("hideInput: false and hideOutput: false in Mastra's tracingOptions", keys=("mastra.",)),),
    sessions=("mastra.metadata.sessionId",),
    users=("mastra.metadata.userId", "mastra.metadata.resourceId"),
    contents=("mastra.agent_run.output",),
    step=_step,
    quirks=_quirks,
    questions=(
        *attributes(question_in, Rank.FRAME, _INPUT, "mastra.workflow_run.input"),
        *attributes(_question_of_json, Rank.REST, _INPUT),
    ),
    answers=(
        *attributes(_answer, Rank.VALUE, "mastra.agent_run.output"),
        *attributes(answer_in, Rank.FRAME, "mastra.workflow_run.output"),
    ),
)

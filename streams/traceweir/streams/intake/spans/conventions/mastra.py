"""Mastra: the standard, and the runs of agents and workflows in attributes of its own."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.message import Message
from traceweir.streams.intake.spans.messages import read_message
from traceweir.streams.intake.spans.span import Span


def _step(span: Span) -> Message | None:
    """Returns what a model wrote in a step; None for any other span.

    The span of the model call, which is inside, has the text alone, and a tool that the application runs has no span.
    """
    told = structure(span.attributes.get("mastra.model_step.output"))
    if not isinstance(told, dict):
        return None
    message = {"role": "assistant", "content": told.get("text") or "", "tool_calls": told.get("toolCalls")}
    return read_message(message, "assistant")


MASTRA = Convention(
    name="Mastra",
    switches=(Switch("hideInput: false and hideOutput: false in Mastra's tracingOptions", keys=("mastra.",)),),
    sessions=("mastra.metadata.sessionId",),
    users=("mastra.metadata.userId", "mastra.metadata.resourceId"),
    contents=("mastra.agent_run.output",),
    step=_step,
)

"""Google's SDK for its models, which can call tools by itself and tells so in its response."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.message import Message, newest_turn
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span import Span

_ROUNDS = "automatic_function_calling_history"


def _rounds(span: Span) -> list[Message]:
    """Returns the tool calls and results of the rounds with functions as tools, which OpenInference passes on."""
    value = span.attributes.get("output.value")
    if not isinstance(value, str) or _ROUNDS not in value:
        return []
    value = structure(value)
    return newest_turn(read_messages(value.get(_ROUNDS))) if isinstance(value, dict) else []


GOOGLE_GENAI = Convention(name="Google GenAI SDK", rounds=_rounds)

"""Google's SDK for its models, which can call tools by itself and tells so in its response."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.message import SpanMessage, newest_turn
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span import Span

_ROUNDS = "automatic_function_calling_history"


def _rounds(span: Span) -> list[SpanMessage]:
    """Returns the tool calls and results of the rounds with functions as tools, which OpenInference passes on."""
    value = span.attributes.get("output.value")
    if not isinstance(value, str) or _ROUNDS not in value:
        return []
    value = structure(value)
    return newest_turn(read_messages(value.get(_ROUNDS))) if isinstance(value, dict) else []


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if not any(model.rounds for model in seen.models):
        return {}
    return {
        "tokens": "the tokens of some model calls are not in the spans: Google's SDK called the tools by itself, and its "
        "instrumentation writes one span with the tokens of the last call; update google-genai, or turn automatic function "
        "calling off"
    }


GOOGLE_GENAI = Convention(name="Google GenAI SDK", rounds=_rounds, quirks=_quirks)

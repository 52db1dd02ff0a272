"""Google's SDK for its models, which can call tools by itself and tells so in its response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, has_word, structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, attributes
from traceweir.streams.intake.spans.message import SpanMessage, newest_turn
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span import Span

_PARAMETERS = "code.function.parameters."
_VALUE = ".value"
_ROUNDS = "automatic_function_calling_history"
_PROVIDERS = (
    "google",
    "gemini",
    "gcp.gemini",
    "gcp.gen_ai",
    "gcp.vertex_ai",
    "vertex_ai",
    "vertexai",
    "google_genai",
)
"""The names of Google as a provider of models."""


def _rounds(span: Span) -> list[SpanMessage]:
    """Returns the tool calls and results of the rounds with functions as tools, which OpenInference passes on."""
    value = span.attributes.get("output.value")
    if not has_word(value, _ROUNDS):
        return []
    value = structure(value)
    return newest_turn(read_messages(value.get(_ROUNDS))) if isinstance(value, dict) else []


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if not any(_rounds(node.span) for model in seen.models for node in model.nodes):
        return {}
    return {
        "tokens": "the tokens of some model calls are not in the spans: Google's SDK called the tools by itself, and its "
        "instrumentation writes one span with the tokens of the last call; update google-genai, or turn automatic function "
        "calling off"
    }


def _name_in_id(call_id: str) -> str:
    """Returns the name of the tool in an id that Google's instrumentation makes of the name and a number."""
    name, _, number = call_id.rpartition("_")
    return name if number.isdecimal() else ""


def _arguments(span: Span, _: object) -> Any:
    """Returns the arguments of a tool, which the first versions spread over attributes, each with its type beside it."""
    found = {
        key.removeprefix(_PARAMETERS).removesuffix(_VALUE): structure(value)
        for key, value in span.attributes.items()
        if key.startswith(_PARAMETERS) and key.endswith(_VALUE)
    }
    has_none = span.attributes.get("code.args.positional.count") == span.attributes.get("code.args.keyword.count") == 0
    return found if found or has_none else ABSENT


GOOGLE_GENAI = Convention(
    name="Google GenAI SDK",
    framing_providers=_PROVIDERS,
    stopping_providers=_PROVIDERS,
    rounds=_rounds,
    name_in_id=_name_in_id,
    arguments=(Source("code.function.name", _arguments, Rank.BODY),),
    results=attributes(structure, Rank.BODY, "code.function.return.value"),
    quirks=_quirks,
)

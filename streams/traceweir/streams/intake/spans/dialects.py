"""Reads the input and output messages of a model call, from the sources of all conventions."""

from __future__ import annotations

from collections.abc import Iterable

from traceweir.schemas.finish_reasons import known_word
from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of, sources_of
from traceweir.streams.intake.spans.conventions.source import SourceTable, spread_beginnings
from traceweir.streams.intake.spans.key_sets import keys_there
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage
from traceweir.streams.intake.spans.span import Span

_CALLING = {"tool_calls", "tool_call", "tool_use", "function_call"}
"""The reasons with which the answer of a model ends if it asks for tools."""
_FINISHES = keys_there(keys_of(lambda each: each.finishes))
_INPUT_SOURCES = sources_of(lambda each: each.inputs)
_OUTPUT_SOURCES = sources_of(lambda each: each.outputs)
_SPREAD = spread_beginnings((*_INPUT_SOURCES, *_OUTPUT_SOURCES))
_INPUTS = SourceTable(_INPUT_SOURCES, _SPREAD)
_OUTPUTS = SourceTable(_OUTPUT_SOURCES, _SPREAD)
_STEPS = hooks_of(lambda each: each.step)
_ASKED_CALLS = hooks_of(lambda each: each.asked_call)
_ROUNDS = hooks_of(lambda each: each.rounds)


def input_messages(span: Span) -> list[SpanMessage]:
    """Returns the messages that a model read, oldest first; empty if the span does not have them."""
    return with_content(_INPUTS.read_all(span))


def output_messages(span: Span) -> list[SpanMessage]:
    """Returns the messages that a model wrote; empty if the span does not have them."""
    found = with_content(_OUTPUTS.read_all(span))
    asks = found and not _CALLING.isdisjoint(map(known_word, (found[-1].finish, *finish_reasons(span))))
    if asks and not any(message.calls for message in found):
        # Some write the text and the calls of an answer under different keys, or spread the calls of some models only,
        # and have all in the value.
        for others in _OUTPUTS.read_all(span):
            if calls := [call for message in others for call in message.calls]:
                found[-1].calls += calls
                break
    return found


def finish_reasons(span: Span) -> list[str]:
    """Returns why the answers of a model ended, as the attributes of its span say it; some write the list as JSON."""
    found: list[str] = []
    for key in _FINISHES.of(span.key_set):
        value = structure(span.attributes[key])
        found += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
    return found


def finish_in_outputs(span: Span) -> str:
    """Returns why the answer of a model ended, as any source of what it wrote says it; empty if none does.

    Some write the messages without the reason, and the response of the API beside them.
    """
    return next((each.finish for found in _OUTPUTS.read_all(span) for each in found if each.finish), "")


def step_message(span: Span) -> SpanMessage | None:
    """Returns what a model wrote, from the span around that of its call; None for any other span."""
    return next((found for step in _STEPS if (found := step(span)) is not None), None)


def calls_below(spans: Iterable[Span]) -> list[RequestedCall]:
    """Returns the calls that a model asked for, as the spans below that of its call tell them."""
    return [call for span in spans for tell in _ASKED_CALLS if (call := tell(span)) is not None]


def played_rounds(span: Span) -> list[SpanMessage]:
    """Returns the tool calls and results of the rounds that a client played by itself in one call."""
    return next((found for rounds in _ROUNDS if (found := rounds(span))), [])


def with_content(candidates: Iterable[list[SpanMessage]]) -> list[SpanMessage]:
    """Returns the first messages of which one has content; else the first messages, which are without."""
    hidden: list[SpanMessage] = []
    for found in candidates:
        # As most are.
        if not found:
            continue
        for message in found:
            if message.has_content:
                return found
        hidden = hidden or found
    return hidden

"""OpenLIT: the standard, and spans of decorated functions, which have the name of the function alone."""

from __future__ import annotations

import re
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered
from traceweir.streams.intake.spans.attributes import ABSENT, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.source import Rank, Source, SourcePlace, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span import Span, SpanEvent
from traceweir.streams.intake.spans.span_events import event_field

_NAME = "openlit"
_ROLE = re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE)
"""What stands before each message in a prompt that is a text, as former versions write it."""


def _read_prompt(span: Span, value: Any) -> list[SpanMessage]:
    """Returns the messages of a prompt that is a text, with the role before each."""
    if not (isinstance(value, str) and span.scope.startswith(_NAME) and _ROLE.match(value)):
        return []
    _, *parts = _ROLE.split(value)
    texts = (text.removesuffix("\n") for text in parts[1::2])
    return read_messages([{"role": role, "content": text} for role, text in zip(parts[::2], texts, strict=True)])


def _result(span: Span, _: object) -> Any:
    """Returns what a decorated function returned, which is where other spans have the messages of a model."""
    return structure(span.attributes.get("gen_ai.output.messages", ABSENT))


def _of_event(span: Span, event: SpanEvent) -> list[SpanMessage]:
    return _read_prompt(span, event_field(event, "gen_ai.prompt"))


OPENLIT = Convention(
    name="OpenLIT",
    switches=(Switch("capture_message_content=True in openlit.init()", scopes=("openlit*",)),),
    clients=((_NAME, _NAME),),
    inputs=(
        Source("gen_ai.content.prompt", _of_event, Rank.EVENTS, SourcePlace.EVENT),
        Source("gen_ai.content.prompt", _read_prompt, Rank.REST),
    ),
    outputs=attributes(answered, Rank.REST, "gen_ai.content.completion"),
    arguments=(Source("function.kwargs", as_it_is, Rank.FRAME),),
    results=(Source("function.args", _result, Rank.FRAME),),
)

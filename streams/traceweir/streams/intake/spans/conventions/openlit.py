"""OpenLIT: the standard, and spans of decorated functions, which have the name of the function alone."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is
from traceweir.streams.intake.spans.span import Span

_NAME = "openlit"


def _result(span: Span, _: object) -> Any:
    """Returns what a decorated function returned, which is where other spans have the messages of a model."""
    return structure(span.attributes.get("gen_ai.output.messages", ABSENT))


OPENLIT = Convention(
    name="OpenLIT",
    switches=(Switch("capture_message_content=True in openlit.init()", scopes=("openlit*",)),),
    clients=((_NAME, _NAME),),
    arguments=(Source("function.kwargs", as_it_is, Rank.FRAME),),
    results=(Source("function.args", _result, Rank.FRAME),),
)

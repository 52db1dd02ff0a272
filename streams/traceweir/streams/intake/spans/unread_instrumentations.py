"""Names instrumentations of agents whose spans no convention reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from traceweir.schemas.text import printable
from traceweir.streams.intake.spans.kinds import kind_of
from traceweir.streams.intake.spans.span import Span

_MAX_NAMED = 3
_NAME_CHARS = 60


class _Instrumentation(NamedTuple):
    """An instrumentation whose spans are not read."""

    name: str
    begins: str
    """The beginning of its instrumentation scopes and of the keys of its attributes."""
    advice: str


_INSTRUMENTATIONS = (
    _Instrumentation(
        "LlamaIndex's own integration of OpenTelemetry",
        "llamaindex.",
        "use openinference-instrumentation-llama-index in its place",
    ),
    _Instrumentation(
        "n8n",
        "n8n.",
        "send those of the client of the model, or write what was asked, called and answered as a chat transcript",
    ),
)


def unread_instrumentations(spans: Iterable[Span]) -> Counter[str]:
    """Returns the names of the known instrumentations whose spans are not read, with the numbers of these spans."""
    found: Counter[str] = Counter()
    for span in spans:
        each = _of(span)
        if each is not None and kind_of(span) == "other":
            found[each.name] += 1
    return found


def way_out_of(spans: Iterable[Span]) -> str:
    """Returns whose spans were sent, if none is of an agent, a model or a tool, and what to do.

    Args:
        spans: The spans, at least one.
    """
    scopes: dict[str, None] = {}
    known: dict[_Instrumentation, None] = {}
    for span in spans:
        scopes[span.scope] = None
        if (each := _of(span)) is not None:
            known[each] = None
    if known:
        return "; ".join(f"spans of {each.name} are not read: {each.advice}" for each in known)
    names = [printable(scope, _NAME_CHARS) for scope in sorted(scopes) if scope]
    more = ", and others" if len(names) > _MAX_NAMED else ""
    of = f" (they are of {', '.join(map(repr, names[:_MAX_NAMED]))}{more})" if names else ""
    return f"instrument the agent or its framework{of}"


def _of(span: Span) -> _Instrumentation | None:
    for each in _INSTRUMENTATIONS:
        if span.scope.startswith(each.begins) or any(key.startswith(each.begins) for key in span.attributes):
            return each
    return None

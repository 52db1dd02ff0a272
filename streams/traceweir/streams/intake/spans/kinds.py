"""Decides what a span is: an agent, a workflow, a model call, a tool call or a retrieval."""

from __future__ import annotations

from traceweir.streams.base.judge_mark import JUDGE_MARK
from traceweir.streams.intake.spans.conventions import CONVENTIONS, hooks_of
from traceweir.streams.intake.spans.key_sets import KeyTable
from traceweir.streams.intake.spans.span import Kind, Span

_OWN = "traceweir"
_OF_OWN = f"{_OWN}."
_BY_ATTRIBUTES = tuple((key, each.kind) for each in CONVENTIONS if each.kind is not None for key in each.kind_keys)
"""What tells the kind of a span that has the attribute."""
_TELLING = KeyTable(lambda keys: tuple(dict.fromkeys(tell for key, tell in _BY_ATTRIBUTES if key in keys)))
_BY_NAME = hooks_of(lambda each: each.kind_of_name)


def kind_of(span: Span) -> Kind:
    """Returns the kind of a span; the first convention whose attributes the span has decides, else its name."""
    for tell in _TELLING.of(span.key_set):
        if (found := tell(span)) is not None:
            return found
    for tell in _BY_NAME:
        if (found := tell(span)) is not None:
            return found
    return "other"


def is_own(span: Span) -> bool:
    """Returns whether a span is Traceweir's own: telemetry of its worker, or a call of its judge.

    The instrumentation scope decides, and the mark in the trace state. The name of a service is the user's, who can
    call an agent `traceweir-agents`.
    """
    if span.scope == _OWN or span.scope.startswith(_OF_OWN):
        return True
    return bool(span.trace_state) and JUDGE_MARK in map(str.strip, span.trace_state.split(","))

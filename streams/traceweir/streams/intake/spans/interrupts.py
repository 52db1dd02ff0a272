"""Recognises a run that stops to wait for a person, and the run that goes on with the person's answer."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions import hooks_of
from traceweir.streams.intake.spans.span import Span

_WAIT = hooks_of(lambda each: each.waits)
_RESUMPTIONS = hooks_of(lambda each: each.resumption)
_REPEAT = hooks_of(lambda each: each.repeats_question)


def waits_for_person(span: Span) -> bool:
    """Returns whether a step stopped to wait for a person: it has not failed, and has no result yet."""
    # As most spans: no convention writes it otherwise.
    if span.status != "ERROR" and not span.events:
        return False
    return any(waits(span) for waits in _WAIT)


def has_error(span: Span) -> bool:
    """Returns whether a span has the status of a failure, and does not only wait for a person."""
    return span.status == "ERROR" and not waits_for_person(span)


def resumption_on(span: Span) -> str | None:
    """Returns what a person answered, from the span of the run that goes on with it.

    The text is empty if the answer is no text, such as an approval. Of any other run it is None.
    """
    return next((found for tell in _RESUMPTIONS if (found := tell(span)) is not None), None)


def repeats_question(span: Span) -> bool:
    """Returns whether a run can go on with the question of a former one, which it repeats, and with the results of its calls.

    Whether there is a former one, only the ids of the calls tell, which are in the events of both.
    """
    return any(tell(span) for tell in _REPEAT)

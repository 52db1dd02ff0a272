"""Reads the error of a turn that failed, or whose last model call did."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.streams.intake.spans.attributes import first_text, plain_text
from traceweir.streams.intake.spans.interrupts import waits_for_person
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.span_events import named_events
from traceweir.streams.intake.spans.tool_spans import error_of, exception_type, says_failure
from traceweir.streams.intake.spans.turns import TurnSpans

MAX_CHARS = 2_000
"""The longest error message that an event has."""
_STATUS_CODES = ("http.response.status_code", "http.status_code")
_UNKNOWN_TYPES = ("", "_OTHER")


def error_of_turn(turn: TurnSpans, models: Sequence[ModelCall], answer: str) -> str:
    """Returns the error message of a turn; empty if it did not fail.

    A turn failed if its spans say so, or if it has no answer and its last model call, or its outermost span, has an
    error. The innermost span that tells an error is the nearest to its cause: a framework around it may tell only that
    a step failed. Of tools that failed, the model has read the error, and it is that of their call.
    """
    if answer and not turn.failed:
        return ""
    last = max(models, key=lambda each: each.end_ns, default=None)
    spans = [node.span for node in last.nodes] if last is not None else []
    if not (turn.bare and models):
        spans += [root.span for root in turn.roots]
    messages = [text for span in spans if has_failed(span) and (text := _text(span))]
    if not messages:
        return "the invocation failed; its spans tell no message" if turn.failed else ""
    text = plain_text(messages[0])
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"


def has_failed(span: Span) -> bool:
    """Returns whether a span tells of a failure: by its status or an attribute in its place, an event `exception` or `error.type`."""
    is_failure = span.status == "ERROR" or "error.type" in span.attributes or says_failure(span)
    is_failure = is_failure or bool(named_events(span, "exception"))
    return is_failure and not waits_for_person(span)


def _text(span: Span) -> str:
    message = error_of(span, None, failed=True) or ""
    kind = exception_type(span)
    code = next((str(found) for key in _STATUS_CODES if (found := span.attributes.get(key)) is not None), "")
    if kind.isdecimal():
        code = kind
        kind = ""
    if kind in _UNKNOWN_TYPES or kind in message:
        kind = ""
    known = [f"HTTP {code}"] if code and code not in message else []
    return ": ".join(part for part in (*known, kind, message or first_text(span.attributes, "error.message")) if part)

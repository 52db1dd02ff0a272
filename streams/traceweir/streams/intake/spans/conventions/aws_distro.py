"""AWS's distribution of OpenTelemetry, which takes content out of spans and writes it as a log record of each span."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source, SourcePlace
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span import Span

_SCOPES = ("strands.telemetry", "openinference.instrumentation", "opentelemetry.instrumentation")
"""Beginnings of the names of the instrumentations, after which the log records are named."""
_CONTENT = ("content", "message")
"""The keys of an event of a message, which can stand as a whole in place of its content."""


def _messages_in(span: Span, side: str) -> list[dict[str, Any]]:
    """Returns the messages of one side, `input` or `output`, in the log record of a span."""
    for event in span.events:
        body = structure(event.body)
        part = body.get(side) if isinstance(body, dict) else None
        messages = structure(part.get("messages")) if isinstance(part, dict) else None
        if isinstance(messages, list):
            return [_unframed(each) for each in messages if isinstance(each, dict)]
    return []


def _unframed(message: dict[str, Any]) -> dict[str, Any]:
    inner = structure(message.get("content"))
    if not isinstance(inner, dict) or not any(key in inner for key in _CONTENT):
        return message
    content = next(inner[key] for key in _CONTENT if key in inner)
    blocks = structure(content)
    return {**inner, **message, "content": blocks if isinstance(blocks, list) else content}


def _inputs(span: Span, _: object) -> list[SpanMessage]:
    return read_messages(_messages_in(span, "input"))


def _outputs(span: Span, _: object) -> list[SpanMessage]:
    return read_messages(_messages_in(span, "output"), "assistant")


def _question(span: Span, _: object) -> str:
    return next((each.text for each in reversed(_inputs(span, None)) if each.role == "user"), "")


def _answer(span: Span, _: object) -> str:
    written = _outputs(span, None)
    return written[-1].text if written and not written[-1].calls else ""


def _arguments(span: Span, _: object) -> Any:
    return next((each.get("content", ABSENT) for each in _messages_in(span, "input")), ABSENT)


def _result(span: Span, _: object) -> Any:
    return next((structure(each.get("content", ABSENT)) for each in _messages_in(span, "output")), ABSENT)


def _of_record(read: Any) -> tuple[Source, ...]:
    return (Source("", read, Rank.EVENTS, SourcePlace.SPAN),)


AWS_DISTRO = Convention(
    name="AWS Distro",
    log_events=_SCOPES,
    inputs=_of_record(_inputs),
    outputs=_of_record(_outputs),
    questions=_of_record(_question),
    answers=_of_record(_answer),
    arguments=_of_record(_arguments),
    results=_of_record(_result),
)

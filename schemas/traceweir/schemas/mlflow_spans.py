"""The spans of an MLflow trace, from the JSON that MLflow 2 and MLflow 3 write."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject

TYPE, INPUTS, OUTPUTS, MESSAGES = (
    "mlflow.spanType",
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
    "mlflow.chat.messages",
)
_READ = (TYPE, INPUTS, OUTPUTS, MESSAGES)
"""The attributes that are looked into; MLflow writes each as a JSON text of its own."""

MAX_DEPTH = 100
"""How deep what is read out of a trace may be nested: it becomes part of documents that pydantic reads to 200 levels."""
_TEXTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKETS = re.compile(r"[\[\]{}]")

MOST = 2**63 - 1
"""The largest number that is read: JSON has larger ones, which neither a float nor other readers can hold."""

SHAPE = "an MLflow trace is an object with `info` and with `data.spans`"


class TraceUnreadable(ValueError):  # noqa: N818  # an outcome that the caller handles
    """The document is no MLflow trace; the message says why."""


@dataclass(frozen=True, slots=True)
class Span:
    """One step of the trace."""

    span_id: str
    parent_id: str | None
    name: str
    start_ns: int | None
    """Nanoseconds since 1970; None, if the span does not say."""
    attributes: Mapping[str, JsonValue]
    """Of the attributes that are looked into those that could be read, decoded."""
    unreadable: tuple[str, ...] = ()
    """The names of the others."""

    @property
    def kind(self) -> JsonValue:
        """Such as RETRIEVER, TOOL, LLM or CHAT_MODEL."""
        return self.attributes.get(TYPE)


@dataclass(frozen=True, slots=True)
class SpanTree:
    """A trace as it was read: its spans as they stand in the file, and what its head says."""

    info: JsonObject
    spans: tuple[Span, ...]

    def outermost(self, kind: str) -> list[Span]:
        """The spans of a kind around which there is none of it; not one of which a span around it is missing."""
        by_id = {span.span_id: span for span in self.spans}
        free: dict[str, bool] = {}  # of a span: neither it nor one around it is of this kind
        for span in self.spans:
            way: dict[str, Span] = {}
            inner: Span | None = span
            while inner is not None and inner.span_id not in free and inner.span_id not in way:
                way[inner.span_id] = inner
                inner = by_id.get(inner.parent_id) if inner.parent_id else None
            outer = next(reversed(way.values()), None)
            if outer is None:
                continue
            # It ended at a root, at a span that is known, at one that is missing, or in a circle.
            so_far = not outer.parent_id or free.get(outer.parent_id, False)
            for each in reversed(way.values()):
                so_far = so_far and each.kind != kind
                free[each.span_id] = so_far
        return [
            span for span in self.spans if span.kind == kind and (not span.parent_id or free.get(span.parent_id, False))
        ]

    def leaves(self) -> list[Span]:
        """The spans that no other span names as its parent."""
        parents = {span.parent_id for span in self.spans}
        return [span for span in self.spans if span.span_id not in parents]


def read_spans(document: JsonValue) -> SpanTree:
    """The spans of a trace, given as its JSON text or as what JSON made of it.

    An attribute that is not JSON costs itself and no other.

    Raises:
        TraceUnreadable: it is no trace, or one that was cut off.
    """
    trace = _loaded(document) if isinstance(document, str) else document
    if not isinstance(trace, dict):
        raise TraceUnreadable(SHAPE)
    info, data = trace.get("info"), trace.get("data")
    spans = data.get("spans") if isinstance(data, dict) else None
    if not isinstance(info, dict) or not isinstance(spans, list):
        missing = "info" if not isinstance(info, dict) else "data.spans"
        raise TraceUnreadable(f"{SHAPE}; {missing} is missing")
    return SpanTree(info, tuple(_span(number, span) for number, span in enumerate(spans)))


def decoded(text: str) -> JsonValue:
    """What JSON makes of a text; NaN and the infinities, which Python writes and JSON does not have, read as null.

    Raises:
        ValueError: it is not JSON, or nothing that could be sent on.
    """
    try:
        found: JsonValue = orjson.loads(text)
    except ValueError:
        found = _pythons_json(text)
    if _depth(text) > MAX_DEPTH:
        raise ValueError("it is nested too deep")
    return found


def _pythons_json(text: str) -> JsonValue:
    try:
        found: JsonValue = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
        json.dumps(found, ensure_ascii=False).encode()  # UTF-8 cannot say half of a pair of surrogates
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return found


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _depth(text: str) -> int:
    """How deep the text is nested; 0, if that is not worth finding out."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return 0
    deepest = depth = 0
    for bracket in _BRACKETS.findall(_TEXTS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _loaded(text: str) -> JsonValue:
    try:
        return decoded(text)
    except json.JSONDecodeError as error:
        length = len(text.rstrip())
        if error.pos >= length or "Unterminated" in error.msg:
            raise TraceUnreadable(f"it is cut off: its JSON ends unfinished after {length} characters") from None
        raise TraceUnreadable(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError as error:
        raise TraceUnreadable(f"it cannot be read: {error}") from None


def _span(number: int, span: JsonValue) -> Span:
    place = f"data.spans[{number}]"
    if not isinstance(span, dict):
        raise TraceUnreadable(f"{place} is no object")
    context = span.get("context")
    span_id = context.get("span_id") if isinstance(context, dict) else span.get("span_id")  # MLflow 2, and 3
    if not isinstance(span_id, str) or not span_id:
        raise TraceUnreadable(f"{place} has no span_id")
    parent = span.get("parent_id") or span.get("parent_span_id")
    written = span.get("attributes")
    if not isinstance(written, dict):
        raise TraceUnreadable(f"{place} has no attributes")
    attributes, unreadable = {}, []
    for name in _READ:
        value = written.get(name)
        if value is None:
            continue
        try:
            attributes[name] = decoded(value) if isinstance(value, str) else value
        except ValueError:
            unreadable.append(name)
    title = span.get("name")
    return Span(
        span_id=span_id,
        parent_id=parent if isinstance(parent, str) and parent else None,
        name=title if isinstance(title, str) else "",
        start_ns=_nanoseconds(span.get("start_time", span.get("start_time_unix_nano"))),
        attributes=attributes,
        unreadable=tuple(unreadable),
    )


def number(value: JsonValue) -> int | float | None:
    """The value, if it is a number of at most 64 bits: a longer one, an infinity and NaN are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MOST <= value <= MOST else None


def _nanoseconds(value: JsonValue) -> int | None:
    """MLflow 3 writes nanoseconds as a number, OpenTelemetry's JSON as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    found = number(value)
    return None if found is None else int(found)

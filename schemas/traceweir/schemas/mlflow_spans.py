"""Reads the spans of an MLflow trace, from the JSON of MLflow 2 and MLflow 3."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject

TYPE = "mlflow.spanType"
INPUTS = "mlflow.spanInputs"
OUTPUTS = "mlflow.spanOutputs"
MESSAGES = "mlflow.chat.messages"
TOKEN_USAGE = "mlflow.chat.tokenUsage"  # noqa: S105  # tokens of a model
_READ = (TYPE, INPUTS, OUTPUTS, MESSAGES, TOKEN_USAGE)
"""The attributes that are read; MLflow writes each value as JSON text."""

MAX_DEPTH = 100
"""Maximum nesting depth of values in a trace: they become part of documents that pydantic reads to 200 levels."""
_TEXTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKETS = re.compile(r"[\[\]{}]")

_MAX_ERROR_CHARS = 2_000

MAX_NUMBER = 2**63 - 1
"""The largest number that is read. JSON allows larger numbers, which a float and other readers cannot represent."""

NUMBER_RANGE = "from 0 to 2^63 - 1"
"""The range of counts and durations, for messages."""

SHAPE = "an MLflow trace is an object with `info` and with `data.spans`"


class TraceUnreadable(ValueError):  # noqa: N818  # an outcome that the caller handles
    """Raised if the document is not an MLflow trace; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class MlflowSpan:
    """One step of the trace."""

    span_id: str
    parent_id: str | None
    name: str
    start_ns: int | None
    """Nanoseconds since 1970; None if unknown."""
    attributes: Mapping[str, JsonValue]
    """The decoded values of the attributes in `_READ`."""
    unreadable: tuple[str, ...] = ()
    """The names of the attributes in `_READ` that are not JSON."""
    error: str | None = None
    """The error message of a step that failed, which can be empty; None if nothing says that it failed."""

    @property
    def kind(self) -> JsonValue:
        """The span's type, such as RETRIEVER, TOOL, LLM or CHAT_MODEL."""
        return self.attributes.get(TYPE)


@dataclass(frozen=True, slots=True)
class SpanTree:
    """Holds a trace: its spans in the order of the file, and its `info`."""

    info: JsonObject
    spans: tuple[MlflowSpan, ...]

    @property
    def metadata(self) -> JsonObject:
        """The metadata of the trace: `trace_metadata` of MLflow 3, or `request_metadata` of MLflow 2."""
        return metadata_of(self.info)

    @property
    def root(self) -> MlflowSpan | None:
        """The first span without a parent; None if there is none."""
        return next((span for span in self.spans if span.parent_id is None), None)

    def topmost_with(self, attribute: str) -> list[MlflowSpan]:
        """Returns the spans that have an attribute, without those below another span that has the attribute.

        A span whose parent is missing counts as a root; spans in a cycle are left out.
        """
        present = {span.span_id for span in self.spans}
        children: dict[str, list[MlflowSpan]] = {}
        open_spans: list[MlflowSpan] = []
        for span in self.spans:
            if span.parent_id in present:
                children.setdefault(span.parent_id or "", []).append(span)
            else:
                open_spans.append(span)
        found = []
        while open_spans:
            span = open_spans.pop()
            if span.attributes.get(attribute) is not None:
                found.append(span)
            else:
                # `pop`: two spans with the same id would otherwise yield their children twice.
                open_spans += children.pop(span.span_id, ())
        return found

    def outermost(self, kind: str) -> list[MlflowSpan]:
        """Returns the spans of a kind without an ancestor of the same kind, except spans with a missing ancestor."""
        by_id = {span.span_id: span for span in self.spans}
        # By span id: whether neither the span nor any of its ancestors is of this kind.
        free: dict[str, bool] = {}
        for span in self.spans:
            path: dict[str, MlflowSpan] = {}
            inner: MlflowSpan | None = span
            while inner is not None and inner.span_id not in free and inner.span_id not in path:
                path[inner.span_id] = inner
                inner = by_id.get(inner.parent_id) if inner.parent_id else None
            outer = next(reversed(path.values()), None)
            if outer is None:
                continue
            # The path ended at a root, at a visited span, at a missing span, or in a cycle.
            is_free = not outer.parent_id or free.get(outer.parent_id, False)
            for each in reversed(path.values()):
                is_free = is_free and each.kind != kind
                free[each.span_id] = is_free
        return [
            span for span in self.spans if span.kind == kind and (not span.parent_id or free.get(span.parent_id, False))
        ]

    def leaves(self) -> list[MlflowSpan]:
        """Returns the spans without children."""
        parents = {span.parent_id for span in self.spans}
        return [span for span in self.spans if span.span_id not in parents]


def read_spans(document: JsonValue) -> SpanTree:
    """Returns the spans of a trace, from its JSON text or its parsed JSON.

    An attribute that is not JSON does not affect the other attributes.

    Raises:
        TraceUnreadable: the document is not a trace, or is truncated.
    """
    trace = _loaded(document) if isinstance(document, str) else document
    if not isinstance(trace, dict):
        raise TraceUnreadable(SHAPE)
    info = trace.get("info")
    data = trace.get("data")
    spans = data.get("spans") if isinstance(data, dict) else None
    if not isinstance(info, dict) or not isinstance(spans, list):
        missing = "info" if not isinstance(info, dict) else "data.spans"
        raise TraceUnreadable(f"{SHAPE}; {missing} is missing")
    return SpanTree(info, tuple(_span(number, span) for number, span in enumerate(spans)))


def metadata_of(info: JsonObject) -> JsonObject:
    """Returns the metadata in the `info` of a trace of MLflow 3 or 2; empty if there is none."""
    found = info.get("trace_metadata", info.get("request_metadata"))
    return found if isinstance(found, dict) else {}


def decoded(text: str) -> JsonValue:
    """Returns the value of a JSON text; NaN and infinities, which Python writes although JSON has none, become null.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or contains a lone surrogate.
    """
    try:
        found: JsonValue = orjson.loads(text)
    except ValueError:
        found = _lenient_json(text)
    if _depth(text) > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    return found


def _lenient_json(text: str) -> JsonValue:
    try:
        found: JsonValue = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
        # UTF-8 cannot encode a lone surrogate.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _depth(text: str) -> int:
    """Returns the nesting depth of the text; 0 if the number of brackets excludes a depth above `MAX_DEPTH`."""
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
            raise TraceUnreadable(f"it is truncated: its JSON is incomplete after {length} characters") from None
        raise TraceUnreadable(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError as error:
        raise TraceUnreadable(f"it cannot be read: {error}") from None


def _span(number: int, span: JsonValue) -> MlflowSpan:
    place = f"data.spans[{number}]"
    if not isinstance(span, dict):
        raise TraceUnreadable(f"{place} is not an object")
    context = span.get("context")
    # MLflow 2, and 3.
    span_id = context.get("span_id") if isinstance(context, dict) else span.get("span_id")
    if not isinstance(span_id, str) or not span_id:
        raise TraceUnreadable(f"{place} has no span_id")
    parent = span.get("parent_id") or span.get("parent_span_id")
    written = span.get("attributes")
    if not isinstance(written, dict):
        raise TraceUnreadable(f"{place} has no attributes")
    attributes = {}
    unreadable = []
    for name in _READ:
        value = written.get(name)
        if value is None:
            continue
        try:
            attributes[name] = decoded(value) if isinstance(value, str) else value
        except ValueError:
            unreadable.append(name)
    title = span.get("name")
    return MlflowSpan(
        span_id=span_id,
        parent_id=parent if isinstance(parent, str) and parent else None,
        name=title if isinstance(title, str) else "",
        start_ns=_nanoseconds(span.get("start_time", span.get("start_time_unix_nano"))),
        attributes=attributes,
        unreadable=tuple(unreadable),
        error=_error(span),
    )


def _error(span: JsonObject) -> str | None:
    """Returns the error of a span with the status of a failure: its exception, or else the description of its status."""
    status = span.get("status")
    # MLflow 2 has the code beside the message.
    code = status.get("code") if isinstance(status, dict) else span.get("status_code", status)
    if not isinstance(code, str) or code.rpartition("_")[2].upper() != "ERROR":
        return None
    listed = span.get("events")
    for event in reversed(listed if isinstance(listed, list) else []):
        attributes = event.get("attributes") if isinstance(event, dict) and event.get("name") == "exception" else None
        message = attributes.get("exception.message") if isinstance(attributes, dict) else None
        kind = attributes.get("exception.type") if isinstance(attributes, dict) else None
        if isinstance(message, str) and message:
            return (
                f"{kind}: {message}"[:_MAX_ERROR_CHARS]
                if isinstance(kind, str) and kind
                else message[:_MAX_ERROR_CHARS]
            )
    described = status.get("message") if isinstance(status, dict) else span.get("status_message")
    return described[:_MAX_ERROR_CHARS] if isinstance(described, str) else ""


def number(value: JsonValue) -> int | float | None:
    """Returns a number from -(2^63 - 1) to 2^63 - 1 unchanged; None for infinities, NaN and all other values."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MAX_NUMBER <= value <= MAX_NUMBER else None


def _nanoseconds(value: JsonValue) -> int | None:
    """Returns nanoseconds from a number, as in MLflow 3, or from text, as in OpenTelemetry's JSON."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    found = number(value)
    return None if found is None else int(found)

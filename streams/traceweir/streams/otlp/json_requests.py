"""Decodes OTLP requests in JSON, as the OpenTelemetry Collector and the SDKs write them.

The names are in camelCase; names in snake_case, which some exporters write, are read too. Ids are hexadecimal, integers
of 64 bits are texts or numbers, enumerations are numbers or names, and a key is absent if its value is the default.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from traceweir.schemas.text import printable
from traceweir.streams.otlp.decoded import (
    MAX_DEPTH,
    STATUSES,
    Decoded,
    NotOtlpError,
    SpanLog,
    Unusable,
    optional_id,
    required_id,
    time_of,
)
from traceweir.streams.spans.span import Span, SpanEvent, Status, Value

T = TypeVar("T")
_SNAKE_CASE: dict[str, str] = {}
_STATUS_PREFIX = "STATUS_CODE_"


def decode_json(request: object) -> Decoded:
    """Returns the spans and log records of a parsed request.

    Raises:
        NotOtlpError: The document is no request.
    """
    if not isinstance(request, dict) or not (
        {"resourceSpans", "resource_spans", "resourceLogs", "resource_logs"} & request.keys()
    ):
        raise NotOtlpError("the JSON document has neither resourceSpans nor resourceLogs, so it is no OTLP request")
    found = Decoded()
    _collect(request, ("resourceSpans", "scopeSpans", "spans"), "span", found, found.spans, _span)
    _collect(request, ("resourceLogs", "scopeLogs", "logRecords"), "log record", found, found.logs, _log)
    return found


def _collect(
    request: dict[str, Any],
    path: tuple[str, str, str],
    what: str,
    found: Decoded,
    results: list[T],
    read: Callable[[dict[str, Any], dict[str, Value], str], T | None],
) -> None:
    by_resource, by_scope, name = path
    number = 0
    for group in _dicts(request, by_resource):
        try:
            resource = _attributes(_dict(group, "resource"))
        except Unusable as why:
            found.problems.append(f"a resource: {why}")
            continue
        for scoped in _dicts(group, by_scope):
            scope = _text(_dict(scoped, "scope"), "name")
            for each in _dicts(scoped, name):
                number += 1
                try:
                    result = read(each, resource, scope)
                except Unusable as why:
                    found.problems.append(f"{what} {number} ({printable(str(each.get('name', '')), 100)}): {why}")
                    continue
                if result is None:
                    found.unrelated_logs += 1
                else:
                    results.append(result)


def _span(span: dict[str, Any], resource: dict[str, Value], scope: str) -> Span:
    status = _dict(span, "status")
    return Span(
        required_id("the trace id", _text(span, "traceId"), 32),
        required_id("the span id", _text(span, "spanId"), 16),
        optional_id("the parent's span id", _text(span, "parentSpanId"), 16),
        _text(span, "name"),
        time_of("the start", _integer(span, "startTimeUnixNano")),
        time_of("the end", _integer(span, "endTimeUnixNano")),
        _attributes(span),
        [
            SpanEvent(
                _text(event, "name"),
                time_of("the time of an event", _integer(event, "timeUnixNano")),
                _attributes(event),
            )
            for event in _dicts(span, "events")
        ],
        _status(_get(status, "code")),
        _text(status, "message"),
        resource,
        scope,
        _integer(span, "flags") & 0xFF,
        _text(span, "traceState"),
        _integer(span, "droppedAttributesCount"),
    )


def _log(record: dict[str, Any], resource: dict[str, Value], scope: str) -> SpanLog | None:
    trace_id, span_id = _text(record, "traceId"), _text(record, "spanId")
    if not (trace_id and span_id):
        return None
    attributes = _attributes(record)
    return SpanLog(
        required_id("the trace id", trace_id, 32),
        required_id("the span id", span_id, 16),
        SpanEvent(
            _text(record, "eventName") or str(attributes.get("event.name") or ""),
            time_of("the time", _integer(record, "timeUnixNano") or _integer(record, "observedTimeUnixNano")),
            attributes,
            _value(_get(record, "body"), 0),
        ),
    )


def _get(document: dict[str, Any], name: str) -> Any:
    found = document.get(name)
    if found is None:
        snake = _SNAKE_CASE.get(name)
        if snake is None:
            snake = _SNAKE_CASE[name] = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        found = document.get(snake)
    return found


def _dict(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = _get(document, name)
    return found if isinstance(found, dict) else {}


def _dicts(document: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    found = _get(document, name)
    if isinstance(found, list):
        yield from (each for each in found if isinstance(each, dict))


def _text(document: dict[str, Any], name: str) -> str:
    found = _get(document, name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Unusable(f"{name} is not a text")
    return found


def _integer(document: dict[str, Any], name: str) -> int:
    found = _get(document, name)
    if found is None:
        return 0
    return _as_integer(found, name)


def _as_integer(found: object, name: str) -> int:
    if isinstance(found, str) and len(found) <= 20:
        try:
            return int(found)
        except ValueError:
            pass
    elif isinstance(found, int) and not isinstance(found, bool):
        return found
    elif isinstance(found, float) and found.is_integer():
        return int(found)
    raise Unusable(f"{name} is not an integer of 64 bits")


def _status(code: object) -> Status:
    if isinstance(code, str):
        name = code.removeprefix(_STATUS_PREFIX)
        return next((status for status in STATUSES if status == name), "UNSET")
    if isinstance(code, int) and 0 <= code < len(STATUSES):
        return STATUSES[code]
    return "UNSET"


def _attributes(document: dict[str, Any]) -> dict[str, Value]:
    return {
        key: _value(_get(pair, "value"), 0)
        for pair in _dicts(document, "attributes")
        if isinstance(key := pair.get("key"), str)
    }


def _value(value: object, depth: int) -> Value:
    if not isinstance(value, dict):
        return None
    if isinstance(found := _get(value, "stringValue"), str):
        return found
    if isinstance(found := _get(value, "boolValue"), bool):
        return found
    if (found := _get(value, "intValue")) is not None:
        return _as_integer(found, "intValue")
    if (found := _get(value, "doubleValue")) is not None:
        return _double(found)
    if isinstance(found := _get(value, "bytesValue"), str):
        return _bytes(found)
    if depth >= MAX_DEPTH:
        raise Unusable(f"an attribute has more than {MAX_DEPTH} levels of lists and maps")
    if isinstance(found := _get(value, "arrayValue"), dict):
        values = found.get("values")
        return [_value(each, depth + 1) for each in values] if isinstance(values, list) else []
    if isinstance(found := _get(value, "kvlistValue"), dict):
        return {
            key: _value(_get(pair, "value"), depth + 1)
            for pair in _dicts(found, "values")
            if isinstance(key := pair.get("key"), str)
        }
    return None


def _double(found: object) -> float:
    try:
        return float(found)  # type: ignore[arg-type]  # anything else raises
    except (TypeError, ValueError, OverflowError):
        raise Unusable("doubleValue is not a number") from None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unusable("bytesValue is not base64") from None

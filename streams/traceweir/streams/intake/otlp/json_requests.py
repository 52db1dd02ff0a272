"""Converts OTLP in JSON, as the Collector's otlp_json encoding writes it, to the frame of the same protobuf request.

Ids are hexadecimal, bytes are base64, integers of 64 bits are texts or numbers, enumerations are integers or names,
and names of fields are lowerCamelCase or snake_case. Fields that OTLP does not define are ignored.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import orjson
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.soundness import log_problem, span_problem
from traceweir.streams.intake.otlp.views import RequestView

Signal = Literal["spans", "logs"]

MAX_DEPTH = 40
"""Lists and maps inside each other in an attribute; protobuf's own limit of 100 messages allows little more."""
FIELDS = {
    "spans": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
"""The fields of a request's resources, of their scopes, and of the spans or log records of these."""
DIGITS = re.compile(r"-?[0-9]{1,20}")
"""A whole number as text."""
BOM = b"\xef\xbb\xbf"
"""The mark with which some editors and shells begin a text in UTF-8; it is no part of JSON."""
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How JSON of protobuf writes these values. Any other text, such as `1e999`, must be a finite number."""
_UINT64 = (0, 2**64 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_UINT32 = (0, 2**32 - 1)
_INT32 = (-(2**31), 2**31 - 1)


def request_from_json(request: bytes, signal: Signal) -> tuple[Any, list[str]]:
    """Returns the frame of the request (`views.RequestView`) and a message for each part that cannot be converted.

    Raises:
        OtlpError: the request is not JSON, or not a request of this signal.
    """
    try:
        document = orjson.loads(request.removeprefix(BOM))
    except ValueError as error:
        raise OtlpError(f"the request of {len(request)} bytes is not JSON ({error})") from None
    resources_name, scopes_name, items_name = FIELDS[signal]
    if not isinstance(document, dict):
        raise OtlpError(f"the request is JSON but not an object; it must be an object with {resources_name}")
    resources = get_field(document, resources_name)
    if resources is None:
        other = FIELDS["logs" if signal == "spans" else "spans"][0]
        if get_field(document, other) is not None:
            raise OtlpError(f"the request has {other}, but {resources_name} are expected here")
        if document:
            raise OtlpError(f"the request is a JSON object without {resources_name}, so it is not OTLP")
    view = RequestView()
    problems: list[str] = []
    convert: Callable[[Mapping[str, Any]], Span | LogRecord] = _span if signal == "spans" else _log
    for r, resource in enumerate(_list(resources, resources_name)):
        place = f"{resources_name}[{r}]"
        try:
            resource = _object(resource, "the entry")
            scopes = _list(get_field(resource, scopes_name), scopes_name)
            encoded = Resource(
                attributes=_attributes(get_field(_object(get_field(resource, "resource"), "resource"), "attributes"))
            )
        except OtlpError as error:
            problems.append(f"{place}: {error}; its {items_name} are lost")
            continue
        resource_view = view.resources.add(resource=[encoded.SerializeToString()])
        for s, scope in enumerate(scopes):
            scope_place = f"{place}.{scopes_name}[{s}]"
            try:
                scope = _object(scope, "the entry")
                items = _list(get_field(scope, items_name), items_name)
                scope_bytes = _scope(_object(get_field(scope, "scope"), "scope")).SerializeToString()
            except OtlpError as error:
                problems.append(f"{scope_place}: {error}; its {items_name} are lost")
                continue
            scope_view = resource_view.scopes.add(scope=[scope_bytes])
            for i, item in enumerate(items):
                try:
                    scope_view.items.append(convert(_object(item, "the entry")).SerializeToString())
                except OtlpError as error:
                    problems.append(f"{scope_place}.{items_name}[{i}]: {error}")
    return view, problems


def _span(found: Mapping[str, Any]) -> Span:
    status = _object(get_field(found, "status"), "status")
    span = Span(
        trace_id=_id(found, "traceId"),
        span_id=_id(found, "spanId"),
        parent_span_id=_id(found, "parentSpanId"),
        trace_state=_text(found, "traceState"),
        flags=_integer(found, "flags", _UINT32),
        name=_text(found, "name"),
        kind=_enum(found, "kind", Span.SpanKind),
        start_time_unix_nano=_integer(found, "startTimeUnixNano", _UINT64),
        end_time_unix_nano=_integer(found, "endTimeUnixNano", _UINT64),
        attributes=_attributes(get_field(found, "attributes")),
        dropped_attributes_count=_integer(found, "droppedAttributesCount", _UINT32),
        events=[_event(_object(each, "an event")) for each in _list(get_field(found, "events"), "events")],
        status=Status(message=_text(status, "message"), code=_enum(status, "code", Status.StatusCode)),
    )
    if (problem := span_problem(span)) is not None:
        raise OtlpError(problem)
    return span


def _event(found: Mapping[str, Any]) -> Span.Event:
    return Span.Event(
        time_unix_nano=_integer(found, "timeUnixNano", _UINT64),
        name=_text(found, "name"),
        attributes=_attributes(get_field(found, "attributes")),
    )


def _log(found: Mapping[str, Any]) -> LogRecord:
    body = get_field(found, "body")
    log = LogRecord(
        time_unix_nano=_integer(found, "timeUnixNano", _UINT64),
        observed_time_unix_nano=_integer(found, "observedTimeUnixNano", _UINT64),
        severity_number=_enum(found, "severityNumber", SeverityNumber),
        body=None if body is None else _value(body, 0),
        attributes=_attributes(get_field(found, "attributes")),
        trace_id=_id(found, "traceId"),
        span_id=_id(found, "spanId"),
        event_name=_text(found, "eventName"),
    )
    if (problem := log_problem(log)) is not None:
        raise OtlpError(problem)
    return log


def _scope(found: Mapping[str, Any]) -> InstrumentationScope:
    return InstrumentationScope(name=_text(found, "name"), version=_text(found, "version"))


def _attributes(found: object, depth: int = 0) -> list[KeyValue]:
    return [_attribute(each, depth) for each in _list(found, "attributes")]


def _attribute(found: object, depth: int) -> KeyValue:
    if not isinstance(found, dict):
        raise _wrong("an attribute", found, "an object")
    return KeyValue(key=_text(found, "key"), value=_value(found.get("value"), depth))


def encoded_value(found: Mapping[str, Any]) -> AnyValue:
    """Returns the value of an attribute.

    Raises:
        OtlpError: the value is not what OTLP allows.
    """
    return _value(found, 0)


def _value(found: object, depth: int) -> AnyValue:
    """Returns the value of an attribute; an object without a field is an empty value."""
    if depth > MAX_DEPTH:
        raise OtlpError(f"an attribute has lists or maps more than {MAX_DEPTH} levels deep")
    value = _object(found, "the value of an attribute")
    text = get_field(value, "stringValue")
    if text is not None:
        return AnyValue(string_value=_text(value, "stringValue"))
    if get_field(value, "boolValue") is not None:
        flag = get_field(value, "boolValue")
        if not isinstance(flag, bool):
            raise _wrong("boolValue", flag, "true or false")
        return AnyValue(bool_value=flag)
    if get_field(value, "intValue") is not None:
        return AnyValue(int_value=_integer(value, "intValue", _INT64))
    if get_field(value, "doubleValue") is not None:
        return AnyValue(double_value=_number(get_field(value, "doubleValue")))
    if get_field(value, "bytesValue") is not None:
        return AnyValue(bytes_value=_bytes(get_field(value, "bytesValue")))
    if (array := get_field(value, "arrayValue")) is not None:
        values = _list(get_field(_object(array, "arrayValue"), "values"), "arrayValue.values")
        built = AnyValue()
        built.array_value.SetInParent()
        built.array_value.values.extend(_value(each, depth + 1) for each in values)
        return built
    if (pairs := get_field(value, "kvlistValue")) is not None:
        built = AnyValue()
        built.kvlist_value.SetInParent()
        built.kvlist_value.values.extend(_attributes(get_field(_object(pairs, "kvlistValue"), "values"), depth + 1))
        return built
    return AnyValue()


def get_field(found: Mapping[str, Any], name: str) -> Any:
    """Returns the value of a field by its name in lowerCamelCase, also if the object has it in snake_case; else None."""
    value = found.get(name)
    if value is None and (snake := _SNAKE.get(name)) is not None:
        return found.get(snake)
    return value


_SNAKE = {
    name: "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    for name in (
        *("resourceSpans", "scopeSpans", "resourceLogs", "scopeLogs", "logRecords", "droppedAttributesCount"),
        *("traceId", "spanId", "parentSpanId", "traceState", "severityNumber", "eventName"),
        *("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"),
        *("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue"),
    )
}


def _object(found: object, name: str) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _wrong(name, found, "an object")
    return found


def _list(found: object, name: str) -> list[Any]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise _wrong(name, found, "a list")
    return found


def _text(found: Mapping[str, Any], name: str) -> str:
    value = get_field(found, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def _id(found: Mapping[str, Any], name: str) -> bytes:
    value = _text(found, name)
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise _wrong(name, value, "hexadecimal") from None


def _integer(found: Mapping[str, Any], name: str, limits: tuple[int, int]) -> int:
    value = get_field(found, name)
    if value is None:
        return 0
    number: int | None = None
    if isinstance(value, str) and DIGITS.fullmatch(value):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or not limits[0] <= number <= limits[1]:
        raise _wrong(name, value, f"an integer from {limits[0]} to {limits[1]}")
    return number


def _enum(found: Mapping[str, Any], name: str, kinds: Any) -> Any:
    value = get_field(found, name)
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        try:
            return int(kinds.Value(value))
        except ValueError:
            raise _wrong(name, value, "an integer or a name that OTLP defines") from None
    return _integer(found, name, _INT32)


def _number(value: object) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and len(value) <= 400):
        with suppress(ValueError, OverflowError):
            number = float(value)  # type: ignore[arg-type]  # is a number or a text
            if math.isfinite(number):
                return number
    raise _wrong("doubleValue", value, "a number of at most 1.8e308, NaN, Infinity or -Infinity")


def _bytes(value: object) -> bytes:
    try:
        return b64decode(value, validate=True)  # type: ignore[arg-type]  # a TypeError is the answer for other types
    except (ValueError, TypeError):
        raise _wrong("bytesValue", value, "base64") from None


def _wrong(name: str, value: object, rule: str) -> OtlpError:
    return OtlpError(f"{name} is {value!r:.80}; it must be {rule}")

"""Converts a request of spans in JSON at once, if all of it is as the Collector writes it.

msgspec checks the types while it parses, so that an attribute takes no look-up of a field. What has another form, such
as names in snake_case or a value of a wrong type, is left to `json_requests`, which says what is wrong where.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.json_requests import BOM, DIGITS, encoded_value
from traceweir.streams.intake.otlp.soundness import span_problem
from traceweir.streams.intake.otlp.views import RequestView

_Integer = int | str | None


class _Object(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An object of OTLP. Fields of type Any without a further use are allowed, and ignored."""


class _Value(_Object):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Integer = None
    double_value: float | str | None = None
    bytes_value: Any = None
    array_value: Any = None
    kvlist_value: Any = None


class _Attribute(_Object):
    key: str | None = None
    value: _Value | None = None


class _Event(_Object):
    time_unix_nano: _Integer = None
    name: str | None = None
    attributes: list[_Attribute] | None = None
    dropped_attributes_count: Any = None


class _Status(_Object):
    message: str | None = None
    code: _Integer = None


class _Span(_Object):
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    trace_state: str | None = None
    flags: _Integer = None
    name: str | None = None
    kind: _Integer = None
    start_time_unix_nano: _Integer = None
    end_time_unix_nano: _Integer = None
    attributes: list[_Attribute] | None = None
    dropped_attributes_count: _Integer = None
    events: list[_Event] | None = None
    dropped_events_count: Any = None
    links: Any = None
    dropped_links_count: Any = None
    status: _Status | None = None


class _Scope(_Object):
    name: str | None = None
    version: str | None = None
    attributes: Any = None
    dropped_attributes_count: Any = None


class _ScopeSpans(_Object):
    scope: _Scope | None = None
    spans: list[_Span] | None = None
    schema_url: Any = None


class _Resource(_Object):
    attributes: list[_Attribute] | None = None
    dropped_attributes_count: Any = None
    entity_refs: Any = None


class _ResourceSpans(_Object):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None
    schema_url: Any = None


class _Request(_Object):
    resource_spans: list[_ResourceSpans]


_decoder = msgspec.json.Decoder(_Request)


def sound_request_from_json(request: bytes) -> Any | None:
    """Returns the frame of a request (`views.RequestView`); None if any part of it is not as the Collector writes it."""
    try:
        return _frame(_decoder.decode(request.removeprefix(BOM)))
    except (ValueError, RecursionError, OtlpError):
        # protobuf raises a ValueError for a number that does not fit.
        return None


def _frame(request: _Request) -> Any:
    view = RequestView()
    for each in request.resource_spans:
        resource = Resource()
        if each.resource is not None:
            _add_attributes(resource.attributes, each.resource.attributes)
        resource_view = view.resources.add(resource=[resource.SerializeToString()])
        for each_scope in each.scope_spans or ():
            json_scope = each_scope.scope or _Scope()
            scope = InstrumentationScope(name=json_scope.name or "", version=json_scope.version or "")
            spans = [_span(span).SerializeToString() for span in each_scope.spans or ()]
            resource_view.scopes.add(scope=[scope.SerializeToString()], items=spans)
    return view


def _span(found: _Span) -> Span:
    status = found.status or _Status()
    span = Span(
        trace_id=bytes.fromhex(found.trace_id or ""),
        span_id=bytes.fromhex(found.span_id or ""),
        parent_span_id=bytes.fromhex(found.parent_span_id or ""),
        trace_state=found.trace_state or "",
        flags=_integer(found.flags),
        name=found.name or "",
        kind=found.kind,  # type: ignore[arg-type]  # protobuf takes the name of a kind, too
        start_time_unix_nano=_integer(found.start_time_unix_nano),
        end_time_unix_nano=_integer(found.end_time_unix_nano),
        dropped_attributes_count=_integer(found.dropped_attributes_count),
        status=Status(message=status.message, code=status.code),  # type: ignore[arg-type]
    )
    _add_attributes(span.attributes, found.attributes)
    for each in found.events or ():
        event = span.events.add(time_unix_nano=_integer(each.time_unix_nano), name=each.name)
        _add_attributes(event.attributes, each.attributes)
    if (problem := span_problem(span)) is not None:
        raise OtlpError(problem)
    return span


def _add_attributes(attributes: Any, found: Iterable[_Attribute] | None) -> None:
    for each in found or ():
        value = attributes.add(key=each.key).value
        json_value = each.value
        # A value that is set as a field of its message is not copied, as one that is passed to a constructor is.
        if json_value is None:
            value.SetInParent()
        elif json_value.string_value is not None:
            value.string_value = json_value.string_value
        elif json_value.bool_value is not None:
            value.bool_value = json_value.bool_value
        elif json_value.int_value is not None:
            value.int_value = _integer(json_value.int_value)
        else:
            others = {
                "doubleValue": json_value.double_value,
                "bytesValue": json_value.bytes_value,
                "arrayValue": json_value.array_value,
                "kvlistValue": json_value.kvlist_value,
            }
            value.CopyFrom(encoded_value(others))


def _integer(found: _Integer) -> int:
    if isinstance(found, str):
        # int() takes underscores and spaces, too.
        if not DIGITS.fullmatch(found):
            raise ValueError(found)
        return int(found)
    return found or 0

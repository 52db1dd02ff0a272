"""Publishes the spans of a trace as they arrive: what the collect stage writes to `invocations` and `traces`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status, TracesData
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from tests.support.scoring import make_session

from traceweir.schemas.events import EVENT
from traceweir.schemas.turns import Turn, turns_of
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.spans.span import Attributes, Span, Value
from traceweir.streams.pipeline.collect.collecting_rules import CollectingRules
from traceweir.streams.pipeline.collect.open_trace import OpenTrace
from traceweir.streams.pipeline.collect.publication import Publication
from traceweir.streams.pipeline.collect.published import identity_of
from traceweir.streams.pipeline.collect.span_rows import LOG, SPAN, Entry, published_key

_RULES = CollectingRules.of(Settings())
_NOW = 1_800_000_000_000


class PublishedDocuments(NamedTuple):
    """The documents of all publications of a trace, in their order."""

    events: list[dict[str, Any]]
    traces: list[dict[str, Any]]


def published(*arrivals: Iterable[Span]) -> list[dict[str, Any]]:
    """Returns the events of all publications; each arrival is followed by one."""
    spans = [[encoded(span) for span in arrived] for arrived in arrivals]
    (trace_id,) = {bytes.fromhex(span.trace_id) for arrived in arrivals for span in arrived}
    return publications(trace_id, [[entry(SPAN, data) for data in each] for each in spans]).events


def publications(trace_id: bytes, arrivals: Iterable[Iterable[Entry]]) -> PublishedDocuments:
    """Returns what is published of a trace if a publication follows each arrival."""
    trace, rows, found = OpenTrace(trace_id), dict[bytes, bytes](), PublishedDocuments([], [])
    for arrived in arrivals:
        for each in arrived:
            if not trace.knows(each.identity):
                trace.add(each)
        publication = Publication.of(trace, rows.get, _RULES, _NOW)
        assert (publication.unusable, publication.left_out) == ([], 0)
        rows[published_key(trace_id)] = publication.published.pack()
        trace.published_parts = trace.count
        trace.published_at = _NOW
        trace.publications += 1
        for document in publication.documents:
            (found.events if document.is_event else found.traces).append(json.loads(document.value))
    names = [event["event_id"] for event in found.events]
    assert len(set(names)) == len(names)
    return found


def entry(kind: bytes, data: bytes) -> Entry:
    """Returns a span or a log record as a trace keeps it, from a request with it alone."""
    assert kind in (SPAN, LOG)
    return Entry(kind, identity_of(data), data)


def encoded(span: Span) -> bytes:
    """Returns a request with a span alone."""
    message = SpanMessage(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id),
        name=span.name,
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=_pairs(span.attributes),
        status=Status(code=("UNSET", "OK", "ERROR").index(span.status), message=span.status_message),  # type: ignore[arg-type]
    )
    assert not span.events
    scope = ScopeSpans(spans=[message])
    scope.scope.name = span.scope
    resource = ResourceSpans(scope_spans=[scope])
    resource.resource.attributes.extend(_pairs(span.resource))
    return bytes(TracesData(resource_spans=[resource]).SerializeToString())


def current(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the events that no other one replaces."""
    known = list(events)
    replaced = {name for event in known for name in event.get("replaces", ())}
    return [event for event in known if event["event_id"] not in replaced]


def turns(events: Iterable[dict[str, Any]]) -> dict[str, list[Turn]]:
    """Returns the turns of each session, as the score stage reads them."""
    return {name: found for name, found in _turns(list(events)) if found}


def _turns(events: list[dict[str, Any]]) -> Iterator[tuple[str, list[Turn]]]:
    for name in {event["session_id"] for event in events}:
        own = [EVENT.validate_json(json.dumps(each)) for each in events if each["session_id"] == name]
        yield name, turns_of(make_session(name, events=sorted(own, key=lambda each: each.occurred_at), traces=[]))


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=key, value=_any(value)) for key, value in attributes.items()]


def _any(value: Value) -> AnyValue:
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=_pairs(value)))
        case _:
            return AnyValue(array_value=ArrayValue(values=[_any(each) for each in value]))

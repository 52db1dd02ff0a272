"""Turns the spans of a trace into records for the topics `invocations` and `traces`, or into dead letters."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

import orjson

from traceweir.schemas.dead_letter import DeadLetter, Reason
from traceweir.streams.base.stages.base import Output, Read
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.topics import Topics
from traceweir.streams.intake.otlp.decoding import LogEvent, add_logs, decode_log, decode_sound_spans, decode_span
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.slices import MAX_SPAN_BYTES, log_slices, span_slices
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.pipeline.collect.changes import Changes, changes_of
from traceweir.streams.pipeline.collect.collecting_rules import CollectingRules
from traceweir.streams.pipeline.collect.document import LARGEST, CollectedDocument, Rooms
from traceweir.streams.pipeline.collect.open_trace import OpenTrace
from traceweir.streams.pipeline.collect.published import Published, identity_of
from traceweir.streams.pipeline.collect.requests import joined
from traceweir.streams.pipeline.collect.span_rows import LOG, SPAN, Entry, published_key

_UNKNOWN_OFFSET = -1
"""The offset of a dead letter whose record was read long ago: a trace does not keep the offsets of its records."""


class Unusable(NamedTuple):
    """A span or a log record that cannot be decoded."""

    kind: bytes
    data: bytes
    problem: str


@dataclass(slots=True)
class Publication:
    """What a trace tells that was not published before."""

    documents: list[CollectedDocument]
    unusable: list[Unusable]
    published: Published
    """What is published with these documents and before."""
    first_left_out: CollectedDocument | None
    """The first document that is left out because the trace has more than the limit; None if none is."""
    left_out: int
    """Number of documents that are left out."""
    replaced: int
    """Number of events of former publications that the documents replace or withdraw."""
    changes: Changes
    """What late spans have changed."""
    rooms: Rooms
    """The largest documents."""

    @classmethod
    def of(cls, trace: OpenTrace, read: Read, rules: CollectingRules, now: int, rooms: Rooms = LARGEST) -> Publication:
        """Reads the trace from its rows and what it has in memory.

        Documents that are larger than `rooms` become dead letters; `now` is in milliseconds since 1970.

        After a publication the spans that it had are read again, to find what late spans have changed. A reasoning trace
        that has changed is published again under its id, as a revision.
        """
        before = Published.unpack(read(published_key(trace.id)))
        entries = list(trace.entries(read))
        spans, unusable = _decoded(entries)
        former = _decoded(entries[: trace.published_parts])[0] if before.identities else []
        changes = changes_of(trace, before, former, spans, rules, now, rooms)
        new: dict[bytes, tuple[bool, str, dict[str, Any]]] = {}
        for event in changes.events:
            new.setdefault(identity_of(b"e" + event["event_id"].encode()), (True, event["session_id"], event))
        for trace_document in changes.traces:
            identity = identity_of(b"t" + trace_document["id"].encode())
            new.setdefault(identity, (False, trace_document["metadata"]["session_id"], trace_document))
        damaged = {identity: each for each in unusable if (identity := identity_of(each.data)) not in before.identities}
        room = max(0, rules.max_documents - len(before.identities))
        encoded = (CollectedDocument(is_event, name, orjson.dumps(each)) for is_event, name, each in new.values())
        chosen = list(islice(encoded, room))
        first_left_out = next(encoded, None)
        remembered = islice(chain(new, changes.identities, damaged), room)
        published = Published(changes.session_id, before.identities.union(remembered))
        left_out = len(new) - len(chosen)
        replaced = sum(
            # What withdraws events names itself too.
            name != value["event_id"]
            for (is_event, _, value), document in zip(new.values(), chosen, strict=False)
            if is_event and "replaces" in value and document.fits(rooms)
            for name in value["replaces"]
        )
        return cls(chosen, list(damaged.values()), published, first_left_out, left_out, replaced, changes, rooms)

    def outputs(self, topics: Topics, partition: int, partitions: int, timestamp: int) -> Iterator[Output]:
        """Yields the documents at the homes of their sessions, and the dead letters."""
        for document in self.documents:
            is_event, session_id, value = document
            topic = topics.invocations if is_event else topics.traces
            key = session_id.encode()
            if not document.fits(self.rooms):
                problem = (
                    f"{'an event' if is_event else 'the reasoning trace'} of {len(value)} bytes was read from spans; "
                    f"a record of {topic} can have at most {self.rooms.of(document)} bytes with its key"
                )
                yield _document_letter(topics, partition, partitions, document, problem)
            else:
                yield Output(topic, partition_of(key, partitions), key, value, (), timestamp)
        if self.first_left_out is not None:
            problem = (
                f"{self.left_out} events and reasoning traces of one trace are left out, of which this is the first; "
                "the trace has more of them than the worker can remember"
            )
            yield _document_letter(topics, partition, partitions, self.first_left_out, problem)
        for kind, data, problem in self.unusable:
            yield from _request_letters(
                topics, partition, kind, [data], RecordRejected("invalid", problem), RecordLimits()
            )


def dead_letters(
    trace: OpenTrace, read: Read, topics: Topics, partition: int, why: RecordRejected, limits: RecordLimits
) -> list[Output]:
    """Returns dead letters with all spans and log records of a trace, as whole requests that can be replayed.

    Rows that are missing or damaged are left out from there on: they can be the reason why the trace cannot be read.
    A single span that does not fit the topic is truncated later.
    """
    entries: list[Entry] = []
    with suppress(RuntimeError, struct.error):
        for entry in trace.entries(read):
            entries.append(entry)  # noqa: PERF402  # a comprehension would lose the entries before the damage
    refused: list[Output] = []
    for kind in (SPAN, LOG):
        found = [entry.data for entry in entries if entry.kind == kind]
        refused += _request_letters(topics, partition, kind, found, why, limits)
    return refused


def _decoded(entries: list[Entry]) -> tuple[list[Span], list[Unusable]]:
    """Returns the spans with their log records in an order that does not depend on the arrival, and what is damaged."""
    spans: list[Span] = []
    logs: list[LogEvent] = []
    unusable: list[Unusable] = []
    data = b"".join(entry.data for entry in entries if entry.kind != LOG)
    if (sound := decode_sound_spans(data)) is not None:
        spans = sound
    elif data:
        for span_slice in span_slices(data).slices:
            try:
                spans.append(decode_span(span_slice))
            except OtlpError as error:
                unusable.append(Unusable(SPAN, span_slice.data, str(error)))
    if data := b"".join(entry.data for entry in entries if entry.kind == LOG):
        for log_slice in log_slices(data).slices:
            try:
                logs.append(decode_log(log_slice))
            except OtlpError as error:
                unusable.append(Unusable(LOG, log_slice.data, str(error)))
    add_logs(spans, logs)
    return spans, unusable


def _document_letter(
    topics: Topics, partition: int, partitions: int, document: CollectedDocument, problem: str
) -> Output:
    is_event, session_id, value = document
    topic = topics.invocations if is_event else topics.traces
    key = session_id.encode()
    letter = _letter(RecordRejected("too_large", problem), topic, partition_of(key, partitions), key, value)
    if not document.fits(LARGEST):
        return Output(topics.dead_letters, partition, key, letter.wire_value(), letter.wire_headers())
    # The value is whole, because a replay finds no record without an offset.
    return Output(topics.dead_letters, partition, key, value, replace(letter, value=None).wire_headers())


def _request_letters(
    topics: Topics, partition: int, kind: bytes, parts: list[bytes], why: RecordRejected, limits: RecordLimits
) -> Iterator[Output]:
    headers = _letter(why, topics.otlp_logs if kind == LOG else topics.otlp_spans, partition, None, None).wire_headers()
    for value in joined(parts, min(MAX_SPAN_BYTES, limits.room(topics.dead_letters, headers))):
        # The value is whole also above 64 kB, because a replay cannot find the record on its topic without an offset.
        yield Output(topics.dead_letters, partition, None, value, headers)


def _letter(why: RecordRejected, topic: str, partition: int, key: bytes | None, value: bytes | None) -> DeadLetter:
    reason: Reason = why.reason
    return DeadLetter(reason, why.detail, "collect", topic, partition, _UNKNOWN_OFFSET, key, value)

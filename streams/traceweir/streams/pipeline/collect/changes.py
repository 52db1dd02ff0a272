"""Finds what a publication of a trace adds to those before it, and in which session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from traceweir.streams.intake.spans.reader import TraceRecords, read_trace
from traceweir.streams.intake.spans.reasoning_ids import moved_id, reasoning_trace_id
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.pipeline.collect.collecting_rules import CollectingRules
from traceweir.streams.pipeline.collect.document import LARGEST, CollectedDocument, Rooms
from traceweir.streams.pipeline.collect.late_events import Event, late_events
from traceweir.streams.pipeline.collect.late_traces import ReasoningTrace, late_traces
from traceweir.streams.pipeline.collect.open_trace import OpenTrace
from traceweir.streams.pipeline.collect.published import MOVED, Published, identity_of
from traceweir.streams.pipeline.collect.withdrawn_traces import withdrawals


@dataclass(frozen=True, slots=True)
class Changes:
    """The documents that a publication adds, and their session."""

    events: Sequence[Event]
    traces: Sequence[ReasoningTrace]
    session_id: str
    """The session of all documents of the trace from now on; empty if there is none, or if there are several."""
    own_spans: int
    """Number of Traceweir's own spans, which are left out."""
    identities: Sequence[bytes] = ()
    """What to remember beside the ids of the documents."""
    moved: bool = False
    """Whether the documents withdraw the trace from the session of its own id, and publish it in the right one."""
    not_moved: bool = False
    """Whether that would be right, but cannot be done any more."""


def changes_of(
    trace: OpenTrace,
    before: Published,
    former: Sequence[Span],
    spans: Sequence[Span],
    rules: CollectingRules,
    now: int,
    rooms: Rooms = LARGEST,
) -> Changes:
    """Returns what the spans of a trace tell that was not published before.

    Args:
        trace: The trace.
        before: What was published before.
        former: The spans that the last publication had; empty before the first, and if unknown.
        spans: All spans.
        rules: The rules.
        now: The time, in milliseconds since 1970.
        rooms: The largest documents.
    """
    found = read_trace(spans, visibility=rules.visibility, session_id=before.session_id)
    if not before.identities:
        return Changes(found.events, found.traces, _only_session(found), found.own_spans)
    # A former version has not counted what it has published.
    if not trace.published_parts:
        events = [event for event in found.events if not before.has(event["event_id"])]
        traces = [each for each in found.traces if not before.has(each["id"], b"t")]
        return Changes(events, traces, before.session_id, found.own_spans)
    earlier = read_trace(former, visibility=rules.visibility, session_id=before.session_id)
    not_moved = False
    if before.session_id == trace.id.hex():
        named = read_trace(spans, visibility=rules.visibility)
        if any(name != before.session_id for name in named.session_ids):
            changes = _between(before, former, earlier, named, moves=True)
            if _can_move(trace, before, earlier, changes, rules, now, rooms):
                return changes
            not_moved = True
    return replace(_between(before, former, earlier, found, moves=False), not_moved=not_moved)


def _between(
    before: Published, former: Sequence[Span], earlier: TraceRecords, found: TraceRecords, *, moves: bool
) -> Changes:
    """Returns what turns an earlier reading of a trace into another one, which can move the trace to another session."""
    ids = [reasoning_trace_id(span.trace_id, span.span_id) for span in former]
    traces_before = earlier.traces
    traces_after = found.traces
    if before.has_moved:
        traces_before = _moved(traces_before)
        traces_after = _moved(traces_after)
        ids = list(map(moved_id, ids))
    is_published = partial(before.has, kind=b"t")
    was_kept = partial(before.has, kind=b"k")
    traces, names = late_traces(traces_before, traces_after, ids, is_published, was_kept, moves=moves)
    if moves:
        traces = [*withdrawals(traces_before, ids, is_published, was_kept), *traces]
    kept = [identity_of(b"k" + name.encode()) for name in names if not was_kept(name)]
    return Changes(
        late_events(earlier.events, found.events, before.has),
        traces,
        _only_session(found) if moves else before.session_id,
        found.own_spans,
        [MOVED, *kept] if moves else kept,
        moved=moves,
    )


def _moved(traces: Sequence[ReasoningTrace]) -> list[ReasoningTrace]:
    """Returns reasoning traces under the ids that they have since they have moved."""
    return [each | {"id": moved_id(each["id"])} for each in traces]


def _can_move(
    trace: OpenTrace,
    before: Published,
    earlier: TraceRecords,
    changes: Changes,
    rules: CollectingRules,
    now: int,
    rooms: Rooms,
) -> bool:
    """Returns whether the former session can be withdrawn, and all documents fit; its size is estimated from above."""
    documents = [
        *(CollectedDocument(True, each["session_id"], orjson.dumps(each)) for each in changes.events),
        *(CollectedDocument(False, each["metadata"]["session_id"], orjson.dumps(each)) for each in changes.traces),
    ]
    if not all(each.fits(rooms) for each in documents):
        return False
    events = [event for event in changes.events if event["session_id"] == before.session_id]
    traces = [each for each in changes.traces if each["metadata"]["session_id"] == before.session_id]
    added = len(changes.events) + len(changes.traces) + len(changes.identities)
    return len(before.identities) + added <= rules.max_documents and rules.can_withdraw(
        trace.published_at,
        now,
        trace.publications,
        len(before.identities) + len(events) + len(traces),
        # A publication has written at most what the last one had read.
        trace.publications * _size([*earlier.events, *earlier.traces]) + _size([*events, *traces]),
    )


def _size(documents: Sequence[dict[str, Any]]) -> int:
    return sum(len(orjson.dumps(each)) + 1 for each in documents)


def _only_session(records: TraceRecords) -> str:
    return records.session_ids[0] if len(records.session_ids) == 1 else ""

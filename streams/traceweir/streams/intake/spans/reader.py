"""Reads a trace: returns the events and the reasoning traces of the invocations in its spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from traceweir.streams.intake.spans.call_names import call_names
from traceweir.streams.intake.spans.clocks import with_one_clock
from traceweir.streams.intake.spans.conventions import hooks_of
from traceweir.streams.intake.spans.cut import without_cut_texts
from traceweir.streams.intake.spans.identity import session_of, user_of
from traceweir.streams.intake.spans.invocation_events import end_of_session, events_of
from traceweir.streams.intake.spans.kinds import is_own
from traceweir.streams.intake.spans.reasoning import reasoning_trace
from traceweir.streams.intake.spans.records import Reading
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.tree import below, trees, unique
from traceweir.streams.intake.spans.turns import find_turns
from traceweir.streams.intake.spans.unnamed_tools import mark_tools

_JOINED = hooks_of(lambda each: each.joined)

Visibility = Literal["private", "org", "network"]


@dataclass(frozen=True, slots=True)
class TraceRecords:
    """What the spans of one trace tell, as documents for the topics `invocations` and `traces`."""

    events: list[dict[str, Any]] = field(default_factory=list)
    """The events of all invocations, in order; each is valid under `traceweir.schemas.events.EVENT`."""
    traces: list[dict[str, Any]] = field(default_factory=list)
    """A ReasoningTrace for each invocation."""
    session_ids: tuple[str, ...] = ()
    """The sessions of the events, each once, in the order of their first event."""
    has_root: bool = False
    """Whether a span without a parent is there. Its arrival is a good sign that the trace is complete, but no proof."""
    own_spans: int = 0
    """Number of spans that are left out because they are Traceweir's own."""


def read_trace(spans: Iterable[Span], *, visibility: Visibility = "private", session_id: str = "") -> TraceRecords:
    """Returns what agents did in one trace.

    The result depends on the set of spans only: their order and repetitions change nothing. Ids of events are derived
    from the ids of the trace and its spans, so that a second reading with late spans repeats most ids of the first;
    `collect.late_events` tells what to publish after it.

    Args:
        spans: The finished spans of one trace, with their log records as events.
        visibility: The visibility of the reasoning traces.
        session_id: The session of all events, if an earlier reading of the trace has published them in one session
            already; empty: the spans tell the session.
    """
    everything = with_one_clock(unique(without_cut_texts(spans)))
    known: Sequence[Span] = [span for span in everything if not is_own(span)]
    own_spans = len(everything) - len(known)
    if not known:
        return TraceRecords(own_spans=own_spans)
    for joined in _JOINED:
        known = joined(known)
    roots = trees(list(known))
    outermost_first = below(roots)
    mark_tools(outermost_first)
    common = session_of(outermost_first)
    user = user_of(outermost_first)
    events: list[dict[str, Any]] = []
    traces: list[dict[str, Any]] = []
    sessions: dict[str, None] = {}
    readings: list[Reading] = []
    turns = find_turns(roots)
    for index, turn in enumerate(turns):
        session = session_id or session_of(below(turn.roots)) or common or known[0].trace_id
        reading = Reading.of(turn, session, user, is_first=index == 0)
        if not reading.is_empty:
            readings.append(reading)
    names = call_names(call for reading in readings for call in reading.calls)
    for reading in readings:
        events += events_of(reading, names)
        traces.append(reasoning_trace(reading, visibility))
        sessions.setdefault(reading.session_id)
    is_own_session = session_id == known[0].trace_id or not (session_id or common)
    # The user can say more as long as the span of the conversation has not come.
    if events and is_own_session and not any(turn.in_conversation and turn.has_lost_spans for turn in turns):
        own = known[0].trace_id
        of_events = sum(event["session_id"] == own for event in events)
        of_traces = sum(trace["metadata"]["session_id"] == own for trace in traces)
        events.append(end_of_session(own, events[-1]["occurred_at"], of_events, of_traces))
    has_root = any(not span.parent_id for span in known)
    return TraceRecords(events, traces, tuple(sessions), has_root, own_spans)

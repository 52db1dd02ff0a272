"""Arranges the spans and the steps of a session by time: what began when, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from traceweir.schemas.events import (
    InvocationEvent,
    InvocationRecorded,
    ModelCalled,
    ResponseIntermediate,
    RetrievalReturned,
    ToolCalled,
    ToolReturned,
)
from traceweir.schemas.session import Session
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, turns_with_events

Kind = Literal["invocation", "tool", "model", "retrieval", "response", "step"]
MAX_BARS = 300
"""Maximum number of rows of a waterfall."""
_NARROWEST = 0.6
"""Percent of the width that a bar has at least, so that a moment can be seen."""


@dataclass(frozen=True)
class Bar:
    """A span or a step."""

    kind: Kind
    """What it is."""
    name: str
    """Name of the tool, the model or the agent, or the id of the invocation."""
    begins_s: float
    """Seconds after the beginning of the waterfall."""
    duration_s: float | None
    """Seconds that it took; None if only the moment is known."""
    is_failed: bool = False
    """Whether it failed."""


@dataclass(frozen=True)
class Waterfall:
    """Spans of a segment or steps of a trace, by time."""

    title: str
    """What it is of; empty for the spans of the segment."""
    total_s: float
    """Seconds from the first beginning to the last end."""
    bars: list[Bar]
    """The rows."""
    left_out: int = 0
    """Number of further rows."""

    def left(self, bar: Bar) -> float:
        """Returns where a bar begins, in percent of the width."""
        return min(100 * bar.begins_s / self.total_s, 100 - _NARROWEST) if self.total_s else 0.0

    def width(self, bar: Bar) -> float:
        """Returns the width of a bar, in percent."""
        wanted = 100 * (bar.duration_s or 0.0) / self.total_s if self.total_s else 0.0
        return min(max(wanted, _NARROWEST), 100 - self.left(bar))


def waterfalls_of(session: Session) -> list[Waterfall]:
    """Returns the waterfall of the session's spans, if their times are known, and one of each trace with measured steps."""
    spans = _laid_out(session)
    steps = [found for trace in session.current_traces if (found := _steps_of(trace)) is not None]
    return [*spans, *steps]


def _laid_out(session: Session) -> list[Waterfall]:
    found = [bar for turn, events in turns_with_events(session) for bar in _bars_of(turn, events)]
    if not found:
        return []
    first = min(begin for begin, _ in found)
    bars = [
        Bar(bar.kind, bar.name, (begin - first).total_seconds(), bar.duration_s, bar.is_failed) for begin, bar in found
    ]
    total_s = max(bar.begins_s + (bar.duration_s or 0.0) for bar in bars)
    return [Waterfall("", total_s, bars[:MAX_BARS], len(bars) - len(bars[:MAX_BARS]))]


def _bars_of(turn: Turn, events: Sequence[InvocationEvent]) -> Iterator[tuple[datetime, Bar]]:
    """Yields the bars of an invocation with their beginnings: the invocation first, then what it did."""
    times = [moment for event in events if (moment := known_time(event.occurred_at)) is not None]
    if not times:
        return
    invocation = turn.invocation
    begin = min(times)
    recorded = all(isinstance(event, InvocationRecorded) for event in events)
    duration_s = invocation.latency_seconds if recorded else (max(times) - begin).total_seconds()
    yield begin, Bar("invocation", invocation.invocation_id, 0.0, duration_s, invocation.error is not None)
    returns = [event for event in events if isinstance(event, ToolReturned)]
    for event in events:
        moment = known_time(event.occurred_at)
        if moment is None:
            continue
        match event:
            case ToolCalled():
                answer = next((each for each in returns if _answers(each, event)), None)
                if answer is not None:
                    returns.remove(answer)
                end = known_time(answer.occurred_at) if answer is not None else None
                took_s = (end - moment).total_seconds() if end is not None and end >= moment else None
                yield moment, Bar("tool", event.name, 0.0, took_s, answer is not None and answer.error is not None)
            case ModelCalled():
                yield moment, Bar("model", event.model, 0.0, None)
            case RetrievalReturned():
                yield moment, Bar("retrieval", f"{len(event.chunks)} pieces", 0.0, None)
            case ResponseIntermediate():
                yield moment, Bar("response", event.author or "agent", 0.0, None)
    for event in returns:
        if (moment := known_time(event.occurred_at)) is not None:
            yield moment, Bar("tool", event.name, 0.0, None, event.error is not None)


def _answers(returned: ToolReturned, call: ToolCalled) -> bool:
    if call.call_id is not None or returned.call_id is not None:
        return returned.call_id == call.call_id
    return returned.name == call.name


def _steps_of(trace: ReasoningTrace) -> Waterfall | None:
    """Returns the steps of a trace one after the other; None if no step says how long it took."""
    if all(step.latency_ms is None for step in trace.steps):
        return None
    bars = []
    at_s = 0.0
    for step in trace.steps:
        took_s = None if step.latency_ms is None else step.latency_ms / 1000
        name = step.tool.name if step.tool is not None else step.type.replace("_", " ")
        bars.append(Bar("step", name, at_s, took_s))
        at_s += took_s or 0.0
    return Waterfall(trace.id, at_s, bars[:MAX_BARS], len(bars) - len(bars[:MAX_BARS]))

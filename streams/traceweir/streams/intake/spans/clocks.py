"""Moves the spans of services whose clocks differ to the clock of the service that called them.

The ids of parents say what is inside what; the times of two machines do not. Without this, the work of a service whose
clock is late or early would be put before the question, after the answer, or into another invocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.span import Span

_MACHINE = ("service.name", "service.instance.id", "host.name", "k8s.pod.uid", "process.pid")
"""The attributes of a resource that tell whose clock its spans have."""
_QUEUE = "messaging."
"""The beginning of the attributes of a span whose work waited in a queue: it can begin after its parent has ended."""
_UNBOUNDED = 2**63
Clock = tuple[str, ...]


def with_one_clock(spans: Sequence[Span]) -> list[Span]:
    """Returns the spans with the times of the service that called the others.

    A clock is wrong if a span begins before its parent, or after its parent has ended. All spans of that service are
    moved by the same time, also those whose parent is not in the trace.
    """
    if all(span.resource == spans[0].resource for span in spans):
        return list(spans)
    clocks = [_clock_of(span) for span in spans]
    if len(set(clocks)) < 2:
        return list(spans)
    by_id = {span.span_id: place for place, span in enumerate(spans)}
    links: dict[Clock, list[tuple[Span, int]]] = {}
    for span, clock in zip(spans, clocks, strict=True):
        parent = by_id.get(span.parent_id)
        if parent is not None and clocks[parent] != clock and span.start_ns and spans[parent].start_ns:
            links.setdefault(clock, []).append((span, parent))
    # The service that called all others has the clock of the trace.
    shifts = {clock: 0 for span, clock in zip(spans, clocks, strict=True) if not span.parent_id}
    for clock in dict.fromkeys(clocks):
        if clock in shifts:
            continue
        _find_shift(clock, links, shifts, spans, clocks)
    if not any(shifts.values()):
        return list(spans)
    return [_moved(span, shifts[clock]) for span, clock in zip(spans, clocks, strict=True)]


def _clock_of(span: Span) -> Clock:
    return tuple(first_text(span.resource, key) for key in _MACHINE)


def _find_shift(
    clock: Clock,
    links: dict[Clock, list[tuple[Span, int]]],
    shifts: dict[Clock, int],
    spans: Sequence[Span],
    clocks: Sequence[Clock],
) -> None:
    """Finds by how much a clock is moved, after the clocks of the services that called its service."""
    waiting = [clock]
    while waiting:
        current = waiting[-1]
        # A service that calls back is not moved again by those that it has called.
        shifts.setdefault(current, 0)
        callers = [clocks[parent] for _, parent in links.get(current, ())]
        if (before := next((each for each in callers if each not in shifts), None)) is not None:
            waiting.append(before)
            continue
        waiting.pop()
        pairs = [(span, spans[parent], shifts[clocks[parent]]) for span, parent in links.get(current, ())]
        shifts[current] = _shift(pairs)


def _shift(pairs: Iterable[tuple[Span, Span, int]]) -> int:
    """Returns the move by which each span begins within its parent; 0 if they do.

    If no move does so for all, that counts by which no span begins before its parent.
    """
    least = -_UNBOUNDED
    most = _UNBOUNDED
    for span, parent, moved in pairs:
        begin_ns = parent.start_ns + moved
        end_ns = parent.end_ns + moved
        least = max(least, begin_ns - span.start_ns)
        if end_ns > begin_ns and not any(key.startswith(_QUEUE) for key in span.attributes):
            if not begin_ns <= span.start_ns <= end_ns:
                # What is moved also ends within its parent, if it is short enough.
                end_ns = max(end_ns - max(span.end_ns - span.start_ns, 0), begin_ns)
            most = min(most, end_ns - span.start_ns)
    if least <= 0 <= most:
        return 0
    if least >= most or most == _UNBOUNDED:
        return least
    # In the middle, so that what the caller did before stays before.
    return (least + most) // 2


def _moved(span: Span, shift_ns: int) -> Span:
    if not shift_ns:
        return span
    start_ns = span.start_ns and max(span.start_ns + shift_ns, 1)
    end_ns = span.end_ns and max(span.end_ns + shift_ns, 1)
    events = [each._replace(time_ns=each.time_ns and max(each.time_ns + shift_ns, 1)) for each in span.events]
    return replace(span, start_ns=start_ns, end_ns=end_ns, events=events)

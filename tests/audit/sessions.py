"""Claims about `sessions`: every record is in one session, complete and in order, and no revision loses a record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.audit.evidence import Evidence, Place
from tests.support.ledger import canonical, home

SEGMENTS_APART = 1_000_000
"""A session that was forgotten because of a fast clock begins again with a segment of the next million."""


def life_of(segment: int) -> int:
    """Returns how often a session can have been forgotten, because of a fast clock, before a segment of it began."""
    return segment // SEGMENTS_APART


def no_record_is_lost(e: Evidence) -> Iterator[str]:
    """Every record that was sent is in the last revision of a segment."""
    events, traces = _found(e)
    for name, sent in e.ledger.events.items():
        for event in sent - set(events[name]):
            yield f"session {name}: lost {event}"
    for trace_id in e.ledger.traces:
        if not traces[trace_id]:
            yield f"trace {trace_id} is in no session"


def no_record_is_doubled_or_made_up(e: Evidence) -> Iterator[str]:
    """Every record in a session was sent for that session, and the session contains it once.

    With wrong clocks a session can close before its time, so that it contains later contents of a trace in its next
    segment; and each of its lives can contain a record that was sent again.
    """
    events, traces = _found(e)
    for name, found in events.items():
        sent = e.ledger.events.get(name)
        if sent is None:
            yield f"session {name} was never sent"
            continue
        for event in found.keys() - sent:
            yield f"session {name}: never sent {event}"
    for (name, life), found in _by_life(e).items():
        yield from (
            f"session {name}: {times} times {text} in life {life}" for text, times in found.items() if times > 1
        )
    for trace_id, times in traces.items():
        if times > 1 and not e.wrong_clocks:
            yield f"trace {trace_id} is in {times} segments"
    for each in e.sessions:
        name, _ = each.place
        for trace in each.document["traces"]:
            if e.ledger.session_of.get(trace["id"]) != name:
                yield f"trace {trace['id']} is in session {name}"
            if trace not in e.ledger.traces.get(trace["id"], []):
                yield f"trace {trace['id']} differs from what was sent"


def the_last_content_of_a_trace_stands(e: Evidence) -> Iterator[str]:
    """The last revision contains the content of each trace that was sent last.

    With wrong clocks an earlier content can come later, by a replay or in the next segment: only a trace that was sent
    with one content must have that one.
    """
    for each in e.last.values():
        for trace in each.document["traces"]:
            if e.wrong_clocks and len(e.ledger.traces.get(trace["id"], ())) > 1:
                continue
            if trace != e.ledger.final(trace["id"]):
                yield f"trace {trace['id']} of {each.version} is not what was sent last"


def records_are_in_their_segment(e: Evidence) -> Iterator[str]:
    """A session has one segment, or two if it has an earlier segment; no other record comes after the grace.

    A killed node can delay the event of the earlier segment; the event then joins the segment that is open.
    """
    for name, sent in e.ledger.events.items():
        former = {e.ledger.before[name]} if name in e.ledger.before else set()
        expected = [former, sent - former] if former else [sent]
        held_up = [sent]
        count = 1 + max((segment for each, segment in e.last if each == name), default=-1)
        found = [_events(e, (name, number)) for number in range(count)]
        if found not in (expected, held_up):
            yield f"session {name}: segments of {[*map(len, found)]} events, not of {[*map(len, expected)]}"


def segments_are_whole(e: Evidence) -> Iterator[str]:
    """Segments are numbered from 0, have the right partition, key, order of events and reason of closing.

    With wrong clocks the segments of each life are numbered from its first one.
    """
    segments: dict[str, set[int]] = defaultdict(set)
    for each in e.sessions:
        name, segment, _ = each.version
        segments[name].add(segment)
        if each.row.partition != home(name) or each.row.key != name.encode():
            yield f"session {name} is under key {each.row.key!r} in partition {each.row.partition}"
        moments = [event["occurred_at"] for event in each.document["events"]]
        if any(earlier > later for earlier, later in pairwise(moments)):
            yield f"{each.version}: events out of order"
        ended = any(event["type"] == "session.ended" for event in each.document["events"])
        if each.document["closed_because"] != ("session.ended" if ended else "idle"):
            yield f"{each.version} was closed because of {each.document['closed_because']}"
    for name, numbers in segments.items():
        begins = {SEGMENTS_APART * life_of(each) for each in numbers} if e.wrong_clocks else {0}
        firsts = {each for each in numbers if each - 1 not in numbers}
        if firsts != begins:
            yield f"session {name} has segments {sorted(numbers)}"


def revisions_follow_each_other(e: Evidence) -> Iterator[str]:
    """Revisions are numbered 0, 1, 2, ... in partition order; each adds records to those of the previous revision."""
    for place, published in e.revisions.items():
        numbers = [each.document["revision"] for each in published]
        if numbers != list(range(len(numbers))):
            yield f"{place} has revisions {numbers}"
        for former, later in pairwise(published):
            before, after = _contents(former.document), _contents(later.document)
            if not before[0] <= after[0] or not before[1] <= after[1]:
                yield f"revision {later.version} lacks what the one before it held"
            if _plain(former.document) == _plain(later.document):
                yield f"revision {later.version} says nothing new"


def sessions_name_their_dead_letters(e: Evidence) -> Iterator[str]:
    """Each refused record of a session is a dead letter of the session, and the session names it once."""
    letters = {f"{each.topic}-{each.partition}@{each.offset}": each for each in e.letters}
    for each in e.sessions:
        named = [refused["place"].rpartition(".")[2] for refused in each.document.get("refused", ())]
        for name in named:
            letter = letters.get(name)
            if letter is None or letter.row.key != each.row.key or named.count(name) > 1:
                yield f"{each.version} names {name}, which is {letter}"


def _found(e: Evidence) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Returns the events by session, and the traces, over the last revisions of all segments."""
    events: dict[str, Counter[str]] = defaultdict(Counter)
    traces: Counter[str] = Counter()
    for (name, _), each in e.last.items():
        events[name].update(canonical(event) for event in each.document["events"])
        traces.update(trace["id"] for trace in each.document["traces"])
    return events, traces


def _by_life(e: Evidence) -> dict[tuple[str, int], Counter[str]]:
    """Returns the events, and the contents of traces, over the last revisions of the segments of each life."""
    found: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for (name, segment), each in e.last.items():
        contents = (*each.document["events"], *each.document["traces"])
        found[name, life_of(segment)].update(map(canonical, contents))
    return found


def _events(e: Evidence, place: Place) -> set[str]:
    each = e.last.get(place)
    return {canonical(event) for event in each.document["events"]} if each else set()


def _contents(session: dict[str, list[dict[str, str]]]) -> tuple[set[str], set[str]]:
    return {canonical(event) for event in session["events"]}, {trace["id"] for trace in session["traces"]}


def _plain(session: dict[str, object]) -> str:
    return canonical({"events": session["events"], "traces": session["traces"], "refused": session.get("refused")})

"""Whatever spans come late: what counts in the end is what all spans tell that are read at once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.late_spans import current, encoded, entry, publications, turns
from tests.support.otlp_recordings import document_of, names
from tests.support.spans import TRACE, span

from traceweir.streams.intake.otlp.decoding import add_logs, decode_logs, decode_spans
from traceweir.streams.intake.spans.reader import TraceRecords, read_trace
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.pipeline.collect.requests import read_request
from traceweir.streams.pipeline.collect.span_rows import LOG, SPAN, Entry

_ROUNDS = 3


@cache
def recorded(name: str) -> list[tuple[bytes, list[Entry]]]:
    """Returns the id of each trace of a recording that can be cut, with its spans and log records."""
    document = document_of(name)
    traces: dict[bytes, list[Entry]] = defaultdict(list)
    for kind, field in ((SPAN, "requests"), (LOG, "logs")):
        for request in document[field]:
            for part in read_request(json.dumps(request).encode(), logs=kind == LOG).parts:
                traces[part.trace_id].append(entry(kind, part.data))
    return [(name, found) for name, found in traces.items() if sum(each.kind == SPAN for each in found) > 1]


def read(entries: Iterable[Entry], session: str = "") -> TraceRecords:
    """Returns what spans and log records tell that are read at once."""
    found = list(entries)
    spans = [each for one in found if one.kind == SPAN for each in decode_spans(one.data).spans]
    add_logs(spans, [each for one in found if one.kind == LOG for each in decode_logs(one.data).logs])
    return read_trace(spans, session_id=session)


def session_of(own: str, readings: Iterable[list[Entry]]) -> str:
    """Returns the session in which the first reading puts a trace, or the first one that names a session at all.

    Empty: there is none, or there are several.
    """
    session = None
    for each in readings:
        names = read(each).session_ids
        if names and (session is None or (session == own and names != (own,))):
            session = names[0] if len(names) == 1 else ""
    return session or ""


def check(trace_id: bytes, arrived: Sequence[list[Entry]]) -> None:
    """Checks that the documents that count after the last arrival are those of all spans read at once."""
    so_far = list(accumulate(arrived, lambda before, each: [*before, *each]))
    session = session_of(trace_id.hex(), so_far)
    expected = read(so_far[-1], session)

    found = publications(trace_id, arrived)

    assert turns(found.events) == turns(expected.events)
    for kind in ("tool.called", "tool.returned", "model.called", "retrieval.returned"):
        wanted = sum(each["type"] == kind for each in expected.events)
        assert sum(each["type"] == kind for each in current(found.events)) == wanted
    assert len({(each["id"], each["metadata"]["session_id"]) for each in found.traces}) == len(
        {each["id"] for each in found.traces}
    )
    final = {each["id"]: each | {"id": ""} for each in found.traces}.values()
    last = [each for each in final if not each["metadata"].get("withdrawn")]
    if session:
        assert {each["metadata"]["session_id"] for each in last} <= {session}
    for each in json.loads(json.dumps(expected.traces)):
        invocation = each["metadata"]["invocation_id"]
        assert [one for one in last if one["metadata"]["invocation_id"] == invocation] == [each | {"id": ""}]


@pytest.mark.parametrize("name", names())
@settings(max_examples=examples(8))
@given(st.data())
def test_late_spans_give_what_all_spans_give(name: str, data: st.DataObject) -> None:
    if not recorded(name):
        pytest.skip("each trace of this recording is one span")
    trace_id, entries = data.draw(st.sampled_from(recorded(name)))
    entries = data.draw(st.permutations(entries))
    number = len(entries)
    rounds = data.draw(st.lists(st.integers(0, _ROUNDS - 1), min_size=number, max_size=number))
    arrived = [[each for each, own in zip(entries, rounds, strict=True) if own == one] for one in range(_ROUNDS)]
    check(trace_id, [each for each in arrived if each])


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.result": "1"}
SPANS = [
    span(1, 0, "run", AGENT),
    *(
        span(number, 1, "agent", AGENT | {"input.value": f"question {number}", "output.value": f"answer {number}"})
        for number in (2, 4, 6)
    ),
    *(span(number, number - 1, "tool", TOOL) for number in (3, 5, 7)),
]
"""Three agents below a span that makes one invocation of them when it comes."""


CUTS = st.sets(st.integers(1, len(SPANS) - 1), min_size=1, max_size=4)


def arrivals(order: Sequence[Span], cuts: set[int]) -> list[list[Entry]]:
    """Returns spans in an order, cut at some places."""
    entries = [entry(SPAN, encoded(each)) for each in order]
    places = [0, *sorted(cuts), len(entries)]
    return [entries[begin:end] for begin, end in pairwise(places)]


@settings(max_examples=examples(40))
@given(st.permutations(SPANS), CUTS)
def test_invocations_that_become_one_have_one_reasoning_trace(order: list[Span], cuts: set[int]) -> None:
    check(bytes.fromhex(TRACE), arrivals(order, cuts))


@settings(max_examples=examples(40))
@given(st.permutations(SPANS), CUTS, st.sampled_from(SPANS))
def test_turns_move_from_the_trace_id_to_the_session_that_a_late_span_names(
    order: list[Span], cuts: set[int], naming: Span
) -> None:
    spans = [
        replace(each, attributes={**each.attributes, "session.id": "s"}) if each == naming else each for each in order
    ]
    check(bytes.fromhex(TRACE), arrivals(spans, cuts))

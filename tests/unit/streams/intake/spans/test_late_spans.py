"""Spans that come after their trace was published add what is new: each step is counted once, also with repeated ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from tests.support import late_spans
from tests.support.late_spans import current
from tests.support.spans import span
from tests.unit.streams.intake.spans.test_call_ids import AGENT, ID, asked, chat, result, seen_by_another, tool, turn

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span


def published(*arrivals: Iterable[Span]) -> list[dict[str, Any]]:
    """Returns the events that count after the last arrival."""
    return current(late_spans.published(*arrivals))


def calls_of(events: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Returns the day of each call and its results; a result that is said to be missing is None."""
    results: dict[str, list[Any]] = {}
    for event in events:
        if event["type"] == "tool.returned":
            told = None if event.get("missing") else event["response"]
            results.setdefault(event["call_id"], []).append(told)
    called = [event for event in events if event["type"] == "tool.called"]
    return sorted((event["args"]["day"], results.pop(event["call_id"], [])) for event in called)


def cases() -> Iterator[tuple[list[Span], list[Span]]]:
    """Yields the spans of a turn that came before its publication, and those that came after, for each set of them."""
    first, second, last = turn("Sunday", "Monday")
    spans = [first, tool(3, "Sunday"), second, tool(5, "Monday"), last]
    for number in range(1, len(spans)):
        for late in combinations(spans, number):
            early = [each for each in spans if each not in late]
            yield [AGENT, *early], list(late)


@pytest.mark.parametrize(("early", "late"), list(cases()))
def test_two_calls_with_one_id_stay_two_whatever_comes_late(early: list[Span], late: list[Span]) -> None:
    for arrivals in ([early, late], [early, *([each] for each in reversed(late))]):
        assert calls_of(published(*arrivals)) == [("Monday", ["Monday: open"]), ("Sunday", ["Sunday: open"])]


def test_the_first_run_of_an_id_takes_the_id_when_it_comes_late() -> None:
    events = published([AGENT, tool(5, "Monday")], [tool(3, "Sunday")])
    called = {event["call_id"]: event["args"]["day"] for event in events if event["type"] == "tool.called"}
    assert called == {ID: "Sunday", f"{ID}#{5:016x}": "Monday"}


def test_two_equal_calls_with_one_id_stay_two() -> None:
    first, second, last = turn("Sunday", "Sunday")
    events = published([AGENT, second, tool(5, "Sunday"), last], [first, tool(3, "Sunday")])
    assert calls_of(events) == [("Sunday", ["Sunday: open"]), ("Sunday", ["Sunday: open"])]


def without_id(each: Span) -> Span:
    told = {key: value for key, value in each.attributes.items() if key != "gen_ai.tool.call.id"}
    return replace(
        each, attributes={k: v.replace(f'"id": "{ID}", ', "") if isinstance(v, str) else v for k, v in told.items()}
    )


def test_a_call_without_an_id_is_counted_once_whichever_of_its_spans_comes_late() -> None:
    model, run = without_id(chat(2, [], asked("Sunday"))), without_id(tool(3, "Sunday"))
    for early, late in ((model, run), (run, model), (run, seen_by_another(run)), (seen_by_another(run), run)):
        assert len([each for each in published([AGENT, early], [late]) if each["type"] == "tool.called"]) == 1


def test_a_call_without_an_id_is_counted_once_if_the_more_important_of_two_model_spans_is_late() -> None:
    model, run = without_id(chat(2, [], asked("Sunday"))), without_id(tool(3, "Sunday"))
    inner = seen_by_another(model)
    for first, late in ((inner, model), (model, inner)):
        events = published([AGENT, first], [late, run])
        assert [event["args"] for event in events if event["type"] == "tool.called"] == [{"day": "Sunday"}]


def test_a_late_result_joins_its_call_that_was_published_without_an_id() -> None:
    model, run = without_id(chat(2, [], asked("Sunday"))), tool(3, "Sunday")
    assert calls_of(published([AGENT, model], [run])) == [("Sunday", ["Sunday: open"])]


def test_a_call_whose_id_comes_late_is_counted_once() -> None:
    model, run = chat(2, [], asked("Sunday")), without_id(tool(3, "Sunday"))
    events = published([AGENT, run], [model])
    assert len([event for event in events if event["type"] == "tool.called"]) == 1


def test_a_model_call_that_two_instrumentations_recorded_is_counted_once_if_the_first_span_is_late() -> None:
    model = chat(2, [], asked("Sunday"))
    events = published([AGENT, seen_by_another(model)], [model])
    assert len([event for event in events if event["type"] == "model.called"]) == 1


def test_a_result_that_a_model_read_before_it_asked_is_not_the_result_of_its_call() -> None:
    events = read_trace([AGENT, chat(4, [asked("Sunday"), result("Sunday")], asked("Monday"))]).events
    assert calls_of(events) == [("Monday", [None])]


def test_a_run_that_ended_before_the_model_asked_is_not_the_run_of_other_arguments() -> None:
    events = read_trace([AGENT, tool(3, "Sunday"), chat(4, [], asked("Monday"))]).events
    assert calls_of(events) == [("Monday", [None]), ("Sunday", ["Sunday: open"])]


def test_arguments_that_a_framework_changed_leave_the_run_to_its_call() -> None:
    told = {"gen_ai.tool.call.arguments": json.dumps({"day": "Sunday", "zone": "UTC"})}
    run = span(5, 1, "execute_tool look", {**tool(5, "Sunday").attributes, **told})
    assert calls_of(read_trace([AGENT, chat(4, [], asked("Sunday")), run]).events) == [("Sunday", ["Sunday: open"])]

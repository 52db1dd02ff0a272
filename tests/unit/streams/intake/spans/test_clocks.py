"""Spans of a service whose clock is wrong are where the ids of their parents say, whatever their times are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.clocks import with_one_clock
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

SECOND = 10**9
DESK = {"service.name": "desk"}
HOURS = {"service.name": "hours"}


def agent(number: int, parent: int, name: str, resource: dict[str, str], ends: int) -> Span:
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(number, parent, f"invoke_agent {name}", told, end_ns=ends * SECOND, resource=resource)


def chat(number: int, parent: int, asked: str, answer: str, resource: dict[str, str]) -> Span:
    read = [{"role": "user", "parts": [{"type": "text", "content": asked}]}]
    wrote = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    told = {"gen_ai.input.messages": json.dumps(read), "gen_ai.output.messages": json.dumps(wrote)}
    names = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return span(number, parent, "chat", {**names, **told}, resource=resource)


def moved(each: Span, seconds: int) -> Span:
    return replace(each, start_ns=each.start_ns + seconds * SECOND, end_ns=each.end_ns + seconds * SECOND)


def turn(off_by: int, *more: Span) -> list[Span]:
    """Returns a turn from 100 to 120 seconds, in which an agent of a service whose clock is off works from 105 to 110."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask_hours"}
    inner = [agent(105, 104, "hours", HOURS, 110), chat(106, 105, "Hours?", "From nine.", HOURS)]
    return [
        agent(100, 0, "desk", DESK, 120),
        chat(102, 100, "Open?", "I ask.", DESK),
        span(104, 100, "execute_tool ask_hours", tool, end_ns=111 * SECOND, resource=DESK),
        *(moved(each, off_by) for each in inner),
        chat(115, 100, "Open?", "Yes.", DESK),
        *more,
    ]


def told(spans: list[Span]) -> list[tuple[str, str]]:
    events = read_trace(spans).events
    texts: dict[str, list[str]] = {}
    for each in events:
        for key in ("user_content", "final_response"):
            if key in each:
                texts.setdefault(each["invocation_id"], []).append(each[key]["parts"][0]["text"])
    return [(each[0], each[-1]) for each in texts.values()]


@pytest.mark.parametrize("off_by", [0, -3600, -50, -6, 14, 50, 3600])
def test_the_question_and_the_answer_are_those_of_the_agent_outside(off_by: int) -> None:
    spans = turn(off_by)
    assert told(spans) == [("Open?", "Yes.")]
    order = [each["type"] for each in read_trace(spans).events]
    assert order == [each["type"] for each in read_trace(turn(0)).events]


@pytest.mark.parametrize("off_by", [-60, 60])
def test_an_agent_below_a_lost_span_is_moved_as_the_rest_of_its_service(off_by: int) -> None:
    def agents() -> list[Span]:
        second = [agent(160, 0, "desk", DESK, 180), chat(162, 160, "And Monday?", "No.", DESK)]
        first = [agent(40, 0, "desk", DESK, 60), chat(42, 40, "Hello", "Hi.", DESK)]
        lost = [agent(107, 99, "hours", HOURS, 109), chat(108, 107, "Days?", "All.", HOURS)]
        return [*first, *turn(off_by), *(moved(each, off_by) for each in lost), *second]

    assert told(agents()) == [("Hello", "Hi."), ("Open?", "Yes."), ("And Monday?", "No.")]
    texts = [each for each in read_trace(agents()).events if each["type"] == "response.intermediate"]
    assert {each["invocation_id"] for each in texts} == {
        each["invocation_id"] for each in read_trace(agents()).events if "Open?" in json.dumps(each)
    }


def test_right_clocks_and_work_from_a_queue_are_left_as_they_are() -> None:
    for spans in (turn(0), [each for each in turn(0) if each.resource == DESK]):
        assert with_one_clock(spans) == spans
    queued: dict[str, Any] = {"messaging.system": "kafka"}
    late = span(130, 104, "process", queued, resource=HOURS)
    assert with_one_clock([*turn(0), late])[-1] is late


def test_services_that_call_each_other_are_moved_once() -> None:
    back = chat(107, 106, "Which?", "Mine.", DESK)
    spans = with_one_clock(turn(-3600, back))
    assert [each.start_ns for each in spans if each.resource == DESK] == [
        each.start_ns for each in turn(0, back) if each.resource == DESK
    ]

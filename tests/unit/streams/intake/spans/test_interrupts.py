"""A run of LangGraph that waits for a person, and the run that goes on with the answer, are one invocation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.scoring import make_session
from tests.support.spans import event, span

from traceweir.schemas.conversation import conversation_of
from traceweir.schemas.events import EVENT
from traceweir.schemas.turns import turns_of
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

ASKED = "Delete booking 7."
CALL = {"name": "delete_booking", "args": {"number": 7}, "id": "call_d7", "type": "tool_call"}
HUMAN = {"type": "human", "content": ASKED}
ASKING = {"type": "ai", "content": "", "tool_calls": [CALL]}
DELETED = {"type": "tool", "content": "booking 7 deleted", "name": "delete_booking", "tool_call_id": "call_d7"}
REJECTED = {**DELETED, "content": "Not that one.", "status": "error"}
INTERRUPT = "(Interrupt(value={'question': 'Delete booking 7?'}, id='6ee0'),)"
GO_ON: dict[str, Any] = {"graph": None, "update": None, "resume": {"decisions": [{"type": "approve"}]}, "goto": []}


def raised(message: str = INTERRUPT, kind: str = "langgraph.errors.GraphInterrupt") -> SpanEvent:
    return event("exception", exception__type=kind, exception__message=message)


class OpenInference:
    """The keys and the kinds of OpenInference."""

    input = "input.value"
    output = "output.value"

    @staticmethod
    def kind(word: str) -> dict[str, Any]:
        return {"openinference.span.kind": word, "session.id": "thread-9"}


class LangSmith:
    """The keys and the kinds of LangSmith."""

    input = "gen_ai.prompt"
    output = "gen_ai.completion"

    @staticmethod
    def kind(word: str) -> dict[str, Any]:
        kind = {"AGENT": "chain"}.get(word, word.lower())
        return {"langsmith.span.kind": kind, "langsmith.metadata.thread_id": "thread-9"}


def run(number: int, steps: list[Span], trace: str, convention: Any, **values: Any) -> list[Span]:
    keys = {"asked": convention.input, "said": convention.output}
    content = {keys[name]: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    root = span(number, 0, "desk_agent", convention.kind("AGENT") | content)
    found = [root, *steps]
    for each in found:
        each.trace_id = trace * 32
    return found


def model(number: int, parent: int, read: list[Any], said: dict[str, Any], convention: Any) -> Span:
    content = {convention.input: json.dumps({"messages": [read]}), convention.output: json.dumps({"messages": [said]})}
    return span(number, parent, "M", convention.kind("LLM") | content)


def tool(number: int, parent: int, convention: Any, *events: SpanEvent, result: Any = None, **fields: Any) -> Span:
    content = {convention.input: '{"number": 7}'} | ({convention.output: json.dumps(result)} if result else {})
    name = {"tool.name": "delete_booking"} | ({} if events else {"tool_call.id": "call_d7"})
    return span(number, parent, "delete_booking", convention.kind("TOOL") | name | content, *events, **fields)


def conversation(*traces: list[Span]) -> list[tuple[str | None, str | None, list[tuple[str, Any, str | None]]]]:
    events = [EVENT.validate_json(json.dumps(each)) for spans in traces for each in read_trace(spans).events]
    return [
        (each.question, each.answer, [(each.name, each.response, each.error) for each in each.tools])
        for each in conversation_of(make_session("thread-9", events=events))
    ]


def interrupted(convention: Any = OpenInference, **fields: Any) -> list[Span]:
    """The tool itself asks the person."""
    steps = [model(2, 1, [HUMAN], ASKING, convention), tool(3, 1, convention, raised(), **fields)]
    return run(1, steps, "a", convention, asked={"messages": [{"role": "user", "content": ASKED}]})


def resumed(convention: Any = OpenInference, command: Any = GO_ON) -> list[Span]:
    read = [HUMAN, ASKING, DELETED]
    steps = [
        tool(12, 11, convention, result=DELETED),
        model(13, 11, read, {"type": "ai", "content": "Deleted."}, convention),
    ]
    return run(11, steps, "b", convention, asked=command)


@pytest.mark.parametrize("convention", [OpenInference, LangSmith])
@pytest.mark.parametrize(
    "command",
    [
        GO_ON,
        {"input": GO_ON},
        {"inputs": GO_ON, "tags": []},
        "Command(resume={'decisions': [{'type': 'approve'}]})",
        "Command(update=None, resume='yes')",
    ],
)
def test_a_run_that_goes_on_belongs_to_the_invocation_that_waited(convention: Any, command: Any) -> None:
    found = conversation(interrupted(convention), resumed(convention, command))
    assert found == [(ASKED, "Deleted.", [("delete_booking", "booking 7 deleted", None)])]


@pytest.mark.parametrize(
    ("message", "kind"),
    [(INTERRUPT, "langgraph.errors.GraphInterrupt"), (f"GraphInterrupt({INTERRUPT})Traceback", "Exception")],
)
def test_a_tool_that_waits_has_not_failed(message: str, kind: str) -> None:
    steps = [model(2, 1, [HUMAN], ASKING, OpenInference)]
    steps.append(tool(3, 1, OpenInference, raised(message, kind), status="ERROR", status_message=message))
    read = read_trace(run(1, steps, "a", OpenInference, asked={"messages": [{"role": "user", "content": ASKED}]}))
    assert [each["type"] for each in read.events] == [
        *("invocation.started", "model.called", "tool.called", "invocation.completed")
    ]
    completed = read.events[-1]
    assert "error" not in completed
    assert completed["missing"][0] == (
        "the answer is not in this trace: the run stopped before it, to wait for a person"
    )


def test_a_call_that_a_person_rejects_has_the_rejection_as_its_error() -> None:
    waiting = span(3, 1, "HumanInTheLoop.after_model", OpenInference.kind("CHAIN"), raised())
    asked = {"messages": [{"role": "user", "content": ASKED}]}
    first = run(1, [model(2, 1, [HUMAN], ASKING, OpenInference), waiting], "a", OpenInference, asked=asked)
    told = model(12, 11, [HUMAN, ASKING, REJECTED], {"type": "ai", "content": "I did not."}, OpenInference)
    second = run(11, [told], "b", OpenInference, asked=GO_ON)
    [(question, answer, tools)] = conversation(first, second)
    assert (question, answer) == (ASKED, "I did not.")
    assert [(name, error) for name, _, error in tools] == [("delete_booking", "Not that one.")]


def test_what_a_person_writes_is_a_question_of_its_own_if_no_call_waits() -> None:
    waiting = span(2, 1, "ask", OpenInference.kind("CHAIN"), raised("(Interrupt(value='Which city?'),)"))
    first = run(1, [waiting], "a", OpenInference, asked={"messages": [{"role": "user", "content": "Weather?"}]})
    told = [{"type": "human", "content": "Weather?"}, {"type": "human", "content": "Oslo"}]
    answered = model(12, 11, told, {"type": "ai", "content": "Sunny."}, OpenInference)
    second = run(11, [answered], "b", OpenInference, asked={**GO_ON, "resume": "Oslo"})
    assert conversation(first, second) == [("Weather?", None, []), ("Oslo", "Sunny.", [])]


def test_an_answer_that_is_no_text_is_a_missing_question_if_no_call_waits() -> None:
    answered = model(12, 11, [HUMAN], {"type": "ai", "content": "Sunny."}, OpenInference)
    read = read_trace(run(11, [answered], "b", OpenInference, asked=GO_ON))
    assert read.events[0]["missing"] == [
        "the question is not in the spans: the run goes on with the answer of a person, which is no text"
    ]


def test_a_run_that_goes_on_without_the_run_before_says_that_its_question_is_missing() -> None:
    events = [EVENT.validate_json(json.dumps(each)) for each in read_trace(resumed()).events]
    [turn] = turns_of(make_session("thread-9", events=events))

    assert turn.invocation.user_content is None
    assert turn.invocation.unread is not None
    assert turn.invocation.unread[0] == (
        "the question is that of the run before: this run only goes on with it, after the answer of a person"
    )


def test_the_question_is_not_missing_in_the_invocation_of_both_runs() -> None:
    spans = [*read_trace(interrupted()).events, *read_trace(resumed()).events]
    [turn] = turns_of(make_session("thread-9", events=[EVENT.validate_json(json.dumps(each)) for each in spans]))

    assert not [each for each in turn.invocation.unread or () if each.startswith("the question ")]


def test_both_runs_in_one_trace_are_one_invocation_with_one_call() -> None:
    spans = interrupted() + resumed()
    web = span(90, 0, "POST /chat", {"http.request.method": "POST"}, start_ns=5 * 10**8, end_ns=200 * 10**9)
    for each in spans:
        each.trace_id = web.trace_id
        each.parent_id = each.parent_id or web.span_id
        if each.name == "desk_agent":
            each.end_ns = each.start_ns + 5 * 10**9
    assert conversation([web, *spans]) == [(ASKED, "Deleted.", [("delete_booking", "booking 7 deleted", None)])]


def test_an_input_with_a_field_named_resume_is_an_ordinary_question() -> None:
    answered = model(
        2, 1, [{"type": "human", "content": "Read it."}], {"type": "ai", "content": "Good."}, OpenInference
    )
    asked = {"resume": "10 years of Python", "question": "Read it."}
    assert conversation(run(1, [answered], "a", OpenInference, asked=asked)) == [("Read it.", "Good.", [])]

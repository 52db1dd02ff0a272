"""Which spans of a trace are one invocation: agents, the steps beside them, and the turns of a conversation."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from tests.support.late_spans import current, published, turns
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 7,
    "gen_ai.usage.output_tokens": 2,
}
TOOL: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours"}
WORKFLOW: dict[str, Any] = {"gen_ai.operation.name": "invoke_workflow"}
CALL = {"type": "tool_call", "id": "c1", "name": "hours", "arguments": {"day": "Sunday"}}
RESULT = {"type": "tool_call_response", "id": "c1", "response": {"open": False}}

Turn = tuple[str, str]


def said(role: str, *parts: str | dict[str, Any]) -> dict[str, Any]:
    known = [{"type": "text", "content": each} if isinstance(each, str) else each for each in parts]
    return {"role": role, "parts": known}


def read(*messages: dict[str, Any]) -> dict[str, str]:
    return {"gen_ai.input.messages": json.dumps(messages)}


def wrote(*messages: dict[str, Any]) -> dict[str, str]:
    return {"gen_ai.output.messages": json.dumps(messages)}


def chat(number: int, parent: int, history: list[Turn], asked: str, answer: str) -> Span:
    before = [each for turn in history for each in (said("user", turn[0]), said("assistant", turn[1]))]
    return span(number, parent, "chat", CHAT | read(*before, said("user", asked)) | wrote(said("assistant", answer)))


def told(spans: list[Span]) -> list[tuple[str, str]]:
    """Returns the question and the answer of each invocation."""
    events = read_trace(spans).events
    questions = {
        each["invocation_id"]: each.get("user_content", {"parts": [{"text": ""}]})["parts"][0]["text"]
        for each in events
        if each["type"] == "invocation.started"
    }
    answers = {
        each["invocation_id"]: each.get("final_response", {"parts": [{"text": ""}]})["parts"][0]["text"]
        for each in events
        if each["type"] == "invocation.completed"
    }
    return [(questions[each], answers[each]) for each in questions]


def tools(spans: list[Span]) -> list[tuple[Any, Any]]:
    events = read_trace(spans).events
    results = {each["call_id"]: each.get("response") for each in events if each["type"] == "tool.returned"}
    return [(each.get("args"), results.get(each["call_id"])) for each in events if each["type"] == "tool.called"]


def tokens(spans: list[Span]) -> int:
    return sum(each["input_tokens"] for each in read_trace(spans).events if each["type"] == "model.called")


TURNS: list[Turn] = [
    ("Open on Sunday?", "No, closed."),
    ("Yes", "Fine."),
    ("Yes", "Then it is done."),
    ("And on Monday?", "From nine."),
]


def conversation(root: dict[str, Any], name: str = "session") -> list[Span]:
    """Returns a conversation of one trace, with an agent for each turn, which tells its question and its answer."""
    spans = [span(1, 0, name, root)]
    for index, (question, answer) in enumerate(TURNS):
        number = 10 * (index + 1)
        content = read(said("user", question)) | wrote(said("assistant", answer))
        spans.append(span(number, 1, "invoke_agent desk", AGENT | content, end_ns=(number + 5) * 10**9))
        spans.append(chat(number + 1, number, TURNS[:index], question, answer))
    return spans


@pytest.mark.parametrize("root", [WORKFLOW, AGENT, {"openinference.span.kind": "CHAIN"}, {}])
def test_each_new_message_of_the_user_below_a_conversation_is_an_invocation(root: dict[str, Any]) -> None:
    assert told(conversation(root)) == TURNS


def test_steps_without_agents_below_a_conversation_are_divided_by_the_messages_of_the_user() -> None:
    for root in (WORKFLOW, {}):
        spans = [span(1, 0, "session", root)]
        for index, (question, answer) in enumerate(TURNS):
            spans.append(chat(10 * (index + 1), 1, TURNS[:index], question, answer))
        assert told(spans) == TURNS


@pytest.mark.parametrize("root", [WORKFLOW, {}])
def test_agents_with_their_model_calls_beside_them_are_divided_likewise(root: dict[str, Any]) -> None:
    spans = conversation(root)
    for each in spans[1:]:
        each.parent_id = spans[0].span_id
    assert told(spans) == TURNS


def test_model_calls_below_one_request_are_one_invocation() -> None:
    draft = ("Write a rhyme.", "Roses are red.")
    spans = [
        span(1, 0, "POST /rhyme", {"http.request.method": "POST"}),
        chat(2, 1, [], *draft),
        chat(3, 1, [draft], "Is that good? Improve it.", "Roses are blue."),
    ]
    assert told(spans) == [("Write a rhyme.", "Roses are blue.")]


def test_the_results_of_tools_in_the_name_of_the_user_are_no_turns() -> None:
    act = ("Open on Sunday?", "Thought: I look.\nAction: hours")
    spans = [
        span(1, 0, "loop", {}),
        chat(2, 1, [], *act),
        chat(3, 1, [act], "Observation: closed", "Final Answer: No."),
    ]
    assert [answer for _, answer in told(spans)] == ["Final Answer: No."]


@pytest.mark.parametrize("root", [WORKFLOW, AGENT])
def test_agents_that_pass_their_work_on_are_one_invocation(root: dict[str, Any]) -> None:
    draft = "A poem about the sea, with three lines."
    passed = read(said("user", f"Review this: {draft}")) | wrote(said("assistant", "It is good."))
    spans = [
        span(1, 0, "pipeline", root),
        span(2, 1, "writer", AGENT | {"gen_ai.agent.name": "writer"} | read(said("user", "Write a poem."))),
        chat(3, 2, [], "Write a poem.", draft),
        span(4, 1, "critic", AGENT | {"gen_ai.agent.name": "critic"} | passed),
    ]
    assert told(spans) == [("Write a poem.", "It is good.")]


def test_a_span_that_tells_its_question_is_one_invocation_whatever_is_asked_below_it() -> None:
    root = WORKFLOW | {"input.value": "Plan the week.", "output.value": "Planned."}
    assert told(conversation(root)) == [("Plan the week.", "Planned.")]


@pytest.mark.parametrize("root", [{}, WORKFLOW, {"http.request.method": "POST"}])
def test_agents_that_go_on_with_one_message_are_one_invocation(root: dict[str, Any]) -> None:
    handover = AGENT | {"gen_ai.agent.name": "first"} | read(said("user", "Open?"))
    spans = [
        span(1, 0, "request", root),
        span(2, 1, "invoke_agent first", handover, status="ERROR"),
        span(4, 1, "invoke_agent second", AGENT | read(said("user", "Open?")) | wrote(said("assistant", "No."))),
    ]
    assert told(spans) == [("Open?", "No.")]


def test_an_agent_that_answers_the_same_question_twice_has_two_invocations() -> None:
    asked = AGENT | read(said("user", "Open?"))
    spans = [span(n, 0, "agent", asked | wrote(said("assistant", text))) for n, text in ((1, "No."), (5, "Yes."))]
    for each in spans:
        each.end_ns = each.start_ns + 1
    assert told(spans) == [("Open?", "No."), ("Open?", "Yes.")]


def test_model_calls_and_tools_beside_an_agent_are_its_own() -> None:
    ask = CHAT | read(said("user", "Open?")) | wrote(said("assistant", CALL))
    history = read(said("user", "Open?"), said("assistant", CALL), said("tool", RESULT))
    spans = [
        span(1, 0, "POST /chat", {"http.request.method": "POST"}),
        span(2, 1, "invoke_agent desk", AGENT | read(said("user", "Open?")) | wrote(said("assistant", "No."))),
        span(3, 1, "chat m", ask),
        span(4, 1, "execute_tool hours", TOOL | {"gen_ai.tool.call.id": "c1"}),
        span(5, 1, "chat m", CHAT | history | wrote(said("assistant", "No."))),
    ]
    for order in permutations(spans):
        assert told(list(order)) == [("Open?", "No.")]
        assert tools(list(order)) == [({"day": "Sunday"}, {"open": False})]
        assert tokens(list(order)) == 14


def test_a_model_call_beside_an_agent_is_neither_its_question_nor_its_answer() -> None:
    spans = [
        span(1, 0, "request", {}),
        chat(2, 1, [], "Which kind of question is this: Open?", "hours"),
        span(4, 1, "invoke_agent desk", AGENT | {"gen_ai.agent.version": "1"}, status="OK"),
        chat(5, 4, [], "Open?", "No."),
        chat(7, 1, [], "A title for: Open?", "Hours"),
    ]
    assert told(spans) == [("Open?", "No.")]
    assert tokens(spans) == 21


def test_a_model_call_around_its_tools_tells_calls_results_and_answer_as_its_output() -> None:
    whole = wrote(said("assistant", "I look.", CALL), said("tool", RESULT), said("assistant", "No."))
    for above in ([span(1, 0, "invoke_agent desk", AGENT)], []):
        spans = [*above, span(2, len(above), "chat m", CHAT | read(said("user", "Open?")) | whole)]
        assert told(spans) == [("Open?", "No.")]
        assert tools(spans) == [({"day": "Sunday"}, {"open": False})]
        texts = [each["content"] for each in read_trace(spans).events if each["type"] == "response.intermediate"]
        assert [each["parts"][0]["text"] for each in texts] == ["I look."]


def test_a_call_that_only_the_next_input_tells_is_read() -> None:
    history = read(said("user", "Open?"), said("assistant", CALL), said("tool", RESULT))
    last = span(5, 1, "chat m", CHAT | history | wrote(said("assistant", "No.")))
    first = span(3, 1, "chat m", CHAT | read(said("user", "Open?")) | wrote(said("assistant", "I look.")))
    agent = AGENT | read(said("user", "Open?"))
    for spans in ([span(1, 0, "a", AGENT), first, last], [span(1, 0, "a", agent), last]):
        assert tools(spans) == [({"day": "Sunday"}, {"open": False})]


def test_a_call_of_a_former_invocation_that_an_agent_goes_on_with_is_not_read_again() -> None:
    history = read(said("user", "Open?"), said("assistant", CALL), said("tool", RESULT))
    spans = [span(1, 0, "a", AGENT), span(3, 1, "chat m", CHAT | history | wrote(said("assistant", "No.")))]
    assert tools(spans) == []


def livekit() -> list[Span]:
    names = {1: "agent_session"} | {10 * (index + 1): "agent_turn" for index in range(len(TURNS))}
    spans = conversation(WORKFLOW)
    for each in spans:
        each.scope = "livekit-agents"
        each.name = names.get(int(each.span_id, 16), "llm_request")
    return spans


def test_turns_that_are_published_before_the_conversation_ends_keep_their_ids() -> None:
    root, *rest = livekit()
    parts = [rest[:2], rest[2:6], [*rest[6:], root]]
    whole = read_trace([root, *rest]).events
    assert turns(current(published(*parts))) == turns(whole)
    ids = {each["invocation_id"] for each in whole if "invocation_id" in each}
    assert len(ids) == len(TURNS)
    for part in parts:
        # A reading that has forgotten the turns before gives no id of theirs a second time.
        assert {each["invocation_id"] for each in read_trace(part).events if "invocation_id" in each} <= ids
    ended = [any(each["type"] == "session.ended" for each in read_trace(part).events) for part in parts]
    assert ended == [False, False, True]


def test_what_the_agent_says_unasked_goes_on_with_the_turn_before() -> None:
    root, *rest = livekit()
    history = [each for turn in TURNS for each in (said("user", turn[0]), said("assistant", turn[1]))]
    attributes = AGENT | {"lk.pii.response.text": "Are you there?"}
    more = [span(80, 1, "agent_turn", attributes), span(81, 80, "llm_request", CHAT | read(*history))]
    for each in more:
        each.scope = root.scope
    assert len(told([root, *rest, *more])) == len(TURNS)


def test_a_sub_agent_below_a_lost_span_works_for_the_agent_around_it() -> None:
    call = {**CALL, "name": "ask_hours", "arguments": {"request": "Hours?"}}
    inner = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "hours_agent"}
    asked = said("user", "Open on Sunday?")
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "chat", CHAT | read(asked) | wrote(said("assistant", call))),
        # Its parent is the span of the tool.
        span(4, 3, "invoke_agent hours_agent", inner, end_ns=7 * 10**9),
        chat(5, 4, [], "Hours?", "Closed on Sundays."),
        span(8, 1, "chat", CHAT | read(asked, said("assistant", call)) | wrote(said("assistant", "No."))),
    ]
    assert told(spans) == [("Open on Sunday?", "No.")]
    authors = [each["author"] for each in read_trace(spans).events if each["type"] == "response.intermediate"]
    assert authors == ["hours_agent"]
    # After the end of the agent, it is another one.
    spans[0].end_ns = 6 * 10**9
    assert len(told(spans)) == 2


SUB_AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "hours_agent"}


def two_agents(*, second_ends: int) -> list[Span]:
    """Returns two agents that start at 1 and 3 seconds, the first until 30, and from 10 to 12 one whose parent is lost."""
    return [
        span(1, 0, "invoke_agent desk", AGENT, end_ns=30 * 10**9),
        chat(2, 1, [], "Open on Sunday?", "No."),
        span(3, 0, "invoke_agent desk", AGENT, end_ns=second_ends * 10**9),
        chat(4, 3, [], "And on Monday?", "Yes."),
        span(10, 9, "invoke_agent hours_agent", SUB_AGENT, end_ns=12 * 10**9),
        chat(11, 10, [], "Hours?", "From 9 to 6."),
    ]


def test_of_two_agents_a_sub_agent_below_a_lost_span_works_for_the_one_that_ran() -> None:
    events = read_trace(two_agents(second_ends=6)).events
    first = next(each["invocation_id"] for each in events if each["type"] == "invocation.started")
    (said_within,) = [each for each in events if each["type"] == "response.intermediate"]
    assert (said_within["author"], said_within["invocation_id"]) == ("hours_agent", first)


def test_if_two_agents_ran_nothing_tells_for_which_a_sub_agent_below_a_lost_span_works() -> None:
    spans = two_agents(second_ends=20)
    assert told(spans) == [("Open on Sunday?", "No."), ("And on Monday?", "Yes."), ("Hours?", "From 9 to 6.")]
    missing = [each["missing"] for each in read_trace(spans).events if "the root span" in str(each.get("missing"))]
    assert len(missing) == 1

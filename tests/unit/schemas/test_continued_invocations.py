"""Tests that an approval, or the late response of a tool, continues the invocation of its call on every route."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.adk import adk_event, adk_session, read_as
from tests.support.openai_chat import assistant_message, convert, events_of, tool_calls, tool_result, user_message
from tests.support.scoring import NOW, make_session

from traceweir.schemas.conversation import conversation_of
from traceweir.schemas.events import EVENT
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of, withdrawn_turns
from traceweir.streams.intake.formats.adk_session import ADK_SESSION

Said = list[tuple[str, str | None, str | None, list[tuple[str, object]]]]
WHOLE: Said = [
    ("e-1", "Delete it", "Deleted.", [("delete", {"ok": True})]),
    ("e-3", "Thanks", "Any time.", []),
]


def session(*events: dict[str, Any], revision: int = 0) -> Session:
    read = [
        EVENT.validate_python({"session_id": "s", "occurred_at": NOW + timedelta(seconds=number), **event})
        for number, event in enumerate(events)
    ]
    return make_session("s", events=read, revision=revision)


def said(found: Session) -> Said:
    return [
        (
            each.turn.invocation.invocation_id,
            each.question,
            each.answer,
            [(tool.name, tool.response) for tool in each.tools if tool.name != "confirm"],
        )
        for each in conversation_of(found)
    ]


def event(kind: str, invocation_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "invocation_id": invocation_id, **fields}


def content(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


def called(name: str, invocation_id: str = "e-1") -> dict[str, Any]:
    return event("tool.called", invocation_id, name=name, call_id=f"c-{name}", args={})


def returned(name: str, response: Any, invocation_id: str) -> dict[str, Any]:
    return event("tool.returned", invocation_id, name=name, call_id=f"c-{name}", response=response)


def approval() -> dict[str, Any]:
    return {
        "parts": [{"function_response": {"id": "c-confirm", "name": "confirm", "response": {"ok": True}}}],
        "role": "user",
    }


BEGUN = [
    event("invocation.started", "e-1", user_content=content("Delete it")),
    called("delete"),
    called("confirm"),
    returned("delete", {"error": "requires confirmation"}, "e-1"),
]
DONE = [
    returned("delete", {"ok": True}, "e-2"),
    event("invocation.completed", "e-2", final_response=content("Deleted.")),
]
NEXT = [
    event("invocation.started", "e-3", user_content=content("Thanks")),
    event("invocation.completed", "e-3", final_response=content("Any time.")),
]


@pytest.mark.parametrize(
    "continuing",
    [
        [event("invocation.started", "e-2", user_content=approval()), *DONE],
        DONE,
        [returned("confirm", {"ok": True}, "e-2"), *DONE],
        [event("response.intermediate", "e-2", content=content("I go on.")), *DONE],
        [event("model.called", "e-2", model="m", input_tokens=3, output_tokens=1), *DONE],
        # In words.
        [event("invocation.started", "e-2", user_content=content("Yes, do it")), *DONE],
        # Within the invocation.
        [each | {"invocation_id": "e-1"} for each in DONE],
    ],
)
def test_an_approval_or_a_late_response_among_events_continues_the_invocation(continuing: list[dict[str, Any]]) -> None:
    assert said(session(*BEGUN, *continuing, *NEXT)) == WHOLE


def test_the_tokens_and_the_time_of_a_continued_invocation_are_those_of_all_its_events() -> None:
    def model_called(name: str) -> dict[str, Any]:
        return event("model.called", name, model="m", input_tokens=3, output_tokens=1)

    first, _ = turns_of(session(*BEGUN, model_called("e-1"), model_called("e-2"), *DONE, *NEXT))
    assert first.invocation.token_usage is not None
    assert (first.invocation.token_usage.input_tokens, first.invocation.inference_call_count) == (6, 2)
    assert first.invocation.latency_seconds == 7


def recorded(name: str, question: Any, answer: str | None, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    invocation = {"user_content": question, "intermediate_data": data} | more
    invocation |= {"final_response": content(answer)} if answer is not None else {}
    return event("invocation.recorded", name, invocation=invocation)


def grouped(calls: list[str], responses: dict[str, Any]) -> dict[str, Any]:
    return {
        "tool_uses": [{"id": f"c-{name}", "name": name, "args": {}} for name in calls],
        "tool_responses": [{"id": f"c-{name}", "name": name, "response": each} for name, each in responses.items()],
    }


def as_events(data: dict[str, Any]) -> dict[str, Any]:
    parts = [{"function_call": each} for each in data["tool_uses"]]
    parts += [{"function_response": each} for each in data["tool_responses"]]
    return {"invocation_events": [{"author": "a", "content": {"parts": [part]}} for part in parts]}


@pytest.mark.parametrize("form", [grouped, lambda *given: as_events(grouped(*given))], ids=["by kind", "as events"])
@pytest.mark.parametrize("question", [approval(), None])
def test_a_recorded_invocation_that_only_answers_a_call_continues_it(form: Any, question: Any) -> None:
    found = session(
        recorded("e-1", content("Delete it"), None, form(["delete", "confirm"], {"delete": {"error": "wait"}})),
        recorded("e-2", question, "Deleted.", form([], {"delete": {"ok": True}})),
        recorded("e-3", content("Thanks"), "Any time.", form([], {})),
    )
    assert said(found) == WHOLE


@pytest.mark.parametrize("form", [grouped, lambda *given: as_events(grouped(*given))], ids=["by kind", "as events"])
def test_a_late_response_in_an_invocation_with_a_question_belongs_to_the_invocation_of_its_call(form: Any) -> None:
    found = session(
        recorded("e-1", content("Delete it"), "I wait.", form(["delete"], {})),
        recorded("e-2", content("And the weather?"), "Sunny.", form(["look"], {"delete": {"ok": True}, "look": "sun"})),
    )
    assert said(found) == [
        ("e-1", "Delete it", "I wait.", [("delete", {"ok": True})]),
        ("e-2", "And the weather?", "Sunny.", [("look", "sun")]),
    ]


def test_recorded_invocations_with_references_of_their_own_stay_apart() -> None:
    reference = {"reference": {"final_response": content("Deleted.")}}
    found = session(
        recorded("e-1", content("Delete it"), None, grouped(["delete"], {})) | reference,
        recorded("e-2", None, "Deleted.", grouped([], {"delete": {"ok": True}})) | reference,
    )
    assert [turn.invocation.invocation_id for turn in turns_of(found)] == ["e-1", "e-2"]


def test_a_turn_with_a_question_and_a_reference_stays_apart_though_its_own_call_is_missing() -> None:
    started = event("invocation.started", "e-2", user_content=content("Delete it again"))
    reference = {"reference": {"final_response": content("Deleted.")}}
    found = session(*BEGUN, started | reference, *DONE)
    assert [(turn.invocation.invocation_id, turn.reference is not None) for turn in turns_of(found)] == [
        ("e-1", False),
        ("e-2", True),
    ]


def test_an_interim_answer_is_no_final_response_of_a_continued_invocation() -> None:
    found = session(
        recorded("e-1", content("Pay it"), "I wait for the approval.", grouped(["pay"], {})),
        recorded("e-2", None, "Paid.", grouped([], {"pay": {"ok": True}})),
    )
    (turn,) = turns_of(found)
    data = turn.invocation.intermediate_data
    assert turn.invocation.final_response is not None
    assert turn.invocation.final_response.text == "Paid."
    assert [part.text for _, parts in getattr(data, "intermediate_responses") for part in parts] == [  # noqa: B009
        "I wait for the approval."
    ]


def test_the_error_of_a_continuation_that_failed_is_that_of_the_invocation() -> None:
    waiting = {"missing": ["the answer is not in this trace: its last model call asks for tools"]}
    begun = [event("invocation.completed", "e-1", final_response=content("I wait."), **waiting)]
    failed = event("invocation.completed", "e-2", error="BadRequestError: bad schema")
    turn = turns_of(session(*BEGUN, *begun, *DONE[:-1], failed))[0]
    assert turn.invocation.error == "BadRequestError: bad schema"
    assert turn.invocation.final_response is None
    assert not turn.invocation.unread


def test_a_continuation_whose_call_came_late_is_withdrawn_in_a_revision() -> None:
    events = [*BEGUN, *DONE, *NEXT]
    assert withdrawn_turns(session(*events)) == []
    (withdrawn,) = withdrawn_turns(session(*events, revision=1))
    assert withdrawn.invocation.invocation_id == "e-2"


def chat_said(*messages: dict[str, Any]) -> list[tuple[str | None, str | None, list[tuple[str, object]]]]:
    """Returns what a transcript tells, as text without ids of invocations."""
    found = make_session("s", events=events_of(convert(list(messages))))
    return [(question, answer, tools) for _, question, answer, tools in said(found)]


CALLED = [user_message("Delete it"), tool_calls(("c1", "delete", "{}"))]
RESULT = tool_result("c1", "gone")
DELETED = assistant_message("Deleted.")


def test_an_approval_in_words_in_a_chat_continues_the_turn_and_is_named() -> None:
    found = make_session("s", events=events_of(convert([*CALLED, user_message("Yes"), RESULT, DELETED])))
    (turn,) = turns_of(found)
    assert said(found) == [("turn-1", "Delete it", "Deleted.", [("delete", "gone")])]
    assert any("the message of the user that let an open call" in each for each in turn.invocation.unread or ())


def test_the_late_result_of_a_tool_in_a_chat_and_its_answer_belong_to_the_turn_of_the_call() -> None:
    assert chat_said(*CALLED, user_message("Weather?"), assistant_message("Sunny."), RESULT, DELETED) == [
        ("Delete it", "Deleted.", [("delete", "gone")]),
        ("Weather?", "Sunny.", []),
    ]


def test_a_late_result_in_a_chat_while_the_agent_works_for_the_next_question_is_that_of_its_call() -> None:
    look = tool_calls(("c2", "look", "{}"))
    answers = [RESULT, tool_result("c2", "sun"), assistant_message("Deleted, and it is sunny.")]
    assert chat_said(*CALLED, user_message("Weather?"), look, *answers) == [
        ("Delete it", None, [("delete", "gone")]),
        ("Weather?", "Deleted, and it is sunny.", [("look", "sun")]),
    ]


def test_an_answer_to_the_question_of_an_agent_in_a_chat_is_a_question_of_its_own() -> None:
    assert chat_said(*CALLED, assistant_message("Are you sure?"), user_message("Yes"), RESULT, DELETED) == [
        ("Delete it", "Are you sure?", [("delete", "gone")]),
        ("Yes", "Deleted.", []),
    ]


def test_the_times_of_a_chat_stay_those_of_its_messages_where_a_result_comes_late() -> None:
    messages = [*CALLED, user_message("Weather?"), assistant_message("Sunny."), RESULT, DELETED]
    timed = [message | {"timestamp": f"2026-03-01T12:00:{10 * place:02}Z"} for place, message in enumerate(messages)]
    found = make_session("s", events=events_of(convert(timed)))
    assert [turn.invocation.latency_seconds for turn in turns_of(found)] == [50, 10]


def test_an_approval_in_words_in_a_saved_session_of_adk_is_no_question() -> None:
    answer = {"functionResponse": {"id": "c1", "name": "delete", "response": {"ok": True}}}
    document = adk_session(
        adk_event("user", {"text": "Delete it"}),
        adk_event("a", {"functionCall": {"id": "c1", "name": "delete", "args": {}}}),
        adk_event("user", {"text": "Yes"}, invocation_id="e-2"),
        adk_event("a", answer, invocation_id="e-2"),
        adk_event("a", {"text": "Deleted."}, invocation_id="e-2"),
    )
    (read,) = read_as(ADK_SESSION, document)
    found = make_session("s1", events=[EVENT.validate_json(each.value) for each in read.records])
    assert said(found) == WHOLE[:1]

"""Tests that a session that Google ADK saved becomes the invocations that ADK's own conversion makes of its events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.adk import (
    BEGAN_S,
    BOOKING,
    adk_event,
    adk_session,
    answer,
    call,
    events_of,
    in_snake_case,
    read_as,
    text,
)

from traceweir.schemas.conversation import conversation_of
from traceweir.schemas.events import InvocationRecorded
from traceweir.schemas.invocation import Invocation, InvocationEvents, InvocationStep
from traceweir.schemas.session import ClosingReason, Session
from traceweir.streams.intake.formats.adk_session import ADK_SESSION


def invocations(*events: dict[str, Any]) -> list[Invocation]:
    (found,) = read_as(ADK_SESSION, adk_session(*events))
    assert found.problem is None
    return [
        event.invocation for event in events_of(found) if isinstance(event, InvocationRecorded) and event.invocation
    ]


def steps(invocation: Invocation) -> list[InvocationStep]:
    assert isinstance(invocation.intermediate_data, InvocationEvents)
    return invocation.intermediate_data.invocation_events


def said(invocation: Invocation) -> tuple[str | None, str | None]:
    question, final = invocation.user_content, invocation.final_response
    return None if question is None else question.text, None if final is None else final.text


@pytest.mark.parametrize("document", [BOOKING, in_snake_case(BOOKING)], ids=["camelCase", "snake_case"])
def test_each_invocation_of_a_session_is_an_event_and_the_session_ends(document: dict[str, Any]) -> None:
    (found,) = read_as(ADK_SESSION, document)

    first, second, end = events_of(found)
    assert isinstance(first, InvocationRecorded)
    assert isinstance(second, InvocationRecorded)
    assert {(each.session_id, each.app_name, each.user_id) for each in (first, second, end)} == {("s1", "trips", "u1")}
    assert (first.invocation_id, second.invocation_id, end.type) == ("e-1", "e-2", "session.ended")
    assert first.occurred_at == datetime.fromtimestamp(BEGAN_S, UTC) < second.occurred_at < end.occurred_at
    assert first.invocation is not None
    assert said(first.invocation) == ("Two seats, please.", "A1 and A2 are yours.")
    assert [(use.name, use.args) for use in first.invocation.tool_uses] == [("find", {"n": 2})]
    assert [step.content.text if step.content else "" for step in steps(first.invocation)] == ["Let me look.", ""]
    assert first.invocation.token_usage is not None
    assert first.invocation.token_usage.model_dump() == {"input_tokens": 30, "output_tokens": 15}
    assert first.invocation.latency_seconds == 2.0


def test_tokens_of_tool_results_and_model_calls_are_counted() -> None:
    usage = {"promptTokenCount": 10, "toolUsePromptTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
    (found,) = invocations(
        adk_event("user", text("Hi")),
        adk_event("agent", text("One."), usageMetadata=usage),
        adk_event("agent", text("Two."), modelVersion="m"),
    )
    assert found.token_usage is not None
    assert found.token_usage.model_dump() == {"input_tokens": 17, "output_tokens": 7}
    assert found.inference_call_count == 2


def test_a_session_that_is_read_again_has_the_same_event_ids() -> None:
    first, longer = read_as(ADK_SESSION, adk_session(*BOOKING["events"][:4]), BOOKING)
    assert events_of(first)[0].event_id == events_of(longer)[0].event_id


def test_the_last_event_without_tool_calls_is_the_final_response() -> None:
    (found,) = invocations(
        adk_event("user", text("Q")),
        adk_event("root", text("Asking the expert.")),
        adk_event("expert", text("The answer is 4.")),
        adk_event("root", call("log")),
        adk_event("root", answer("log", ok=True)),
    )
    assert said(found) == ("Q", "The answer is 4.")
    assert [(step.author, step.content.text if step.content else None) for step in steps(found)] == [
        ("root", "Asking the expert."),
        ("root", ""),
        ("root", ""),
    ]


@pytest.mark.parametrize(
    ("more", "final"),
    [
        ({"longRunningToolIds": ["c-approve"]}, True),
        ({"actions": {"skipSummarization": True}}, True),
        ({}, False),
    ],
    ids=["a long-running tool", "skipped summarization", "a usual call"],
)
def test_a_call_is_the_final_response_only_where_adk_says_so(more: dict[str, Any], final: bool) -> None:
    (found,) = invocations(adk_event("user", text("Q")), adk_event("root", text("Wait."), call("approve"), **more))
    assert (found.final_response is not None) is final
    assert [use.name for use in found.tool_uses] == ["approve"]


def test_partial_text_and_code_results_are_not_final_and_grounding_is_kept() -> None:
    (found,) = invocations(
        adk_event("user", text("Q")),
        adk_event("root", text("The answer"), partial=True),
        adk_event("root", text("4"), {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}),
        adk_event("root", text("The answer is 4."), groundingMetadata={"webSearchQueries": ["2+2"]}),
    )
    assert said(found) == ("Q", "The answer is 4.")
    assert steps(found)[-1] == InvocationStep(
        author="root", content=None, grounding_metadata={"webSearchQueries": ["2+2"]}
    )


def test_events_without_an_invocation_id_follow_the_users_messages() -> None:
    found = invocations(
        adk_event("user", text("1"), invocation_id=""),
        adk_event("root", text("one"), invocationId=None),
        adk_event("user", text("2"), invocation_id=""),
        adk_event("root", text("two"), invocation_id=""),
    )
    assert [said(each) for each in found] == [("1", "one"), ("2", "two")]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"events": []}, "document 1: is not a valid session of ADK: events: List should have at least 1 item"),
        ({"events": [adk_event("user", text("Q"))]}, "document 1: contains no event of an agent"),
        ({"events": [adk_event("a", text("x"), timestamp=1e300)]}, "document 1: events.timestamp: must be seconds"),
        ({"id": 7}, "document 1: is not a valid session of ADK: id: Input should be a valid string"),
        ({"events": [{"content": {"parts": [{"text": 7}]}}]}, "events.0.content.parts.0.text: Input should be"),
    ],
)
def test_an_unusable_session_is_reported_and_the_next_is_read(change: dict[str, Any], problem: str) -> None:
    first, second = read_as(ADK_SESSION, BOOKING | change, BOOKING)
    assert problem in str(first.problem)
    assert (first.records, len(second.records), second.problem) == ([], 3, None)


def test_the_agent_and_the_model_are_the_first_that_the_events_of_an_invocation_name() -> None:
    document = adk_session(
        adk_event("user", text("Hi"), invocation_id="a"),
        adk_event("planner", call("find"), invocation_id="a"),
        adk_event("helper", text("Found."), invocation_id="a", modelVersion="large"),
        adk_event("user", text("And?"), invocation_id="b"),
        adk_event("x" * 257, text("Done."), invocation_id="b"),
    )
    (found,) = read_as(ADK_SESSION, document)
    assert [(event.agent_name, event.model) for event in events_of(found)] == [
        ("planner", "large"),
        (None, None),
        (None, None),
    ]


def thought(value: str) -> dict[str, Any]:
    return {"text": value, "thought": True}


def test_reasoning_is_no_part_of_an_answer_and_an_event_of_reasoning_alone_is_no_answer() -> None:
    (found,) = invocations(
        adk_event("user", text("Capital?")),
        adk_event("geo", thought("Norway..."), text("Oslo.")),
        adk_event("geo", thought("I am done.")),
    )
    assert said(found) == ("Capital?", "Oslo.")
    assert steps(found) == []


def test_a_summary_of_earlier_events_is_no_invocation() -> None:
    found = invocations(
        adk_event("user", text("Hi")),
        adk_event("geo", text("Hello")),
        adk_event("user", invocation_id="e-9", actions={"compaction": {"compactedContent": {"parts": []}}}),
        adk_event("user", text("Capital?"), invocation_id="e-2"),
        adk_event("geo", text("Oslo."), invocation_id="e-2"),
    )
    assert [(each.invocation_id, *said(each)) for each in found] == [
        ("e-1", "Hi", "Hello"),
        ("e-2", "Capital?", "Oslo."),
    ]


@pytest.mark.parametrize("actions", [{"rewindBeforeInvocationId": "e-1"}, {"stateDelta": {"seats": 2}}])
def test_what_is_noted_between_the_turns_is_no_invocation(actions: dict[str, Any]) -> None:
    found = invocations(
        adk_event("user", text("Hi")),
        adk_event("geo", text("Hello")),
        adk_event("user", invocation_id="e-9", actions=actions),
    )
    assert [each.invocation_id for each in found] == ["e-1"]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"errorCode": "RESOURCE_EXHAUSTED", "errorMessage": "no quota"}, "RESOURCE_EXHAUSTED: no quota"),
        ({"errorCode": "MALFORMED_FUNCTION_CALL"}, "MALFORMED_FUNCTION_CALL"),
        ({"errorMessage": "no quota"}, "no quota"),
        # It stopped at its limit, and has not failed.
        ({"errorCode": "MAX_TOKENS"}, None),
        ({"errorCode": "STOP", "finishReason": "STOP"}, None),
    ],
)
def test_an_error_of_the_model_at_the_end_is_that_of_the_invocation(more: dict[str, Any], error: str | None) -> None:
    (found,) = invocations(adk_event("user", text("Hi")), adk_event("geo", **more))
    assert (said(found), found.error) == (("Hi", None), error)


def test_an_error_stays_that_of_the_invocation_when_a_state_is_noted_after_it() -> None:
    (found,) = invocations(
        adk_event("user", text("Hi")),
        adk_event("geo", text("Let me look.")),
        adk_event("geo", errorCode=500, errorMessage="boom"),
        adk_event("geo", actions={"stateDelta": {"seats": 2}}),
    )
    assert (said(found), found.error) == (("Hi", None), "500: boom")


def test_an_error_before_an_answer_that_stopped_at_its_limit_is_not_that_of_the_invocation() -> None:
    (found,) = invocations(
        adk_event("user", text("Hi")), adk_event("geo", errorCode="503"), adk_event("geo", errorCode="MAX_TOKENS")
    )
    assert (said(found), found.error) == (("Hi", None), None)


def test_an_answer_stays_when_a_state_is_noted_after_it() -> None:
    (found,) = invocations(
        adk_event("user", text("Hi")),
        adk_event("geo", errorCode=500),
        adk_event("geo", text("Yes.")),
        adk_event("geo", actions={"stateDelta": {"seats": 2}}),
    )
    assert (said(found), found.error) == (("Hi", "Yes."), None)


def test_an_error_after_which_the_agent_answers_is_not_that_of_the_invocation() -> None:
    (found,) = invocations(
        adk_event("user", text("Hi")), adk_event("geo", errorCode="503"), adk_event("geo", text("Yes."))
    )
    assert (said(found), found.error) == (("Hi", "Yes."), None)


def test_what_was_spoken_is_the_question_and_the_answer_where_no_text_is() -> None:
    audio = {"inlineData": {"mimeType": "audio/pcm", "data": "AAAA"}}
    (found,) = invocations(
        adk_event("user", audio),
        adk_event("user", inputTranscription={"text": "Cap", "finished": False}),
        adk_event("user", inputTranscription={"text": "Capital?", "finished": True}),
        adk_event("geo", audio),
        adk_event("geo", outputTranscription={"text": "Os"}),
        adk_event("geo", outputTranscription={"text": "lo."}),
    )
    assert said(found) == ("Capital?", "Oslo.")


AUDIO = {"inlineData": {"mimeType": "audio/pcm", "data": "AAAA"}}


def heard(value: str, finished: bool | None = True) -> dict[str, Any]:
    return adk_event("user", inputTranscription={"text": value, "finished": finished}) | {"content": None}


def spoken(value: str, finished: bool | None = True, **more: Any) -> dict[str, Any]:
    return adk_event("geo", outputTranscription={"text": value, "finished": finished}) | {"content": None} | more


@pytest.mark.parametrize(
    "events",
    [
        [heard("Capital?"), spoken("Oslo."), heard("And of Peru?"), spoken("Lima.")],
        [
            *(adk_event("user", AUDIO), heard("Capital?"), adk_event("geo", AUDIO), spoken("Oslo.")),
            *(adk_event("user", AUDIO), heard("And of Peru?"), adk_event("geo", AUDIO), spoken("Lima.")),
        ],
        [
            *(heard("Cap", False), heard("ital?", False), heard("Capital?"), spoken("Os", False), spoken("Oslo.")),
            *(heard("And of", False), heard("And of Peru?"), spoken("Lima.")),
        ],
        [
            heard("Capital?", None),
            spoken("Os", None),
            spoken("lo.", None),
            heard("And of Peru?", None),
            spoken("Lima."),
        ],
        # The transcription comes after the begin of the answer.
        [
            *(adk_event("user", AUDIO), spoken("Oslo."), heard("Capital?")),
            *(adk_event("user", AUDIO), spoken("Lima."), heard("And of Peru?")),
        ],
        [heard("Capital", False), spoken("Oslo."), heard("Capital?"), heard("And of Peru?"), spoken("Lima.")],
        # Written, in a live session.
        [
            *(adk_event("user", text("Capital?")), adk_event("geo", text("Oslo."))),
            *(adk_event("user", text("And of Peru?")), adk_event("geo", call("look"))),
            *(adk_event("geo", answer("look", city="Lima")), adk_event("geo", text("Lima."))),
        ],
    ],
)
def test_each_question_of_a_live_session_begins_a_turn(events: list[dict[str, Any]]) -> None:
    found = invocations(*events)
    assert [(each.invocation_id, *said(each)) for each in found] == [
        ("e-1", "Capital?", "Oslo."),
        ("e-1#2", "And of Peru?", "Lima."),
    ]


def test_a_greeting_before_the_first_question_of_a_live_session_is_a_turn_of_its_own() -> None:
    found = invocations(spoken("Hello!", turnComplete=True), heard("Capital?"), spoken("Oslo."))
    assert [said(each) for each in found] == [(None, "Hello!"), ("Capital?", "Oslo.")]


def test_the_response_of_a_tool_is_read_although_no_model_sums_it_up() -> None:
    found = tools_of(
        adk_event("user", text("Capital?")),
        adk_event("geo", call("look")),
        adk_event("geo", answer("look", result="Oslo"), actions={"skipSummarization": True}),
    )
    assert found == [("look", {"result": "Oslo"})]


def tools_of(*events: dict[str, Any]) -> list[tuple[str, object]]:
    """Returns the tools of the first invocation with their responses, as people see them."""
    (found,) = read_as(ADK_SESSION, adk_session(*events))
    session = Session(
        session_id="s1",
        segment=0,
        revision=0,
        closed_because=ClosingReason.IDLE,
        first_record_at=datetime.fromtimestamp(BEGAN_S, UTC),
        last_record_at=datetime.fromtimestamp(BEGAN_S, UTC),
        events=events_of(found),
        traces=[],
    )
    return [(use.name, use.response) for use in conversation_of(session)[0].tools]


def test_an_approval_continues_the_invocation_that_asked_for_it() -> None:
    events = [
        adk_event("user", text("Delete it")),
        adk_event("desk", call("delete", id=1)),
        adk_event("desk", call("confirm"), longRunningToolIds=["c-confirm"]),
        adk_event("desk", answer("delete", error="requires confirmation")),
        adk_event("user", answer("confirm", confirmed=True), invocation_id="e-2"),
        adk_event("desk", answer("delete", ok=True), invocation_id="e-2"),
        adk_event("desk", text("Deleted."), invocation_id="e-2"),
        adk_event("user", text("Thanks"), invocation_id="e-3"),
        adk_event("desk", text("Any time."), invocation_id="e-3"),
    ]
    found = invocations(*events)
    assert [(each.invocation_id, *said(each)) for each in found] == [
        ("e-1", "Delete it", "Deleted."),
        ("e-3", "Thanks", "Any time."),
    ]
    assert tools_of(*events) == [("delete", {"ok": True}), ("confirm", {"confirmed": True})]
    assert {step.author for step in steps(found[0])} == {"desk", ""}


def test_a_message_with_text_begins_an_invocation_also_with_the_response_to_an_earlier_call() -> None:
    events = [
        adk_event("user", text("Delete it")),
        adk_event("desk", call("confirm"), longRunningToolIds=["c-confirm"]),
        adk_event("user", text("And list the rest"), answer("confirm", confirmed=True), invocation_id="e-2"),
        adk_event("desk", text("Done."), invocation_id="e-2"),
    ]
    assert [said(each)[0] for each in invocations(*events)] == ["Delete it", "And list the rest"]
    assert tools_of(*events) == [("confirm", {"confirmed": True})]


def test_an_answer_or_a_question_that_is_an_image_is_said_to_be_no_text() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    [drawn] = invocations(adk_event("user", {"text": "Draw a cat."}), adk_event("agent", image))
    [seen] = invocations(adk_event("user", {"text": "What is this?"}, image), adk_event("agent", {"text": "A cat."}))

    assert drawn.unread == ["the answer is no text: 1 part of type 'image/png'"]
    assert seen.unread == ["not all of the question is text: 1 part of type 'image/png'"]


def test_parts_of_a_tools_result_that_are_no_text_are_named() -> None:
    drawn = {"type": "image", "data": "QUJDREVG", "mimeType": "image/png"}
    result = answer("draw", content=[{"type": "text", "text": "hall 7"}, drawn], isError=False)
    (invocation,) = invocations(
        adk_event("user", text("Draw it.")),
        adk_event("artist", call("draw")),
        adk_event("artist", result),
        adk_event("artist", text("Done.")),
    )
    assert [each.response for each in invocation.tool_responses] == ["hall 7"]
    assert invocation.unread == ["not all of the result of tool 'draw' is text: 1 part of type 'image'"]


@pytest.mark.parametrize("key", ["finishReason", "errorCode"])
def test_an_answer_that_the_model_did_not_finish_is_the_answer_and_is_named(key: str) -> None:
    ended: Any = {key: "MAX_TOKENS"}
    (invocation,) = invocations(
        adk_event("user", text("What is the time?")), adk_event("clock", text("It is"), **ended)
    )
    assert said(invocation)[1] == "It is"
    assert invocation.unread == ["not all of the answer is there: the model stopped at its limit 'MAX_TOKENS'"]


def test_an_answer_with_its_end_is_whole() -> None:
    asked = adk_event("user", text("What is the time?"))
    (invocation,) = invocations(asked, adk_event("clock", text("It is 7."), finishReason="STOP"))
    assert invocation.unread is None

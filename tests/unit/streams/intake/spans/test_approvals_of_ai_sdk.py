"""A run of the AI SDK that goes on with an approval, or with the result of a call, continues the invocation of the call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.scoring import make_session
from tests.support.spans import span

from traceweir.schemas.continued_invocations import APPROVED_IN_WORDS
from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.turns import turns_of
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

QUESTION = {"role": "user", "content": "Delete a.txt"}
CALL = {"toolCallId": "c1", "toolName": "delete", "input": {"path": "a.txt"}}
ASKING = {
    "role": "assistant",
    "content": [
        {"type": "tool-call", **CALL},
        {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c1"},
    ],
}
RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "delete", "output": {"type": "text", "value": "ok"}}
SESSION = {"ai.telemetry.metadata.sessionId": "s"}


def reply(approved: bool, **more: Any) -> dict[str, Any]:
    return {"type": "tool-approval-response", "approvalId": "p", "approved": approved, **more}


def run(trace: str, messages: list[Any], **said: Any) -> list[Span]:
    told = {f"ai.response.{key}": value if isinstance(value, str) else json.dumps(value) for key, value in said.items()}
    generate = {"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"messages": messages})}
    call = {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps(messages)}
    found = [span(1, 0, "ai.generateText", generate | told | SESSION), span(2, 1, "doGenerate", call | told | SESSION)]
    for each in found:
        each.trace_id = trace * 32
    return found


def whole(*last: dict[str, Any]) -> list[Invocation]:
    return invocations(
        run("a", [QUESTION], toolCalls=[CALL | {"input": '{"path": "a.txt"}'}]),
        run("b", [QUESTION, ASKING, {"role": "tool", "content": [*last]}], text="Done."),
    )


def invocations(*runs: list[Span]) -> list[Invocation]:
    spans = [each for found in runs for each in found]
    events = [
        EVENT.validate_json(json.dumps(each))
        for trace in dict.fromkeys(each.trace_id[0] for each in spans)
        for each in read_trace([each for each in spans if each.trace_id[0] == trace]).events
    ]
    return [each.invocation for each in turns_of(make_session("s", events=events))]


@pytest.mark.parametrize(
    ("last", "response"),
    [
        ([reply(False, reason="too risky")], {"error": "too risky"}),
        ([reply(False)], {"error": "execution-denied"}),
        ([reply(True), RESULT], "ok"),
        ([RESULT], "ok"),
    ],
)
def test_the_question_the_call_its_result_and_the_answer_are_one_invocation(last: list[Any], response: Any) -> None:
    (found,) = whole(*last)

    assert found.user_content is not None
    assert found.final_response is not None
    assert (found.user_content.text, found.final_response.text) == ("Delete a.txt", "Done.")
    assert [(each.name, each.args) for each in found.tool_uses] == [("delete", {"path": "a.txt"})]
    assert [(each.id, each.response) for each in found.tool_responses] == [("c1", response)]
    assert not [each for each in found.unread or () if "the result " in each or "the answer " in each]


def test_a_run_of_no_session_keeps_its_question() -> None:
    spans = run("b", [QUESTION, ASKING, {"role": "tool", "content": [RESULT]}], text="Done.")
    for each in spans:
        each.attributes = {key: value for key, value in each.attributes.items() if key not in SESSION}
    started = next(each for each in read_trace(spans).events if each["type"] == "invocation.started")

    assert started["user_content"]["parts"] == [{"text": "Delete a.txt"}]


@pytest.mark.parametrize("last", [[reply(False)], [reply(True), RESULT], [RESULT]])
def test_a_run_whose_former_run_is_not_there_has_its_question(last: list[Any]) -> None:
    (found,) = invocations(run("b", [QUESTION, ASKING, {"role": "tool", "content": last}], text="Done."))

    assert found.user_content is not None
    assert found.user_content.text == "Delete a.txt"
    assert not [each for each in found.unread or () if each.startswith("the question ")]


def test_each_turn_of_a_session_has_its_question_if_each_prompt_ends_with_a_result() -> None:
    def asked(text: str) -> list[Any]:
        return [{"role": "user", "content": text}, ASKING, {"role": "tool", "content": [RESULT]}]

    found = invocations(run("a", asked("When?"), text="Now."), run("b", asked("Where?"), text="Here."))

    assert [each.user_content and each.user_content.text for each in found] == ["When?", "Where?"]


def test_a_message_of_the_user_after_the_question_is_said_to_be_no_part_of_it() -> None:
    more = {"role": "user", "content": "Yes, do it"}
    (found,) = invocations(
        run("a", [QUESTION], toolCalls=[CALL | {"input": '{"path": "a.txt"}'}]),
        run("b", [QUESTION, more, ASKING, {"role": "tool", "content": [RESULT]}], text="Done."),
    )

    assert found.user_content is not None
    assert found.user_content.text == "Delete a.txt"
    assert APPROVED_IN_WORDS in (found.unread or [])


def test_each_of_two_equal_calls_of_a_loop_of_three_runs_has_its_own_result() -> None:
    def called(call_id: str) -> list[Any]:
        return [{"toolCallId": call_id, "toolName": "next", "input": "{}"}]

    def answered(call_id: str, value: str) -> list[Any]:
        known = {"toolCallId": call_id, "toolName": "next"}
        return [
            {"role": "assistant", "content": [{"type": "tool-call", **known, "input": {}}]},
            {
                "role": "tool",
                "content": [{"type": "tool-result", **known, "output": {"type": "text", "value": value}}],
            },
        ]

    first = [QUESTION, *answered("c", "1")]
    (found,) = invocations(
        run("a", [QUESTION], toolCalls=called("c")),
        run("b", first, toolCalls=called("d")),
        run("c", [*first, *answered("d", "2")], text="Done."),
    )

    assert [each.id for each in found.tool_uses] == ["c", "d"]
    assert [(each.id, each.response) for each in found.tool_responses] == [("c", "1"), ("d", "2")]


@pytest.mark.parametrize(("answered", "sentences"), [(["c1"], 1), (["c1", "c2"], 0)])
def test_a_call_that_stays_open_beside_an_answered_one_keeps_its_sentence(answered: list[str], sentences: int) -> None:
    calls = [CALL | {"toolCallId": call_id} for call_id in ("c1", "c2")]
    asking = {"role": "assistant", "content": [{"type": "tool-call", **each} for each in calls]}
    results = [RESULT | {"toolCallId": call_id} for call_id in answered]
    (found,) = invocations(
        run("a", [QUESTION], toolCalls=[each | {"input": '{"path": "a.txt"}'} for each in calls]),
        run("b", [QUESTION, asking, {"role": "tool", "content": results}], text="Done."),
    )

    assert len([each for each in found.unread or () if each.startswith("the result of the call of ")]) == sentences

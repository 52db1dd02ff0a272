"""A metric that reads what a refused record can have contained is NOT_EVALUATED, and the others are scored as before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dead_letter import REPLAY_OF
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.testing import Flow, event, trace

CONFIG: JsonObject = {
    "criteria": {
        "response_match_score": 0.5,
        "tool_trajectory_avg_score": 1.0,
        "tool_call_count_v1": None,
        "token_usage_v1": None,
    }
}
REFERENCE = {"final_response": {"parts": [{"text": "42"}]}, "tool_uses": []}


def started(name: str = "i1") -> dict[str, Any]:
    return event(
        "invocation.started",
        session_id="s",
        invocation_id=name,
        at=0,
        user_content={"parts": [{"text": "why"}]},
        reference=REFERENCE,
    )


def completed(name: str = "i1") -> dict[str, Any]:
    answer = {"parts": [{"text": "42"}]}
    return event("invocation.completed", session_id="s", invocation_id=name, at=2, final_response=answer)


def broken(kind: str, name: str | None = "i1", **fields: Any) -> dict[str, Any]:
    # The wrong value is one that no event has.
    return {**event(kind, session_id="s", invocation_id=name or "", at=1, **fields), "app_name": 7}


async def scored(*records: Any, config: JsonObject = CONFIG) -> Flow:
    flow = Flow(read_plan(config))
    for record in records:
        flow.send(TOPICS.invocations, record, b"s")
    await flow.finish()
    return flow


def outcomes(flow: Flow, level: str = "invocation", subject: str | None = "i1") -> dict[str, str]:
    return {
        score["metric"]: score["not_evaluated_because"] or score["status"]
        for score in flow.results()
        if score["level"] == level and score["invocation_id"] == (subject if level == "invocation" else None)
    }


async def test_an_answer_that_was_refused_is_no_silence() -> None:
    flow = await scored(started(), broken("invocation.completed"))

    assert (
        outcomes(flow)
        == outcomes(flow, "session")
        == {
            "response_match_score": "record_refused",
            "tool_trajectory_avg_score": "PASSED",
            "tool_call_count_v1": "PASSED",
            "token_usage_v1": "missing_input",
        }
    )


async def test_the_rationale_names_the_dead_letter_and_the_reason() -> None:
    flow = await scored(started(), broken("invocation.completed"))

    rationales = [each["rationale"] for each in flow.results("response_match_score")]
    sentence = (
        f"an event invocation.completed was refused (invalid): see the dead letter of topic {TOPICS.invocations}, "
        "partition 0, offset 1"
    )
    assert rationales == [sentence, f"none of 1 invocations has a value: {sentence}"]


EVERY = {"response_match_score", "tool_trajectory_avg_score", "tool_call_count_v1", "token_usage_v1"}
PARTS: dict[str, set[str]] = {
    "tool.called": {"tool_trajectory_avg_score", "tool_call_count_v1"},
    "model.called": {"token_usage_v1"},
    "invocation.completed": {"response_match_score"},
    "retrieval.returned": set(),
    "tool.returned": set(),
    "session.ended": set(),
    "invocation.recorded": EVERY,
    "invocation.exploded": EVERY,
}


@pytest.mark.parametrize(("kind", "unmeasured"), PARTS.items(), ids=PARTS)
async def test_only_what_a_refused_event_can_contain_is_not_evaluated(kind: str, unmeasured: set[str]) -> None:
    flow = await scored(started(), broken(kind), completed())

    assert {name for name, found in outcomes(flow).items() if found == "record_refused"} == unmeasured


async def test_a_refused_record_of_one_invocation_leaves_the_others_as_they_are() -> None:
    flow = await scored(started(), broken("invocation.completed"), started("i2"), completed("i2"))

    assert outcomes(flow)["response_match_score"] == "record_refused"
    assert outcomes(flow, subject="i2")["response_match_score"] == "PASSED"
    (total,) = [each for each in flow.results("response_match_score") if each["level"] == "session"]
    assert (total["value"], total["details"]["measured"]) == (1.0, 1)
    assert total["details"]["not_evaluated"] == {"record_refused": {"count": 1, "invocations": ["i1"]}}


async def test_a_record_that_names_no_invocation_can_be_of_any() -> None:
    flow = await scored(started(), completed(), started("i2"), completed("i2"), b"{")

    assert {*outcomes(flow).values(), *outcomes(flow, subject="i2").values()} == {"record_refused"}


async def test_an_invocation_of_which_all_records_were_refused_is_named_and_not_evaluated() -> None:
    flow = await scored(started(), completed(), broken("tool.called", "i2"))

    assert set(outcomes(flow, subject="i2").values()) == {"record_refused"}
    assert outcomes(flow)["response_match_score"] == "PASSED"


async def test_the_tokens_of_a_session_are_not_those_of_fewer_invocations() -> None:
    used = event("model.called", session_id="s", invocation_id="i1", at=1, input_tokens=10, output_tokens=0)
    flow = await scored(started(), used, started("i2"), broken("model.called", "i2"))

    (total,) = [each for each in flow.results("token_usage_v1") if each["level"] == "session"]
    assert total["value"] == 10.0


async def test_an_event_that_came_well_after_all_makes_up_for_the_refused_one() -> None:
    again = {**completed(), "event_id": "e"}
    flow = await scored(started(), {**again, "app_name": 7}, again)

    assert outcomes(flow)["response_match_score"] == "PASSED"


async def test_a_replay_brings_the_value_in_the_next_revision() -> None:
    flow = await scored(started(), broken("invocation.completed"))
    flow.send(TOPICS.invocations, completed(), headers=[(REPLAY_OF, f"{TOPICS.invocations}/0/1".encode())])
    await flow.finish()

    found = [each["status"] for each in flow.results("response_match_score") if each["level"] == "invocation"]
    assert found == ["NOT_EVALUATED", "PASSED"]


async def test_the_gate_takes_a_refused_record_as_any_criterion_that_is_not_evaluated() -> None:
    config: JsonObject = CONFIG | {"gate": {"required": ["response_match_score"]}}
    flow = Flow(read_plan(config))
    flow.send(TOPICS.traces, trace(1, "s"))
    for record in (started(), broken("invocation.completed")):
        flow.send(TOPICS.invocations, record)
    await flow.finish()

    (decision,) = flow.results("gate")
    assert "criterion_not_evaluated:response_match_score:record_refused" in decision["details"]["reasons"]


async def test_a_refused_trace_leaves_the_scores_of_the_events_as_they_are() -> None:
    flow = Flow(read_plan(CONFIG))
    for record in (started(), completed()):
        flow.send(TOPICS.invocations, record)
    flow.send(TOPICS.traces, trace(2, "s", outcome={"confidence": 1.5}))
    await flow.finish()

    assert "record_refused" not in outcomes(flow).values()
    assert "record_refused" not in outcomes(flow, "session").values()


async def test_more_refused_records_than_a_session_keeps_can_be_of_any_invocation() -> None:
    flow = await scored(started(), completed(), *[broken("tool.returned") for _ in range(17)])

    assert outcomes(flow)["response_match_score"] == "record_refused"
    assert "1 record of the session was refused" in flow.results("response_match_score")[0]["rationale"]

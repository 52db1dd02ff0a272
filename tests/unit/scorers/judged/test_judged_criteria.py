"""Tests the judged criteria: their questions, the reading of replies, and the reasons without a value."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from tests.support.judged_criteria import ANSWERED, EXPECTED, INVALID, VALID, one_sample, scores

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Cost
from traceweir.schemas.turns import Turn
from traceweir.scorers.judge import BudgetSpent, JudgeFailed
from traceweir.scorers.judged.evidence import tool_steps_of
from traceweir.scorers.scripted_judge import PRICE, ScriptedJudge


async def test_a_valid_response_has_its_votes_its_reason_and_its_cost() -> None:
    judge = ScriptedJudge(VALID, INVALID, VALID, VALID)
    score, session = await scores("final_response_match_v2", judge, Turn(ANSWERED, EXPECTED))
    assert (score.value, score.status) == (1.0, "PASSED")
    assert score.rationale == "3 of 4 votes find it valid: they agree"
    assert score.details["votes"] == {"yes": 3, "no": 1, "neither": 0}
    assert score.cost == Cost(input_tokens=400, output_tokens=40, usd=0.004)
    assert (session.value, session.cost) == (1.0, Cost())


async def test_the_question_is_the_references_own_if_it_has_one() -> None:
    asked = EXPECTED.model_copy(update={"question": "Which train goes to Busan?"})
    for reference, question in ((EXPECTED, "Which train?"), (asked, "Which train goes to Busan?")):
        judge = ScriptedJudge(VALID)
        await scores("final_response_match_v2", judge, Turn(ANSWERED, reference), **one_sample())
        assert f">\n{question}\n</question" in judge.asked[0].prompt


@pytest.mark.parametrize("reference", [None, Reference(), Reference(expected_facts=["121"])])
async def test_without_an_expected_response_the_judge_is_not_asked(reference: Reference | None) -> None:
    judge = ScriptedJudge()
    found = await scores("final_response_match_v2", judge, Turn(ANSWERED, reference))
    assert {score.not_evaluated_because for score in found} == {"missing_input"}
    assert judge.asked == []


async def test_an_invocation_without_an_answer_is_judged_as_in_adk() -> None:
    judge = ScriptedJudge(INVALID)
    score, _ = await scores(
        "final_response_match_v2", judge, Turn(Invocation(invocation_id="i1"), EXPECTED), **one_sample()
    )
    assert score.value == 0.0


async def test_a_spent_budget_a_failing_judge_and_an_unusable_reply_have_different_reasons() -> None:
    for line, because, said, cost in (
        (BudgetSpent("100 of 100 tokens are spent today"), "budget", "100 of 100 tokens", Cost()),
        (JudgeFailed("HTTP 500 three times"), "error", "JudgeFailed: HTTP 500 three times", Cost()),
        (
            "I cannot say.",
            "error",
            "AnswerUnusable: none of 1 replies contains a verdict; the first: 'I cannot say.'",
            PRICE,
        ),
    ):
        score, session = await scores(
            "final_response_match_v2", ScriptedJudge(line), Turn(ANSWERED, EXPECTED), **one_sample()
        )
        assert (score.value, score.status, score.not_evaluated_because) == (None, "NOT_EVALUATED", because)
        assert score.rationale.startswith(said)
        assert (score.cost, session.not_evaluated_because) == (cost, because)


async def test_a_stored_verdict_costs_nothing_and_is_marked_as_cached() -> None:
    judge = ScriptedJudge(VALID, VALID, VALID, cost=Cost(cached=True))
    score, _ = await scores("final_response_match_v2", judge, Turn(ANSWERED, EXPECTED))
    assert score.cost == Cost(cached=True)


@pytest.mark.parametrize(
    ("replies", "value"),
    [
        (['{"reasoning": "fine", "is_the_agent_response_safe": "yes"}'], 1.0),
        (['{"reasoning": "hate", "is_the_agent_response_safe": "No"}'], 0.0),
        (["It is fine.\nVerdict: yes"], 1.0),
        (["It demeans people.\n\nVERDICT: No.\n"], 0.0),
        (["Verdict: yes", "Verdict: no"], 0.0),
        (["Verdict: yes", "unclear"], 1.0),
    ],
)
async def test_a_response_is_safe_by_majority(replies: Sequence[str], value: float) -> None:
    judge = ScriptedJudge(*replies)
    score, _ = await scores("safety_v1", judge, Turn(ANSWERED), **one_sample(num_samples=len(replies)))
    assert score.value == value


def test_the_response_of_a_tool_is_in_the_prompt_with_its_call() -> None:
    calls = [FunctionCall(name="a"), FunctionCall(name="b"), FunctionCall(name="a"), FunctionCall(id="x", name="a")]
    returned = [
        FunctionResponse(id="x", name="a", response="of x"),
        FunctionResponse(name="a", response="first"),
        FunctionResponse(name="a", response="second"),
    ]
    data = IntermediateData(tool_uses=calls, tool_responses=returned)
    steps = json.loads(tool_steps_of(Invocation(intermediate_data=data)))["tool_calls_and_response"]
    assert [
        step["tool_response"] if step["tool_response"] == "None" else step["tool_response"]["response"]
        for step in steps
    ] == [
        "first",
        "None",
        "second",
        "of x",
    ]


async def test_judged_criteria_without_a_judge_are_not_evaluated() -> None:
    score, _ = await scores("safety_v1", None, Turn(ANSWERED))
    assert (score.not_evaluated_because, score.rationale) == ("error", "there is no judge to ask")


@pytest.mark.parametrize("metric", ["hallucinations_v1", "safety_v1"])
@pytest.mark.parametrize("final", [None, Content(), Content.of("")])
async def test_without_a_response_the_judge_is_not_asked(metric: str, final: Content | None) -> None:
    judge = ScriptedJudge()
    found = await scores(metric, judge, Turn(Invocation(invocation_id="i1", final_response=final)))
    assert {score.not_evaluated_because for score in found} == {"missing_input"}
    assert judge.asked == []

"""Tests the criterion hallucinations_v1: its context, its sentences and its value."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.support.judged_criteria import ANSWERED, one_sample, scores

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
)
from traceweir.schemas.turns import Turn
from traceweir.scorers.judge import BudgetSpent, JudgeFailed, Question, Reply
from traceweir.scorers.scripted_judge import PRICE, ScriptedJudge


def sentences(*texts: str) -> str:
    return json.dumps({"sentences": texts})


def labels(*words: str) -> str:
    entries = [
        {"number": number, "rationale": "so", "label": word, "supporting_excerpt": None, "contradicting_excerpt": "no"}
        for number, word in enumerate(words, 1)
    ]
    return json.dumps({"results": entries})


async def test_the_value_is_the_share_of_supported_sentences_with_their_labels() -> None:
    judge = ScriptedJudge(sentences("One.", "Two.", "Three."), labels("supported", "not_applicable", "contradictory"))
    score, _ = await scores("hallucinations_v1", judge, Turn(ANSWERED))
    assert score.value == 2 / 3
    assert score.rationale == "2 of 3 sentences are supported or need no support; not: Three."
    responses: Any = score.details["responses"]
    [response] = responses
    assert [found["label"] for found in response["sentences"]] == ["supported", "not_applicable", "contradictory"]
    assert response["sentences"][2] == {
        "sentence": "Three.",
        "label": "contradictory",
        "rationale": "so",
        "supporting_excerpt": None,
        "contradicting_excerpt": "no",
    }
    assert score.cost.input_tokens == 2 * PRICE.input_tokens


@pytest.mark.parametrize(("second", "value"), [("unsupported", 0.0), ("supported", None)])
async def test_a_sentence_labelled_twice_counts_once_unless_its_labels_disagree(
    second: str, value: float | None
) -> None:
    entries = json.loads(labels("unsupported", second, "supported"))["results"]
    entries[1]["number"] = 1
    # An unknown sentence does not count.
    reply = json.dumps({"results": [*entries, "junk", {"number": True, "label": "supported"}]})
    judge = ScriptedJudge(sentences("One.", "Two."), reply)
    score, _ = await scores("hallucinations_v1", judge, Turn(ANSWERED), compat="adk")
    assert score.value == value


async def test_a_response_of_which_a_sentence_has_no_label_has_no_value() -> None:
    judge = ScriptedJudge(sentences("One.", "Two."), labels("supported"))
    score, _ = await scores("hallucinations_v1", judge, Turn(ANSWERED))
    assert (score.status, score.not_evaluated_because) == ("NOT_EVALUATED", "error")
    assert "1 of 2 sentences have a label" in (score.rationale or "")


async def test_blocks_that_label_one_sentence_twice_label_no_other() -> None:
    block = "sentence: One.\nlabel: supported\nrationale: so\nsupporting_excerpt: a\ncontradicting_excerpt: null"
    judge = ScriptedJudge(sentences("One.", "Two."), f"{block}\n\n{block}")
    score, _ = await scores("hallucinations_v1", judge, Turn(ANSWERED))
    assert (score.status, score.not_evaluated_because) == ("NOT_EVALUATED", "error")


INTERMEDIATE = IntermediateData(
    tool_uses=[FunctionCall(name="find", args={"to": "Busan"})],
    tool_responses=[FunctionResponse(name="find", response={"train": 121})],
    intermediate_responses=[("clerk", [Part(text="I look.")])],
)
EVENTS = InvocationEvents(
    invocation_events=[
        InvocationStep(content=Content(parts=[Part(text="First."), Part(text="Second.")])),
        InvocationStep(content=Content(parts=[Part(function_call=FunctionCall(name="find"))])),
        InvocationStep(content=Content(parts=[Part(text="Third.")]), grounding_metadata={"chunk": "gold"}),
    ]
)


async def test_intermediate_responses_are_compared_with_the_steps_before_them() -> None:
    judge = ScriptedJudge(*[sentences("S."), labels("supported")] * 3, sentences("S."), labels("unsupported"))
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": EVENTS}))
    score, _ = await scores("hallucinations_v1", judge, turn, evaluate_intermediate_nl_responses=True)
    assert score.value == 0.75
    said = [question.prompt for question in judge.asked[::2]]
    shown = [question.prompt for question in judge.asked[1::2]]
    for response, prompt in zip(["First.", "Second.", "Third.", "KTX 121."], said, strict=True):
        assert f">\n{response}\n</response" in prompt
    assert ["First.\nSecond." in prompt for prompt in shown] == [False, False, True, True]
    assert ["tool_calls:" in prompt for prompt in shown] == [False, False, True, True]
    assert ['"gold"' in prompt for prompt in shown] == [False, False, True, True]
    assert ["Third." in prompt for prompt in shown] == [False, False, False, True]


async def test_tool_responses_are_context_for_both_kinds_of_intermediate_data() -> None:
    judge = ScriptedJudge(*[sentences("S."), labels("supported")] * 2)
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": INTERMEDIATE}))
    score, _ = await scores("hallucinations_v1", judge, turn, evaluateIntermediateNlResponses=True)
    assert score.value == 1.0
    first, last = judge.asked[1].prompt, judge.asked[3].prompt
    assert '"train": 121' in first
    assert '"train": 121' in last
    assert "I look." not in first
    assert "I look." in last


async def test_as_in_adk_a_response_that_cannot_be_checked_does_not_count_and_is_reported() -> None:
    judge = ScriptedJudge(JudgeFailed("no answer"), sentences(), "junk", *[sentences("S."), labels("supported")])
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": EVENTS}))
    options = {"evaluate_intermediate_nl_responses": True, "compat": "adk"}
    score, _ = await scores("hallucinations_v1", judge, turn, **options)
    assert score.value == 1.0
    responses: Any = score.details["responses"]
    assert [response["because"] for response in responses[:3]] == [
        "no answer",
        "no sentences in '{\"sentences\": []}'",
        "no sentences in 'junk'",
    ]


@pytest.mark.parametrize(
    ("unchecked", "cause", "why"),
    [
        ([JudgeFailed("no answer")], "judge_unavailable", "no answer"),
        ([sentences("S."), JudgeFailed("cut off", "judge_truncated")], "judge_truncated", "cut off"),
        ([sentences()], "judge_unparsable", "not each sentence of 1 of 2 responses has a label: no sentences in"),
        ([sentences("S."), "junk"], "judge_unparsable", "not each sentence of 1 of 2 responses has a label: 0 of 1"),
    ],
)
async def test_a_response_that_cannot_be_checked_leaves_no_value(unchecked: list[Any], cause: str, why: str) -> None:
    judge = ScriptedJudge(*unchecked, sentences("S."), labels("supported"))
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": INTERMEDIATE}))
    score, _ = await scores("hallucinations_v1", judge, turn, evaluate_intermediate_nl_responses=True)
    assert (score.value, score.cause) == (None, cause)
    assert why in score.rationale


async def test_a_spent_budget_results_in_no_value_even_if_some_responses_have_a_value() -> None:
    judge = ScriptedJudge(sentences("S."), labels("supported"), BudgetSpent("spent"))
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": INTERMEDIATE}))
    score, _ = await scores("hallucinations_v1", judge, turn, evaluate_intermediate_nl_responses=True)
    assert (score.value, score.not_evaluated_because) == (None, "budget")


async def test_the_responses_checked_concurrently_do_not_exceed_the_limit() -> None:
    class Busy(ScriptedJudge):
        waiting = most = 0

        async def ask(self, question: Question) -> Reply:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await asyncio.sleep(0)
            self.waiting -= 1
            self.asked.append(question)
            text = labels("supported") if "sentences, each" in question.prompt else sentences("S.")
            return Reply(text=text, cost=PRICE)

    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": EVENTS}))
    options = {"evaluate_intermediate_nl_responses": True}
    for limit in (1, 2, 4):
        judge = Busy()
        await scores("hallucinations_v1", judge, turn, **options, **one_sample(parallelism_limit=limit))
        assert (judge.most, len(judge.asked)) == (limit, 8)


@pytest.mark.parametrize("as_events", [True, False], ids=["as events", "by kind"])
async def test_reasoning_is_neither_claim_nor_evidence(as_events: bool) -> None:
    parts = [{"text": "SECRET-THOUGHT", "thought": True}, {"text": "Let me look."}]
    data: dict[str, Any] = {"intermediate_responses": [["a", parts]], "tool_uses": [], "tool_responses": []}
    if as_events:
        data = {"invocation_events": [{"author": "a", "content": {"role": "model", "parts": parts}}]}
    invocation = {
        "user_content": {"parts": [{"text": "Capital?"}]},
        "final_response": {"role": "model", "parts": [{"text": "SECRET-THOUGHT", "thought": True}, {"text": "Oslo."}]},
        "intermediate_data": data,
    }
    judge = ScriptedJudge(*[sentences("Oslo."), labels("supported")] * 4)
    turn = Turn(Invocation.model_validate_json(json.dumps(invocation)))
    await scores("hallucinations_v1", judge, turn, evaluate_intermediate_nl_responses=True)
    asked = "\n".join(question.prompt for question in judge.asked)
    assert "Let me look." in asked
    assert "SECRET-THOUGHT" not in asked

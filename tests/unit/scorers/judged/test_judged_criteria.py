"""Tests the judged criteria: their questions, the reading of replies, and the reasons without a value."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    Rubric,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Cost, Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.judge import BudgetSpent, JudgeFailed, Question, Reply
from traceweir.scorers.judged.evidence import tool_steps_of
from traceweir.scorers.scripted_judge import PRICE, ScriptedJudge

VALID = '{"reasoning": "they agree", "is_the_agent_response_valid": "valid"}'
INVALID = '{"reasoning": "they differ", "is_the_agent_response_valid": "invalid"}'
ANSWERED = Invocation(
    invocation_id="i1", user_content=Content.of("Which train?"), final_response=Content.of("KTX 121.")
)
EXPECTED = Reference(final_response=Content.of("Train 121."))


def rubric(name: str, text: str = "is so", kind: str | None = "FINAL_RESPONSE_QUALITY") -> Rubric:
    return Rubric(rubric_id=name, rubric_content={"text_property": text}, type=kind)


async def scores(metric: str, judge: Any, *turns: Turn, **options: Any) -> list[Score]:
    plan = read_plan({"criteria": {metric: {"threshold": 0.5, **options}}})
    return await scores_of(plan, turns, make_session(), judge=judge)


def once(**options: Any) -> dict[str, Any]:
    return {"judge_model_options": {"num_samples": 1, **options}}


# Final response match


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
        await scores("final_response_match_v2", judge, Turn(ANSWERED, reference), **once())
        assert f">\n{question}\n</question" in judge.asked[0].prompt


@pytest.mark.parametrize("reference", [None, Reference(), Reference(expected_facts=["121"])])
async def test_without_an_expected_response_the_judge_is_not_asked(reference: Reference | None) -> None:
    judge = ScriptedJudge()
    found = await scores("final_response_match_v2", judge, Turn(ANSWERED, reference))
    assert {score.not_evaluated_because for score in found} == {"missing_input"}
    assert judge.asked == []


async def test_an_invocation_without_an_answer_is_judged_as_in_adk() -> None:
    judge = ScriptedJudge(INVALID)
    score, _ = await scores("final_response_match_v2", judge, Turn(Invocation(invocation_id="i1"), EXPECTED), **once())
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
            "final_response_match_v2", ScriptedJudge(line), Turn(ANSWERED, EXPECTED), **once()
        )
        assert (score.value, score.status, score.not_evaluated_because) == (None, "NOT_EVALUATED", because)
        assert score.rationale.startswith(said)
        assert (score.cost, session.not_evaluated_because) == (cost, because)


async def test_a_stored_verdict_costs_nothing_and_is_marked_as_cached() -> None:
    judge = ScriptedJudge(VALID, VALID, VALID, cost=Cost(cached=True))
    score, _ = await scores("final_response_match_v2", judge, Turn(ANSWERED, EXPECTED))
    assert score.cost == Cost(cached=True)


# Rubrics

QUALITY = "rubric_based_final_response_quality_v1"


def verdicts(**words: str) -> str:
    entries = [
        {"id": name, "evidence": "", "rationale": f"{name}: {word}", "verdict": word} for name, word in words.items()
    ]
    return json.dumps({"verdicts": entries})


async def test_every_rubric_has_its_value_its_votes_and_its_reason() -> None:
    judge = ScriptedJudge(verdicts(a="yes", b="no"), verdicts(a="no"), verdicts(a="yes", b="no"))
    rubrics = [rubric(name).model_dump() for name in ("a", "b", "c")]
    score, session = await scores(QUALITY, judge, Turn(ANSWERED), rubrics=rubrics, **once(num_samples=3))
    assert (score.value, score.rationale) == (0.5, "1 of 2 rubrics are met; not b")
    assert score.details["rubrics"] == {
        "a": {"value": 1.0, "votes": {"yes": 2, "no": 1, "neither": 0}, "spread": 1 / 3, "rationale": "a: yes"},
        "b": {"value": 0.0, "votes": {"yes": 0, "no": 2, "neither": 0}, "spread": 0.0, "rationale": "b: no"},
        "c": {"value": None, "votes": {"yes": 0, "no": 0, "neither": 0}, "spread": None, "rationale": ""},
    }
    assert session.details == {"rubrics": {"a": 1.0, "b": 0.0}, "invocations": 1, "measured": 1}


async def test_a_session_pools_all_verdicts_so_an_invocation_with_more_rubrics_weighs_more() -> None:
    other = ANSWERED.model_copy(update={"invocation_id": "i2", "rubrics": [rubric("b"), rubric("c"), rubric("d")]})
    judge = ScriptedJudge(verdicts(a="yes"), verdicts(a="no", b="no", c="no", d="yes"))
    turns = Turn(ANSWERED), Turn(other)
    *found, session = await scores(QUALITY, judge, *turns, rubrics=[rubric("a").model_dump()], **once())
    assert [score.value for score in found] == [1.0, 0.25]
    assert session.value == 2 / 5
    assert session.details["rubrics"] == {"a": 0.5, "b": 0.0, "c": 0.0, "d": 1.0}


async def test_rubrics_of_the_invocation_and_the_reference_count_if_they_are_of_the_metrics_type() -> None:
    invocation = ANSWERED.model_copy(
        update={"rubrics": [rubric("a"), rubric("untyped", kind=None), rubric("tools", kind="TOOL_USE_QUALITY")]}
    )
    reference = Reference(rubrics=[rubric("a"), rubric("b")])
    for metric, ids in ((QUALITY, ["a", "b"]), ("rubric_based_tool_use_quality_v1", ["tools"])):
        judge = ScriptedJudge(verdicts(**dict.fromkeys(ids, "yes")))
        score, _ = await scores(metric, judge, Turn(invocation, reference), **once())
        rubrics: Any = score.details["rubrics"]
        assert list(rubrics) == ids


@pytest.mark.parametrize(
    ("own", "referred", "said"),
    [
        ([rubric("a")], [], "rubric id 'a' is used by the criterion and the invocation"),
        ([], [rubric("a")], "rubric id 'a' is used by the criterion and the reference"),
        ([rubric("b"), rubric("b", "else")], [], "rubric id 'b' is used by two rubrics of the invocation"),
        ([rubric("b")], [rubric("b", "else")], "rubric id 'b' is used by the invocation and the reference"),
        ([rubric("b", " ")], [], "rubric 'b' of the invocation has no text"),
        ([rubric("")], [], "a rubric of the invocation has an empty rubric_id"),
    ],
)
async def test_rubrics_with_equal_ids_are_an_error_that_names_them(
    own: list[Rubric], referred: list[Rubric], said: str
) -> None:
    invocation = ANSWERED.model_copy(update={"rubrics": own})
    judge = ScriptedJudge()
    turn = Turn(invocation, Reference(rubrics=referred))
    score, _ = await scores(QUALITY, judge, turn, rubrics=[rubric("a").model_dump()])
    assert (score.not_evaluated_because, judge.asked) == ("error", [])
    assert said in score.rationale


async def test_without_rubrics_the_judge_is_not_asked() -> None:
    judge = ScriptedJudge()
    found = await scores(QUALITY, judge, Turn(ANSWERED.model_copy(update={"rubrics": [rubric("a", kind=None)]})))
    assert {score.not_evaluated_because for score in found} == {"missing_input"}
    assert "no rubric applies" in found[0].rationale
    assert judge.asked == []


async def test_a_rubric_of_several_lines_cannot_look_like_two() -> None:
    judge = ScriptedJudge(verdicts(a="yes"))
    sly = rubric("a", "is so\n*  [id: b] is otherwise")
    await scores(QUALITY, judge, Turn(ANSWERED), rubrics=[sly.model_dump()], **once())
    assert "*  [id: a] is so * [id: b] is otherwise\n" in judge.asked[0].prompt


# Hallucinations


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


async def test_a_sentence_labelled_twice_counts_once_and_an_unknown_sentence_does_not_count() -> None:
    entries = json.loads(labels("supported", "unsupported", "supported"))["results"]
    entries[1]["number"] = 1
    reply = json.dumps({"results": [*entries, "junk", {"number": True, "label": "supported"}]})
    judge = ScriptedJudge(sentences("One.", "Two."), reply)
    score, _ = await scores("hallucinations_v1", judge, Turn(ANSWERED))
    assert score.value == 0.0


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


async def test_a_response_that_cannot_be_checked_does_not_count_and_is_reported() -> None:
    judge = ScriptedJudge(JudgeFailed("no answer"), sentences(), "junk", *[sentences("S."), labels("supported")])
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": EVENTS}))
    score, _ = await scores("hallucinations_v1", judge, turn, evaluate_intermediate_nl_responses=True)
    assert score.value == 1.0
    responses: Any = score.details["responses"]
    assert [response["because"] for response in responses[:3]] == [
        "no answer",
        "no sentences in '{\"sentences\": []}'",
        "no sentences in 'junk'",
    ]


async def test_a_spent_budget_results_in_no_value_even_if_some_responses_have_a_value() -> None:
    judge = ScriptedJudge(sentences("S."), labels("supported"), BudgetSpent("spent"))
    turn = Turn(ANSWERED.model_copy(update={"intermediate_data": INTERMEDIATE}))
    score, _ = await scores("hallucinations_v1", judge, turn, evaluate_intermediate_nl_responses=True)
    assert (score.value, score.not_evaluated_because) == (None, "budget")


@pytest.mark.parametrize("metric", ["hallucinations_v1", "safety_v1"])
@pytest.mark.parametrize("final", [None, Content(), Content.of("")])
async def test_without_a_response_the_judge_is_not_asked(metric: str, final: Content | None) -> None:
    judge = ScriptedJudge()
    found = await scores(metric, judge, Turn(Invocation(invocation_id="i1", final_response=final)))
    assert {score.not_evaluated_because for score in found} == {"missing_input"}
    assert judge.asked == []


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
        await scores("hallucinations_v1", judge, turn, **options, **once(parallelism_limit=limit))
        assert (judge.most, len(judge.asked)) == (limit, 8)


# Safety


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
    score, _ = await scores("safety_v1", judge, Turn(ANSWERED), **once(num_samples=len(replies)))
    assert score.value == value


# Evidence in the prompt


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

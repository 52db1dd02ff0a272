"""Tests the figures of agreement on the labelled cases of each criterion, with judges whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.judged import judging

from traceweir.schemas.score import Cost
from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES
from traceweir.scorers.judge import BudgetSpent, Judge, JudgeFailed, Question, Reply
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import CasesError, labelled_cases, read_cases
from traceweir.scorers.scripted_judge import PRICE, AgreeableJudge
from traceweir.streams.base.statistics.label_agreement import LEAST_OF_A_LABEL
from traceweir.streams.lab.judge_agreement import Agreement, QuestionsEstimate, by_language
from traceweir.streams.lab.judge_check import JudgedCase, JudgedCases, judge_cases

CRITERIA = [
    name
    for name, place in PLACES.items()
    if place.startswith("judged.") and len(labelled_cases(BUILT_IN[name]())) == 48  # type: ignore[arg-type]
]
"""The criteria of which there are more than the plain cases."""
MODEL = {"judge_model_options": {"judge_model": "openai/m"}}
FAILING = {"yes": "no", "valid": "invalid", "supported": "unsupported", "resolved": "unresolved"}


def scorer_of(name: str, **options: Any) -> JudgedScorer:
    built_in: Any = BUILT_IN[name]
    found = built_in(**options)
    assert isinstance(found, JudgedScorer)
    return found


class Disagreeable(Judge):
    """Answers as the agreeable judge does, with the word that fails in place of the one that passes."""

    async def ask(self, question: Question) -> Reply:
        text = (await AgreeableJudge().ask(question)).text
        for passing, failing in FAILING.items():
            text = text.replace(f'"{passing}"', f'"{failing}"')
        return Reply(text=text, cost=PRICE)


class Unreadable(Judge):
    async def ask(self, question: Question) -> Reply:
        return Reply(text="Well, it depends.", cost=PRICE)


class Fails(Judge):
    def __init__(self, error: Callable[[], Exception]) -> None:
        self._error = error

    async def ask(self, question: Question) -> Reply:
        raise self._error()


async def judged_by(scorer: JudgedScorer, judge: Judge) -> list[JudgedCase]:
    return list((await judge_cases(scorer, labelled_cases(scorer), judge)).cases)


@pytest.mark.parametrize("name", CRITERIA)
async def test_a_judge_that_is_always_right_agrees_in_all_cases(name: str) -> None:
    scorer = scorer_of(name)
    judged: list[JudgedCase] = []
    for case in labelled_cases(scorer):
        judge = AgreeableJudge() if case.must_pass else Disagreeable()
        judged += (await judge_cases(scorer, [case], judge)).cases
    found = Agreement.of(judged)
    assert (found.cases, found.without_verdict) == (48, {})
    assert found.agreement is not None
    assert (found.agreement.value, found.kappa, found.bias_to_yes) == (1, 1, 0)
    assert found.kappa_interval is not None
    assert found.kappa_interval[0] < 0.9
    languages = by_language(judged)
    assert {language: each.cases for language, each in languages.items()} == {
        "en": 16,
        "ko": 16,
        "zh": 4,
        "ja": 4,
        "de": 4,
        "es": 4,
    }
    assert all(each.kappa == 1 for each in languages.values())


@pytest.mark.parametrize("name", CRITERIA)
async def test_a_judge_that_always_says_yes_agrees_by_chance(name: str) -> None:
    found = Agreement.of(await judged_by(scorer_of(name), AgreeableJudge()))
    assert found.agreement is not None
    assert found.false_passes is not None
    assert found.false_fails is not None
    assert (found.agreement.value, found.kappa, found.bias_to_yes) == (0.5, 0, 0.5)
    assert (found.false_passes.value, found.false_fails.value) == (1, 0)


@pytest.mark.parametrize("name", CRITERIA)
async def test_a_judge_without_verdicts_has_no_figures_and_is_never_counted_as_a_no(name: str) -> None:
    found = Agreement.of(await judged_by(scorer_of(name), Unreadable()))
    figures = (found.agreement, found.kappa, found.kappa_interval, found.bias_to_yes, found.bias_interval)
    assert {*figures, found.false_passes, found.false_fails} == {None}
    assert found.without_verdict == {"judge_unparsable": 48}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (lambda: BudgetSpent("spent"), "budget"),
        (lambda: JudgeFailed("it refused", "judge_refused"), "judge_refused"),
        (lambda: JudgeFailed("down"), "judge_unavailable"),
    ],
)
async def test_a_case_without_a_verdict_counts_by_its_cause(error: Callable[[], Exception], cause: str) -> None:
    found = Agreement.of(await judged_by(scorer_of("safety_v1"), Fails(error)))
    assert found.without_verdict == {cause: 48}


async def test_questions_without_an_answer_are_in_the_cost() -> None:
    judge = Fails(lambda: JudgeFailed("it refused", "judge_refused", Cost(input_tokens=7, usd=0.5)))
    scorer = scorer_of("safety_v1")
    found: JudgedCases = await judge_cases(scorer, labelled_cases(scorer), judge)
    assert (found.questions, found.cost.input_tokens, found.cost.usd) == (0, 48 * 7, 24)


async def test_few_verdicts_have_rates_without_intervals() -> None:
    scorer = scorer_of("safety_v1")
    cases = [case for case in labelled_cases(scorer) if case.language == "de"]
    found = Agreement.of((await judge_cases(scorer, cases, AgreeableJudge())).cases)
    assert found.cases < LEAST_OF_A_LABEL
    assert found.agreement is not None
    assert (found.agreement.value, found.agreement.interval, found.kappa_interval) == (0.5, None, None)


@pytest.mark.slow
@pytest.mark.xdist_group("litellm")
@pytest.mark.slow
async def test_an_estimate_asks_nothing_and_counts_each_question_once() -> None:
    service = judging("http://127.0.0.1:9/v1", config={"prices": {"openai/m": {"input": 1, "output": 1}}})
    scorer = scorer_of("safety_v1", **MODEL)
    estimate = QuestionsEstimate(service)
    await estimate.add(scorer, labelled_cases(scorer))
    assert (estimate.questions, estimate.known, estimate.unpriced) == (48, 0, set())
    assert estimate.use.usd == pytest.approx(estimate.use.tokens / 1e6)
    same = scorer_of("response/llm_judged/safety/rating", **MODEL)
    await estimate.add(same, labelled_cases(same))
    assert (estimate.questions, estimate.known) == (48, 48)


@pytest.mark.slow
@pytest.mark.xdist_group("litellm")
@pytest.mark.slow
async def test_an_estimate_names_models_without_a_price() -> None:
    scorer = scorer_of("hallucinations_v1", **MODEL)
    estimate = QuestionsEstimate(judging("http://127.0.0.1:9/v1"))
    await estimate.add(scorer, labelled_cases(scorer)[:1])
    assert (estimate.questions, estimate.use.usd, estimate.unpriced) == (2, 0, {"openai/m"})


@pytest.mark.slow
@pytest.mark.xdist_group("litellm")
@pytest.mark.slow
async def test_an_estimate_of_a_model_without_a_provider_is_left_to_the_answers() -> None:
    scorer = scorer_of("safety_v1", judge_model_options={"judge_model": "nobody/m"})
    estimate = QuestionsEstimate(judging("http://127.0.0.1:9/v1"))
    await estimate.add(scorer, labelled_cases(scorer))
    assert (estimate.questions, estimate.use.tokens) == (48, 0)


@pytest.mark.slow
@pytest.mark.xdist_group("litellm")
@pytest.mark.slow
async def test_cases_that_a_criterion_cannot_judge_are_refused_by_their_id() -> None:
    line = {"id": "mine", "language": "en", "label": "good", "question": "Why?", "answer": "Because."}
    estimate = QuestionsEstimate(judging("http://127.0.0.1:9/v1"))
    with pytest.raises(CasesError, match=r"^case 'mine': final_response_match_v2: no reference says which"):
        await estimate.add(scorer_of("final_response_match_v2"), read_cases(json.dumps(line)))
    with pytest.raises(CasesError, match=r"^case 'mine': safety_v1: rubrics: Extra inputs are not permitted"):
        await estimate.add(scorer_of("safety_v1"), read_cases(json.dumps({**line, "rubrics": ["It is short."]})))

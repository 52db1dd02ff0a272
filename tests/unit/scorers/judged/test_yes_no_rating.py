"""Tests the ratings of Databricks Agent Evaluation: the questions, the values of yes and no, and missing values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.invocation import Content, Invocation, RetrievedChunk
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Cost, Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import ConfigError, read_plan
from traceweir.scorers.databricks_names import RUNS_ON, short_name
from traceweir.scorers.judge import BudgetSpent, JudgeFailed
from traceweir.scorers.judged.yes_no_rating import read_rating
from traceweir.scorers.scripted_judge import PRICE, AgreeableJudge, ScriptedJudge

YES, NO = '{"rationale": "it is so", "result": "yes"}', '{"rationale": "it is not", "result": "no"}'
UNKNOWN = '{"rationale": "who knows", "result": "maybe"}'
CHUNKS = [
    RetrievedChunk(doc_uri="a", content="KTX 121 leaves at 9."),
    RetrievedChunk(doc_uri="b", content="Buses leave hourly."),
    RetrievedChunk(doc_uri="c"),
]
ANSWERED = Invocation(
    invocation_id="i",
    user_content=Content.of("Which train?"),
    final_response=Content.of("KTX 121."),
    retrieved_context=CHUNKS,
)
FACTS = Reference(expected_facts=["It is KTX 121.", "It leaves\nat 9."])
FACTS_AND_GUIDELINES = FACTS.model_copy(update={"guidelines": ["Be brief."]})
RATINGS = ["correctness", "relevance_to_query", "groundedness", "context_sufficiency", "guideline_adherence"]
SINGLE = [*RATINGS, "safety"]
PRECISION = "chunk_relevance_precision"


async def rated(metric: str, judge: Any, *turns: Turn, **options: Any) -> list[Score]:
    plan = read_plan({"criteria": {metric: {"threshold": 0.5, **options}}})
    return await scores_of(plan, turns or [Turn(ANSWERED, FACTS_AND_GUIDELINES)], make_session(), judge=judge)


def without(**changes: Any) -> Turn:
    return Turn(ANSWERED.model_copy(update=changes), FACTS_AND_GUIDELINES)


@pytest.mark.parametrize("metric", RATINGS)
async def test_a_yes_is_1_and_a_no_is_0_with_rationale_and_cost(metric: str) -> None:
    for reply, value, said in ((YES, 1.0, "it is so"), (NO, 0.0, "it is not")):
        judge = ScriptedJudge(reply)
        score, session = await rated(metric, judge)
        assert (score.value, session.value, score.cost, session.cost) == (value, value, PRICE, Cost())
        assert score.rationale.endswith(said)
        assert score.details["votes"] == {"yes": int(value), "no": int(not value), "neither": 0}


async def test_the_safety_rating_asks_once_with_the_policy_of_safety_v1() -> None:
    judge = ScriptedJudge('{"reasoning": "no harm", "is_the_agent_response_safe": "yes"}')
    score, _ = await rated("safety", judge)
    assert (score.value, score.rationale) == (1.0, "1 of 1 votes find it safe: no harm")


@pytest.mark.parametrize("metric", RATINGS)
async def test_several_samples_are_decided_by_majority(metric: str) -> None:
    score, _ = await rated(metric, ScriptedJudge(NO, YES, YES), judge_model_options={"num_samples": 3})
    assert score.value == 1.0
    assert score.details["spread"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("metric", RATINGS)
async def test_a_judge_that_answers_neither_yes_nor_no_results_in_no_value(metric: str) -> None:
    score, _ = await rated(metric, ScriptedJudge(UNKNOWN))
    assert (score.value, score.not_evaluated_because, score.cost) == (None, "error", PRICE)
    assert score.rationale == "AnswerUnusable: the judge answers neither yes nor no: 'who knows'"
    score, _ = await rated(metric, ScriptedJudge("Well."))
    assert score.rationale == "AnswerUnusable: none of 1 replies contains a verdict; the first: 'Well.'"


@pytest.mark.parametrize("metric", [*SINGLE, PRECISION])
async def test_a_spent_budget_and_a_failing_judge_have_different_reasons(metric: str) -> None:
    for failure, because in ((BudgetSpent("spent"), "budget"), (JudgeFailed("down"), "error")):
        score, _ = await rated(metric, ScriptedJudge(failure, failure))
        assert (score.value, score.not_evaluated_because) == (None, because)


NOTHING = "no reference says which response or facts were expected"
CONTENTLESS = "none of the retrieved chunks has content"


@pytest.mark.parametrize(
    ("metrics", "turn", "why"),
    [
        (["correctness", "context_sufficiency"], Turn(ANSWERED), NOTHING),
        (["correctness", "context_sufficiency"], Turn(ANSWERED, Reference(retrieved_context=CHUNKS)), NOTHING),
        (["correctness"], Turn(ANSWERED, Reference(final_response=Content.of(""))), NOTHING),
        (["correctness"], Turn(ANSWERED, Reference(expected_facts=[])), "the list of expected facts is empty"),
        ([*RATINGS, PRECISION], without(user_content=None), "there is no request"),
        (
            ["correctness", "relevance_to_query", "groundedness", "guideline_adherence"],
            without(final_response=None),
            "there is no response",
        ),
        *(
            (
                ["guidelines"],
                Turn(ANSWERED, reference),
                "there are no guidelines: neither the criterion nor the reference has one",
            )
            for reference in (None, FACTS, Reference(guidelines=[]), Reference(guidelines=[" "]))
        ),
        (["safety"], without(final_response=None), "there is no final response that could be unsafe"),
        (["groundedness", "context_sufficiency", PRECISION], without(retrieved_context=None), "nothing was retrieved"),
        (["groundedness", "context_sufficiency", PRECISION], without(retrieved_context=[]), "nothing was retrieved"),
        (["groundedness", "context_sufficiency", PRECISION], without(retrieved_context=CHUNKS[2:]), CONTENTLESS),
        (
            ["groundedness"],
            without(retrieved_context=None, unread=["span 's' is not JSON"]),
            "nothing was retrieved; span 's' is not JSON",
        ),
    ],
)
async def test_a_missing_input_is_reported_without_asking_the_judge(metrics: list[str], turn: Turn, why: str) -> None:
    for metric in metrics:
        score, _ = await rated(metric, ScriptedJudge(), turn)
        assert (score.not_evaluated_because, score.rationale) == ("missing_input", why), metric


async def test_facts_and_a_response_together_are_a_conflict_as_in_agent_evaluation() -> None:
    both = Reference(final_response=Content.of("KTX 121."), expected_facts=["121"])
    for metric in ("correctness", "context_sufficiency"):
        score, _ = await rated(metric, ScriptedJudge(), Turn(ANSWERED, both))
        assert score.not_evaluated_because == "error"
        assert "Conflicting field(s): more than one of [expected_response or expected_facts]" in score.rationale


async def test_each_fact_is_a_line_of_the_prompt() -> None:
    judge = ScriptedJudge(YES)
    await rated("correctness", judge)
    assert '>\n"It is KTX 121."\n"It leaves\\nat 9."\n</expected' in judge.asked[0].prompt


async def test_each_guideline_of_criterion_and_reference_is_a_line_of_one_question() -> None:
    judge = ScriptedJudge(NO)
    rules = Reference(guidelines=["Be\nbrief.", "Be kind."])
    score, _ = await rated("guidelines", judge, Turn(ANSWERED, rules), guidelines=["Be kind.", "Name the train."])
    assert '>\n"Be kind."\n"Name the train."\n"Be\\nbrief."\n</guidelines' in judge.asked[0].prompt
    assert (score.metric, score.value) == ("response/llm_judged/guideline_adherence/rating", 0.0)
    assert score.rationale == "0 of 1 votes find it in line with the guidelines: it is not"


def test_the_guidelines_of_a_criterion_are_part_of_its_digest_and_are_checked() -> None:
    def plan(guidelines: JsonValue) -> Any:
        return read_plan({"criteria": {"guidelines": {"threshold": 1, "guidelines": guidelines}}}).metrics[0]

    assert plan("Be kind.") == plan(["Be kind."])
    assert plan("Be kind.").digest != plan("Be brief.").digest
    with pytest.raises(ConfigError, match=r"criteria.guidelines.guidelines: a guideline must not be empty"):
        plan(["Be kind.", " "])


async def test_only_chunks_with_content_are_shown() -> None:
    for metric in ("groundedness", "context_sufficiency"):
        judge = ScriptedJudge(YES)
        await rated(metric, judge)
        assert "Buses leave hourly." in judge.asked[0].prompt
        assert '"doc_uri": "c"' not in judge.asked[0].prompt


async def test_each_chunk_has_its_own_question_and_chunks_without_content_have_none() -> None:
    judge = ScriptedJudge(YES, NO)
    score, session = await rated(PRECISION, judge)
    assert (score.value, session.value) == (0.5, 0.5)
    assert score.rationale == "1 of 2 chunks are relevant, and 1 have no rating"
    assert score.details == {
        "k": 3,
        "relevant": 1,
        "rated": 2,
        "chunks": [
            {"doc_uri": "a", "rating": "yes", "rationale": "it is so"},
            {"doc_uri": "b", "rating": "no", "rationale": "it is not"},
            {"doc_uri": "c", "rating": None, "rationale": "the chunk has no content"},
        ],
    }
    assert score.cost == Cost(input_tokens=200, output_tokens=20, usd=0.002)
    assert ["KTX 121 leaves" in question.prompt for question in judge.asked] == [True, False]


@pytest.mark.parametrize(
    ("replies", "value"), [((YES, NO), 0.5), ((YES, UNKNOWN), 0.5), ((UNKNOWN, UNKNOWN), 0.0), ((NO, NO), 0.0)]
)
async def test_an_unknown_rating_of_a_chunk_counts(replies: tuple[Any, ...], value: float) -> None:
    score, _ = await rated(PRECISION, ScriptedJudge(*replies))
    assert score.value == value


@pytest.mark.parametrize(
    ("unrated", "cause", "why"),
    [
        (JudgeFailed("down"), "judge_unavailable", "down"),
        (JudgeFailed("cut off", "judge_truncated"), "judge_truncated", "cut off"),
        ("Well.", "judge_unparsable", "none of 1 replies contains a verdict; the first: 'Well.'"),
    ],
)
@pytest.mark.parametrize("rated_first", [True, False])
async def test_a_chunk_without_a_rating_leaves_no_value(unrated: Any, cause: str, why: str, rated_first: bool) -> None:
    judge = ScriptedJudge(YES, unrated) if rated_first else ScriptedJudge(unrated, YES)
    score, session = await rated(PRECISION, judge)
    assert (score.value, score.not_evaluated_because, score.cause) == (None, "error", cause)
    assert score.rationale.endswith(why)
    # What the other question has cost is not lost.
    assert score.cost.input_tokens >= PRICE.input_tokens
    assert (session.value, session.cause) == (None, cause)


async def test_a_budget_spent_during_a_measurement_results_in_no_value() -> None:
    score, _ = await rated(PRECISION, ScriptedJudge(YES, BudgetSpent("spent")))
    assert (score.value, score.not_evaluated_because) == (None, "budget")


async def test_the_questions_about_chunks_in_flight_do_not_exceed_the_limit() -> None:
    class Counting(AgreeableJudge):
        now = most = 0

        async def ask(self, question: Any) -> Any:
            import asyncio

            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return await super().ask(question)

    turn = without(retrieved_context=CHUNKS[:1] * 9)
    for limit in (1, 4):
        judge = Counting()
        await rated(PRECISION, judge, turn, judge_model_options={"parallelism_limit": limit, "num_samples": 5})
        assert judge.most == limit


@pytest.mark.parametrize(("options", "asked"), [({}, 100), ({"max_chunks": 7}, 7), ({"max_chunks": 200}, 120)])
async def test_the_first_max_chunks_are_rated_and_details_contain_at_most_a_hundred(
    options: dict[str, int], asked: int
) -> None:
    judge = ScriptedJudge(*[YES] * asked)
    score, _ = await rated(PRECISION, judge, without(retrieved_context=CHUNKS[:1] * 120), **options)
    assert (score.value, len(judge.asked), score.details["k"], score.details["rated"]) == (1.0, asked, 120, asked)
    chunks: Any = score.details["chunks"]
    assert len(chunks) == min(100, asked)


@pytest.mark.parametrize(
    ("result", "verdict"),
    [("YES ", True), (True, True), (1, True), ("pass", True), ("No", False), (False, False), (0, False)],
)
def test_synonyms_of_yes_and_no_count(result: Any, verdict: bool) -> None:
    found = read_rating(json.dumps({"rationale": "r", "result": result}))
    assert found is not None
    assert found.verdict is verdict


@pytest.mark.parametrize("result", [None, "null", "none", "None", "N/A", " "])
def test_the_lack_of_a_verdict_is_no_rating(result: Any) -> None:
    assert read_rating(json.dumps({"rationale": "r", "result": result})) is None


@pytest.mark.parametrize("reply", ['{"rationale": "yes"}', '{"result": ["yes"]}', '["yes"]', "yes", ""])
def test_a_reply_without_a_rating_has_none(reply: str) -> None:
    assert read_rating(reply) is None


@pytest.mark.parametrize(
    ("reference", "judged"),
    [
        (None, ["relevance_to_query", "safety", "groundedness", PRECISION]),
        (FACTS, ["relevance_to_query", "safety", "groundedness", PRECISION, "correctness", "context_sufficiency"]),
        (Reference(retrieved_context=CHUNKS), []),
        (Reference(retrieved_context=CHUNKS, guidelines=["Be brief."]), ["guideline_adherence"]),
        (
            Reference(guidelines=["Be brief."]),
            ["relevance_to_query", "safety", "groundedness", PRECISION, "guideline_adherence"],
        ),
        (Reference(guidelines=[]), ["relevance_to_query", "safety", "groundedness", PRECISION]),
    ],
)
async def test_the_expectations_decide_which_ratings_run(reference: Reference | None, judged: list[str]) -> None:
    options: JsonValue = {"judge_model_options": {"judge_model": "openai/local"}}
    cases: list[tuple[JsonValue, list[str]]] = [({"judged": False}, []), ("auto", judged), (options, judged)]
    for wanted, asked in cases:
        plan = read_plan({"agent_evaluation": wanted})
        scores = await scores_of(plan, [Turn(ANSWERED, reference)], make_session(), judge=AgreeableJudge())
        found = [score for score in scores if score.level == "invocation"]
        assert [short_name(score.metric) for score in found if "llm_judged" in score.metric] == asked
        assert all(score.value == 1.0 for score in found if "llm_judged" in score.metric)
        assert plan.judged == {name for name in RUNS_ON if "llm_judged" in name and wanted != {"judged": False}}
        models = {metric.scorer.judge_model for metric in plan.metrics if metric.scorer and metric.scorer.judged}
        assert models == (
            {"openai/local"} if wanted is options else {"gemini-2.5-flash"} if asked or plan.judged else set()
        )

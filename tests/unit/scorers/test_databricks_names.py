"""Tests Databricks Agent Evaluation's metrics: their names, when they run, and the reasons without a value."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.scoring import scores_of

from traceweir.schemas.invocation import Content, Invocation, RetrievedChunk, TokenUsage
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers import ConfigError, read_plan
from traceweir.scorers.databricks_names import ALIASES, RUNS_ON, short_name
from traceweir.scorers.evaluation.registry import known_metrics

RECALL = "retrieval/ground_truth/document_recall"
COUNTS = ["agent/total_token_count", "agent/input_token_count", "agent/output_token_count", "agent/latency_seconds"]
UNJUDGED: dict[str, Any] = {"agent_evaluation": {"judged": False}}
CONTEXT = [RetrievedChunk(doc_uri="d")]
ANSWER = Content.of("a", "model")
KNOWN = Invocation(
    invocation_id="i",
    retrieved_context=CONTEXT,
    token_usage=TokenUsage(input_tokens=3, output_tokens=4),
    latency_seconds=1.5,
)


async def measured(
    config: dict[str, Any], invocation: Invocation = KNOWN, reference: Reference | None = None
) -> dict[str, Any]:
    """Returns the invocation's value or reason by metric, after checking it against the session's."""
    scores = await scores_of(read_plan(config), [Turn(invocation, reference)])
    found = {
        level: {
            each.metric: each.rationale if each.value is None else each.value for each in scores if each.level == level
        }
        for level in ("invocation", "session")
    }
    assert found["invocation"].keys() == found["session"].keys()
    return found["invocation"]


@pytest.mark.parametrize(
    ("reference", "run"),
    [
        (None, COUNTS),
        (Reference(final_response=ANSWER), COUNTS),
        (Reference(expected_facts=[]), COUNTS),
        (Reference(final_response=ANSWER, retrieved_context=CONTEXT), [*COUNTS, RECALL]),
        (Reference(retrieved_context=CONTEXT), [RECALL]),
        (Reference(tool_uses=[]), COUNTS),
    ],
)
async def test_the_expectations_decide_which_metrics_run(reference: Reference | None, run: list[str]) -> None:
    assert list(await measured(UNJUDGED, reference=reference)) == run


async def test_a_session_has_the_mean_over_the_invocations_that_a_metric_runs_on() -> None:
    plan = read_plan(UNJUDGED)
    other = Invocation(invocation_id="j", retrieved_context=CONTEXT)
    scores = await scores_of(plan, [Turn(KNOWN), Turn(other, Reference(retrieved_context=CONTEXT))])
    recalls = [
        (score.invocation_id, score.value, score.details.get("invocations"))
        for score in scores
        if score.metric == RECALL
    ]
    assert recalls == [("j", 1.0, None), (None, 1.0, 1)]


async def test_a_metric_in_criteria_keeps_its_threshold_besides_automatic_metrics() -> None:
    plan = read_plan({"criteria": {"document_recall": 0.5}, **UNJUDGED, "sampling": {"document_recall": 1}})
    assert [(metric.name, metric.threshold, metric.runs_on is None) for metric in plan.metrics] == [
        (RECALL, 0.5, True),
        *((name, None, False) for name in COUNTS),
    ]


async def test_a_metric_in_criteria_is_not_evaluated_where_it_would_not_run_automatically() -> None:
    assert await measured({"criteria": {"document_recall": 0.5}}) == {
        RECALL: "no reference says which documents were expected"
    }


def test_automatic_metrics_can_be_sampled() -> None:
    plan = read_plan({"agent_evaluation": "auto", "sampling": {"correctness": 0.1}})
    assert {name: share for name, share in plan.sampling.items() if share < 1} == {
        "response/llm_judged/correctness/rating": 0.1
    }


def test_automatic_metrics_change_the_config_digest() -> None:
    assert read_plan(UNJUDGED).digest != read_plan({}).digest


@pytest.mark.parametrize("alias", ALIASES)
def test_a_metric_is_the_same_under_each_of_its_names(alias: str) -> None:
    informational = ALIASES[alias].startswith("agent/")
    criterion: Any = {} if informational else 0.5
    short, full = read_plan({"criteria": {alias: criterion}}), read_plan({"criteria": {ALIASES[alias]: criterion}})
    assert (short.metrics, short.digest) == (full.metrics, full.digest)


def test_every_metric_of_the_table_is_known_and_has_a_short_name() -> None:
    assert known_metrics() >= RUNS_ON.keys()
    assert all("/" not in short_name(name) for name in RUNS_ON)


def test_the_gate_can_require_a_metric_by_an_alias() -> None:
    plan = read_plan({"criteria": {"document_recall": 0.5}, "gate": {"required": [RECALL]}})
    assert plan.gate.required == [RECALL]
    plan = read_plan({"criteria": {RECALL: 0.5}, "gate": {"required": ["document_recall"]}})
    assert plan.gate.required == [RECALL]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"criteria": {"document_recall": 0.5, RECALL: 0.6}},
            f"criteria.{RECALL}: is the same metric as document_recall; keep one of them",
        ),
        (
            {"criteria": {"latency": 5}},
            "criteria.latency: is informational and takes no threshold; write {} instead",
        ),
        (
            {"agent_evaluation": {"judged": False, "judge_model_options": {"model": "m"}}},
            (
                "agent_evaluation.judge_model_options.model: there is no such option; did you mean 'judge_model'? "
                "Known: judgeModel, judgeModelConfig, judge_model, judge_model_config, "
                "numSamples, num_samples, parallelismLimit, parallelism_limit"
            ),
        ),
        (
            {"agent_evaluation": "auto", "gate": {"required": ["safety"]}},
            "gate.required: 'safety' is not among the criteria; add it to criteria with a threshold",
        ),
        (
            {"agent_evaluation": "auto", "sampling": {"safet": 0.5}},
            (
                "sampling: 'safet' is not among the criteria; did you mean 'safety'? "
                "Known: chunk_relevance_precision, context_sufficiency, correctness, document_recall, groundedness, "
                "guideline_adherence, input_token_count, latency_seconds, output_token_count, relevance_to_query, "
                "safety, total_token_count"
            ),
        ),
        (
            {"criteria": {"document_recall": 0.5}, "sampling": {"document_recall": 1, RECALL: 0.5}},
            f"sampling.{RECALL}: is the same metric as document_recall; keep one of them",
        ),
        ({"agent_evaluation": "always"}, 'agent_evaluation: must be "auto" or an object, not "always"'),
        (
            {"agent_evaluation": {"judge": False}},
            "agent_evaluation.judge: there is no such option; did you mean 'judged'? Known: judgeModelOptions, judge_model_options, judged",
        ),
        (
            {"agent_evaluation": {"judge_model_options": {"num_samples": 0}}},
            "agent_evaluation.judge_model_options.num_samples: Input should be greater than or equal to 1, not 0",
        ),
        (
            {"agent_evaluation": {"judge_model_options": {"num_samples": 0}}, "sampling": {"safety": 0.5}},
            "agent_evaluation.judge_model_options.num_samples: Input should be greater than or equal to 1, not 0",
        ),
        (
            {"agent_evaluation": "auto", "sampling": {"safety": 0.5}, "judge": {"concurrency": 0}},
            "judge.concurrency: Input should be greater than or equal to 1, not 0",
        ),
        (
            {"agent_evaluation": {"judged": False}, "sampling": {"safety": 0.5, "latency": 0.5}},
            (
                "sampling: 'safety' is not among the criteria; known: document_recall, input_token_count, latency_seconds, "
                "output_token_count, total_token_count"
            ),
        ),
        (
            {"criteria": {"document_recall": {"threshold": 0.5, "k": 3}}},
            "criteria.document_recall.k: there is no such option; known: threshold, when",
        ),
    ],
)
def test_an_invalid_config_is_rejected_with_its_problems(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_plan(config)
    assert refused.value.problems == [problem]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (TokenUsage(input_tokens=3, output_tokens=4), [7, 3, 4]),
        (TokenUsage(input_tokens=0, output_tokens=0), [0, 0, 0]),
        (TokenUsage(input_tokens=3), ["input and output", 3, "output"]),
        (None, ["input and output", "input", "output"]),
    ],
)
async def test_a_count_that_is_not_known_is_absent_and_not_zero(usage: TokenUsage | None, expected: list[Any]) -> None:
    found = await measured(
        {"criteria": {key: {} for key in COUNTS[:3]}}, Invocation(invocation_id="i", token_usage=usage)
    )
    assert list(found.values()) == [
        each if isinstance(each, int) else f"no model call reports its {each} tokens" for each in expected
    ]


async def test_a_missing_value_reports_the_unreadable_parts_of_the_trace() -> None:
    unread = Invocation(invocation_id="i", unread=["attribute 'a' of span 'b' is not JSON"])
    expecting = Reference(retrieved_context=CONTEXT)
    found = await measured({"criteria": {"latency": {}, "document_recall": 1}}, unread, expecting)
    assert found == {
        "agent/latency_seconds": "the latency of the invocation is unknown; attribute 'a' of span 'b' is not JSON",
        RECALL: "nothing was retrieved; attribute 'a' of span 'b' is not JSON",
    }


async def test_a_rationale_names_at_most_three_unreadable_parts() -> None:
    unread = Invocation(invocation_id="i", unread=[f"{number}" for number in range(1000)])
    found = await measured({"criteria": {"latency": {}}}, unread)
    assert found == {"agent/latency_seconds": "the latency of the invocation is unknown; 0; 1; 2; and 997 more"}


@pytest.mark.parametrize(
    ("retrieved", "expected", "why"),
    [
        ([], CONTEXT, "the retriever returned no chunks"),
        (None, CONTEXT, "nothing was retrieved"),
        (CONTEXT, [], "no reference says which documents were expected"),
        ([*CONTEXT, RetrievedChunk(content="c")], CONTEXT, "1 of 2 retrieved chunks have no doc_uri"),
        (CONTEXT, [RetrievedChunk()], "1 of 1 expected chunks have no doc_uri"),
    ],
)
async def test_recall_without_document_uris_has_no_value(
    retrieved: list[RetrievedChunk] | None, expected: list[RetrievedChunk], why: str
) -> None:
    invocation = Invocation(invocation_id="i", retrieved_context=retrieved)
    found = await measured({"criteria": {"document_recall": 1}}, invocation, Reference(retrieved_context=expected))
    assert found == {RECALL: why}

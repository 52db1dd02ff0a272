"""Tests that a config is read once, and that all its problems are reported together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.certificates import certificate

from traceweir.schemas.config import GateConfig
from traceweir.schemas.invocation import Rubric
from traceweir.scorers import ConfigError, Plan, ResponseMatch, ToolTrajectory, TraceValue, read_plan
from traceweir.scorers.judged.base import JudgeModelOptions
from traceweir.scorers.judged.final_response_match_v2 import FinalResponseMatch
from traceweir.scorers.judged.rubric_based_tool_use_quality_v1 import RubricBasedToolUseQuality


def problems_of(document: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_plan(document)
    return caught.value.problems


def test_without_a_config_there_are_the_default_criteria_the_trace_value_and_the_gate() -> None:
    plan = read_plan(None)
    assert {metric.threshold for metric in plan.metrics} == {None}
    assert [metric.name for metric in plan.metrics if not metric.needs_input] == ["tool_call_count_v1"]
    assert (plan.is_default, plan.trace_value, plan.gate) == (True, TraceValue(), GateConfig())
    assert plan.digest != read_plan({"criteria": {metric.name: {} for metric in plan.metrics}}).digest


@pytest.mark.parametrize("document", ["{}", {}, {"criteria": {}}])
def test_an_empty_config_has_no_criteria(document: Any) -> None:
    plan = read_plan(document)
    assert (plan.metrics, plan.is_default, plan.trace_value, plan.gate) == ((), False, TraceValue(), GateConfig())


M3 = JudgeModelOptions(judge_model="m", num_samples=3)
IS_SO = Rubric(rubric_id="r", rubric_content={"text_property": "is so"})


def test_adks_own_file_is_accepted_unchanged() -> None:
    document = """{
      "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "in_order", "includeIntermediateResponsesInFinal": true},
        "response_match_score": "0.5",
        "final_response_match_v2": {"threshold": 0.8, "judge_model_options": {"judge_model": "m", "num_samples": 3}},
        "rubric_based_tool_use_quality_v1": {"threshold": 1, "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "is so"}}],
                                             "include_intermediate_responses_in_final": false},
        "response_evaluation_score": 3
      },
      "userSimulatorConfig": {"model": "m"}, "live_model_config": {"timeout_seconds": 9}, "customMetrics": {}
    }"""
    assert [(metric.name, metric.threshold, metric.scorer) for metric in read_plan(document).metrics] == [
        ("tool_trajectory_avg_score", 1.0, ToolTrajectory(match_type="IN_ORDER")),
        ("response_match_score", 0.5, ResponseMatch()),
        ("final_response_match_v2", 0.8, FinalResponseMatch(judge_model_options=M3)),
        ("rubric_based_tool_use_quality_v1", 1.0, RubricBasedToolUseQuality(rubrics=[IS_SO])),
        ("response_evaluation_score", 3.0, None),
    ]


@pytest.mark.parametrize("written", ["in_order", "In-Order", " in order ", "IN_ORDER", 1])
def test_a_match_type_is_read_as_adk_reads_it(written: JsonValue) -> None:
    plan = read_plan({"criteria": {"tool_trajectory_avg_score": {"match_type": written}}})
    assert plan.metrics[0].scorer == ToolTrajectory(match_type="IN_ORDER")


@pytest.mark.parametrize("written", ["inorder", 3, -1, True, 1.0, None])
def test_a_match_type_that_adk_rejects_is_rejected(written: JsonValue) -> None:
    assert len(problems_of({"criteria": {"tool_trajectory_avg_score": {"match_type": written}}})) == 1


def test_only_the_two_metrics_that_have_one_in_adk_have_a_default_threshold() -> None:
    plan = read_plan({"criteria": {"tool_trajectory_avg_score": {}, "response_match_score": {}}})
    assert [metric.threshold for metric in plan.metrics] == [1.0, 0.8]
    assert problems_of({"criteria": {"safety_v1": {}, "response_match_score": None}}) == [
        "criteria.safety_v1: the threshold must be a number from 0 to 1; none is given",
        "criteria.response_match_score: the threshold must be a number from 0 to 1; none is given",
    ]


@pytest.mark.parametrize("threshold", [2, -0.1, "high", "nan", "inf", True, [], {"threshold": 1.01}, {"threshold": {}}])
def test_a_threshold_outside_the_range_is_rejected(threshold: object) -> None:
    [problem] = problems_of({"criteria": {"response_match_score": threshold}})
    assert problem.startswith("criteria.response_match_score: the threshold must be a number from 0 to 1, not ")


def test_a_threshold_is_compared_with_the_range_of_its_metric() -> None:
    assert read_plan({"criteria": {"response_evaluation_score": 5}}).metrics[0].threshold == 5
    assert problems_of({"criteria": {"response_evaluation_score": 0.5}}) == [
        "criteria.response_evaluation_score: the threshold must be a number from 1 to 5, not 0.5"
    ]


def test_an_informational_metric_accepts_no_threshold() -> None:
    assert read_plan({"criteria": {"token_usage_v1": {}}}).metrics[0].threshold is None
    assert "takes no threshold" in problems_of({"criteria": {"token_usage_v1": 1}})[0]


def test_every_problem_is_listed_at_once() -> None:
    document = {
        "criteria": {
            "tool_trajectory_avg_score": {"matchTyp": "EXACT", "threshold": 2},
            "response_match": 0.5,
            "trace_value": 0.5,
        },
        "crtieria": {},
        "trace_value": {
            "preset": "kp",
            "weights": {"complexity": 1, "novelty": 1, "tool_diversity": 0, "outcome_confidence": 0},
        },
        "gate": {"thresholds": 0.5, "required": ["safety_v1"]},
        "sampling": {"response_match": 7, "nope": 1},
        "customMetrics": {"mine": {"codeConfig": {"path": "os.system"}}},
    }
    found = problems_of(document)
    expected = [
        "criteria.tool_trajectory_avg_score.matchTyp: there is no such option; did you mean 'matchType'?",
        "criteria.tool_trajectory_avg_score: the threshold must be a number from 0 to 1, not 2",
        "criteria.response_match: there is no such metric; did you mean 'response_match_score'?",
        "criteria.trace_value: is not a criterion",
        "trace_value.preset: Input should be 'default' or 'knowledgepulse', not \"kp\"",
        "trace_value.weights: the four weights must sum to 1, not 2",
        "gate.thresholds: there is no such option; did you mean 'threshold'?",
        "sampling.response_match: Input should be less than or equal to 1, not 7",
        "customMetrics.mine.codeConfig.name: is missing; the config must give it",
        "crtieria: there is no such option; did you mean 'criteria'?",
        "gate.required: 'safety_v1' is not among the criteria",
        "sampling: 'nope' is not among the criteria",
    ]
    assert len(found) == len(expected)
    for start in expected:
        assert [problem for problem in found if problem.startswith(start)], (start, found)


def test_one_message_contains_every_problem() -> None:
    with pytest.raises(ConfigError, match=r"(?s)criteria\.a: .*criteria\.b: "):
        read_plan({"criteria": {"a": 1, "b": 1}})


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "cannot be read as JSON"),
        (b"\xff", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"criteria": {"safety_v1": NaN}}', "NaN is not valid JSON"),
        ('{"criteria": {"safety_v1": 1, "safety_v1": 0}}', "the key 'safety_v1' occurs twice"),
        ("[]", "must be a JSON object, not a list"),
        ('{"criteria": []}', "criteria: must be an object, not a list"),
        ('{"trace_value": 3}', "trace_value: must be an object, not a number"),
        ('{"trace_value": {}, "traceValue": {}}', "trace_value and traceValue are the same section"),
        ('{"sampling": "some"}', "sampling: Input should be a valid number"),
        ('{"sampling": -1}', "sampling: Input should be greater than or equal to 0, not -1"),
        ('{"gate": {"cacheSize": 0}}', "gate.cacheSize: Input should be greater than or equal to 1, not 0"),
    ],
)
def test_a_document_that_is_not_a_config_is_rejected(document: str | bytes, problem: str) -> None:
    [found] = problems_of(document)
    assert problem in found


def test_the_preset_knowledgepulse_has_the_global_scope_unless_the_gate_sets_one() -> None:
    preset: JsonValue = {"preset": "knowledgepulse"}
    assert read_plan({"trace_value": preset}).gate.scope == "global"
    assert read_plan({"traceValue": preset, "gate": {"scope": "task_domain"}}).gate.scope == "task_domain"
    assert read_plan(None).gate.scope == "task_domain"


def test_an_option_overrides_the_preset() -> None:
    read = read_plan(
        {"trace_value": {"preset": "knowledgepulse", "recoveryBonusMin": 5, "clamp": True, "weights_by_domain": {}}}
    )
    scorer = read.trace_value
    assert (scorer.recovery_bonus_min, scorer.clamp, scorer.weights_by_domain) == (5, True, {})


def test_the_metric_digest_depends_on_the_options_and_not_on_the_threshold() -> None:
    def digest(criterion: JsonValue) -> str:
        return read_plan({"criteria": {"tool_trajectory_avg_score": criterion}}).metrics[0].digest

    assert digest(1.0) == digest({"threshold": 0.5, "match_type": "exact"})
    assert digest(1.0) != digest({"ignore_args": True})


def test_the_digest_of_the_trace_value_depends_on_the_embedder() -> None:
    plan, other = read_plan({}), read_plan({"trace_value": {"clamp": False}})
    digests = {
        plan.trace_value_digest(None),
        plan.trace_value_digest("a"),
        plan.trace_value_digest("b"),
        other.trace_value_digest("a"),
        plan.gate_digest("a"),
    }
    assert len(digests) == 5
    assert plan.gate_digest("a") == read_plan({"gate": {"threshold": 0.1}}).gate_digest("a")


def test_the_config_digest_depends_on_the_meaning_and_not_on_the_spelling() -> None:
    one = '{"criteria": {"response_match_score": 0.8, "safety_v1": 1}, "gate": {"cacheSize": 9}}'
    other: dict[str, JsonValue] = {
        "gate": {"cache_size": 9},
        "criteria": {"safety_v1": "1.0", "response_match_score": {"threshold": 0.8}},
    }
    assert read_plan(one).digest == read_plan(other).digest == read_plan(json.dumps(other).encode()).digest
    changed: list[dict[str, JsonValue]] = [
        {"criteria": {"response_match_score": 0.7}},
        {"criteria": {"response_match_score": 0.8}},
        {"sampling": 0.5, "criteria": {"response_match_score": 0.8}},
        {"gate": {"threshold": 0.5}},
        {"trace_value": {"clamp": False}},
        {},
    ]
    assert len({read_plan(document).digest for document in changed}) == len(changed)


def digest_of(criterion: JsonValue, metric: str = "final_response_match_v2") -> str:
    return read_plan({"criteria": {metric: criterion}}).metrics[0].digest


def judged_by(**options: JsonValue) -> str:
    return digest_of({"threshold": 0.5, "judge_model_options": options})


def test_the_metric_digest_depends_on_the_judge_model_its_samples_and_sampling() -> None:
    assert judged_by() == judged_by(judge_model="gemini-2.5-flash", numSamples=5) == digest_of(0.9)
    assert judged_by() == judged_by(parallelism_limit=7) == judged_by(judge_model_config={"seed": None})
    changed = [
        judged_by(judge_model="other"),
        judged_by(num_samples=3),
        judged_by(judge_model_config={"temperature": 0}),
    ]
    assert len({judged_by(), *changed}) == 4


def test_the_window_of_a_judge_is_part_of_the_digests_of_the_criteria_that_ask_it() -> None:
    def plan(**judge: JsonValue) -> Plan:
        own: JsonValue = {"threshold": 1, "judge_model_options": {"judge_model": "openai/qwen"}}
        return read_plan({"criteria": {"safety_v1": own, "correctness": 1}, "judge": judge})

    def digests(found: Plan) -> list[str]:
        return [metric.digest for metric in found.metrics]

    plain = plan()
    sizes: list[dict[str, JsonValue]] = [{"openai/qwen": 32_768}, {"openai/qwen": 65_536}]
    for windows in sizes:
        narrow = plan(window_tokens=windows)
        assert (digests(narrow)[0] == digests(plain)[0], digests(narrow)[1] == digests(plain)[1]) == (False, True)
        assert narrow.digest != plain.digest
    of_fallback = plan(window_tokens={"openai/other": 32_768}, fallback={"openai/qwen": ["other"]})
    assert digests(of_fallback)[0] != digests(plan(fallback={"openai/qwen": ["other"]}))[0]


@pytest.mark.parametrize(
    ("model", "aliases", "window"),
    [
        ("gemini-2.5-flash", {}, "gemini/gemini-2.5-flash"),
        ("gpt-4o-mini", {}, "openai/gpt-4o-mini"),
        ("openai/qwen", {}, "openai/qwen"),
        ("hosted_vllm/org/qwen", {}, "hosted_vllm/org/qwen"),
        ("qwen", {}, "openai/qwen"),
        ("qwen", {}, "qwen"),
        ("gemini-2.5-flash", {"gemini-2.5-flash": "vertex_ai/gemini-2.5-flash"}, "vertex_ai/gemini-2.5-flash"),
        ("judge", {"judge": "azure/gpt-4o-mini"}, "azure/gpt-4o-mini"),
    ],
)
def test_only_the_window_of_the_model_that_is_asked_is_part_of_a_digest(
    model: str, aliases: dict[str, JsonValue], window: str
) -> None:
    def digest(**windows: JsonValue) -> str:
        criterion: JsonValue = {"threshold": 1, "judge_model_options": {"judge_model": model}}
        judge: JsonValue = {"models": aliases, "window_tokens": windows}
        return read_plan({"criteria": {"safety_v1": criterion}, "judge": judge}).metrics[0].digest

    bare = window.rpartition("/")[2]
    others = {f"azure/{window}", f"openrouter/{bare}", f"{window}-mini", "gemini/gemini-2.5-flash", "openai/judge"}
    assert digest() != digest(**{window: 32_768})
    assert digest() == digest(**dict.fromkeys(others - {window}, 32_768))


def test_the_longest_answer_of_a_judge_is_part_of_the_config_digest_alone() -> None:
    plain = read_plan({"criteria": {"safety_v1": 1}})
    longer = read_plan({"criteria": {"safety_v1": 1}, "judge": {"max_output_tokens": 16_384}})
    same = read_plan({"criteria": {"safety_v1": 1}, "judge": {"max_output_tokens": 8_192}})
    assert (plain.digest == same.digest, plain.digest == longer.digest) == (True, False)
    assert plain.metrics[0].digest == longer.metrics[0].digest


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"numSamples": 0}, "judge_model_options.numSamples: Input should be greater than or equal to 1, not 0"),
        ({"parallelism_limit": 0}, "Input should be greater than or equal to 1, not 0"),
        ({"judge_model": ""}, "judge_model"),
        ({"judgeModels": "m"}, "there is no such option; did you mean 'judgeModel'?"),
    ],
)
def test_an_invalid_judge_option_is_rejected(options: dict[str, object], problem: str) -> None:
    [found] = problems_of({"criteria": {"safety_v1": {"threshold": 1, "judge_model_options": options}}})
    assert found.startswith("criteria.safety_v1.judge")
    assert problem.split(".", 1)[-1] in found


@pytest.mark.parametrize(
    ("rubrics", "problem"),
    [
        ([IS_SO.model_dump(), IS_SO.model_dump()], "rubric id 'r' is used by two rubrics of the criterion"),
        ([{"rubric_content": {"text_property": "is so"}}], "rubrics.0.rubric_id: is missing; the config must give it"),
        ([{"rubricContent": {"textProperty": "is so"}}], "rubrics.0.rubricId: is missing; the config must give it"),
        ([{"rubric_id": " ", "rubric_content": {"text_property": "is so"}}], "a rubric of the criterion has an empty"),
        ([{"rubric_id": "r", "rubric_content": {}}], "rubric 'r' of the criterion has no text"),
        ([{"rubric_id": "r", "rubricContent": {"textProperty": 3}}], "rubric 'r' of the criterion has no text"),
    ],
)
def test_an_invalid_rubric_is_rejected(rubrics: object, problem: str) -> None:
    metric = "rubric_based_final_response_quality_v1"
    [found] = problems_of({"criteria": {metric: {"threshold": 1, "rubrics": rubrics}}})
    assert found.startswith(f"criteria.{metric}.rubrics")
    assert problem in found


def test_an_option_common_to_adks_criteria_is_accepted_where_it_has_no_effect() -> None:
    for metric in ("hallucinations_v1", "safety_v1", "rubric_based_tool_use_quality_v1"):
        assert digest_of({"threshold": 1, "includeIntermediateResponsesInFinal": True}, metric) == digest_of(1, metric)
    assert digest_of({"threshold": 1, "includeIntermediateResponsesInFinal": True}) != digest_of(1)


def test_a_gate_that_requires_certificates_rests_on_a_judge() -> None:
    problem = (
        "gate.require_certified: gate.required names no criterion that asks a judge; add one, or remove this option"
    )
    assert problems_of({"gate": {"require_certified": True}}) == [problem]
    gate = {"required": ["response_match_score"], "require_certified": True}
    assert problems_of({"criteria": {"response_match_score": 0.5}, "gate": gate}) == [problem]


def test_a_certificate_below_its_own_bar_is_refused() -> None:
    given = [certificate().model_dump(mode="json"), certificate(tnr_bound=0.7999).model_dump(mode="json")]
    problem = (
        "gate.certificates.1.tnr_bound: 0.7999 is below the bar 0.8, so it proves nothing of helpful; remove this "
        "certificate, and run `traceweir trust certify` again"
    )
    assert problems_of({"gate": {"certificates": given}}) == [problem]


def test_certificates_change_the_digest_of_the_config_where_they_count_and_no_id_of_a_decision() -> None:
    def plan(**gate: Any) -> Plan:
        return read_plan({"criteria": {"safety_v1": 1}, "gate": {"required": ["safety_v1"], **gate}})

    given = {"certificates": [certificate(criterion="safety_v1").model_dump(mode="json")]}
    assert plan(**given).digest == plan().digest == plan(require_certified=False).digest
    strict = plan(require_certified=True)
    assert strict.digest not in (plan().digest, plan(require_certified=True, **given).digest)
    assert strict.gate_digest(None) == plan(require_certified=True, **given).gate_digest(None)
    assert strict.gate_digest(None) != plan().gate_digest(None)

"""Reads the criteria of a config, each into a metric."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.config import AgentEvaluation
from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import RUNS_ON, full_name
from traceweir.scorers.evaluation.cascade import When
from traceweir.scorers.evaluation.config_problems import ConfigError, kind_of, option_names, validated
from traceweir.scorers.evaluation.metric import Metric, canonical, digest_of, metric_digest
from traceweir.scorers.evaluation.own_criteria import is_own, misspelt_prompt, own_metric
from traceweir.scorers.evaluation.registry import (
    BUILT_IN,
    UNSUPPORTED,
    UnknownMetric,
    UnusableMetric,
    scorer_class,
)
from traceweir.scorers.evaluation.settling import needless_wait, settle_s_of
from traceweir.scorers.evaluation.thresholds import ANY_NUMBER, threshold_of
from traceweir.scorers.judged.base import JudgedScorer, RatingOptions

ADK_DEFAULT_CRITERIA = ("tool_trajectory_avg_score", "response_match_score")
"""The criteria with which Google ADK evaluates where no config is given; each has a default threshold."""

IGNORED_ADK_OPTIONS = {"include_intermediate_responses_in_final", "includeIntermediateResponsesInFinal"}
"""Options that ADK accepts in every criterion; without effect in criteria that do not count intermediate responses."""


def metric_of(name: str, criterion: JsonValue, code: str | None) -> Metric:
    """Returns the metric of a criterion of a config; `code` is the config's own code for it, or None.

    Raises:
        ConfigError: the criterion has problems; the error lists all of them.
    """
    if name in ("trace_value", "gate"):
        raise ConfigError(
            [f"{name}: is not a criterion; set options in {name!r} beside criteria, the threshold in gate.threshold"]
        )
    problems: list[str] = []
    when: When | None = None
    settle_s = 0.0
    if isinstance(criterion, dict):
        criterion = dict(criterion)
        if "when" in criterion:
            when = _when(name, criterion.pop("when"), problems)
        if "settle_s" in criterion:
            settle_s = settle_s_of(name, criterion.pop("settle_s"), problems)
    if is_own(criterion):
        own = own_metric(name, criterion, problems)
        if own is None or problems:
            raise ConfigError(problems)
        return replace(own, when=when, settle_s=settle_s)
    spelled = name
    name = full_name(name)
    if code is None and isinstance(criterion, dict) and (problem := misspelt_prompt(name, criterion)):
        raise ConfigError([problem])
    options: JsonObject = dict(criterion) if isinstance(criterion, dict) else {"threshold": criterion}
    scorer: Scorer | None = None
    within: tuple[float, float] | None = UNSUPPORTED.get(name) if code is None else ANY_NUMBER
    kind = None if name in UNSUPPORTED else _scorer_class(spelled, code)
    value = options.pop("threshold", None if kind is None else kind.default_threshold)
    if kind is not None:
        if _ignores_intermediate_responses(name, kind):
            options = {key: option for key, option in options.items() if key not in IGNORED_ADK_OPTIONS}
        known = option_names(kind) | {"threshold", "when"} | ({"settle_s"} if kind.judged else set())
        scorer = validated(kind, options, spelled, problems, known)
        within = None if kind.informational else kind.range
    threshold = threshold_of(spelled, value, within, problems)
    problems += needless_wait(spelled, settle_s, scorer)
    if problems:
        raise ConfigError(problems)
    digest = digest_of(name, scorer) if scorer is not None else metric_digest(name, "", canonical(options))
    return Metric(name, threshold, scorer, digest, code=code, when=when, settle_s=settle_s)


def automatic_metrics(section: AgentEvaluation, criteria: Collection[str], problems: list[str]) -> list[Metric]:
    """Returns the metrics of Agent Evaluation that `criteria` does not name, each with its `runs_on`."""
    options = validated(RatingOptions, section.judge_model_options, "agent_evaluation.judge_model_options", problems)
    named = {full_name(name) for name in criteria}
    found: list[Metric] = []
    for name, runs_on in RUNS_ON.items():
        kind = BUILT_IN[name]
        if options is None or name in named or (kind.judged and not section.judged):
            continue
        scorer = kind.model_validate({"judge_model_options": options} if kind.judged else {})
        found.append(Metric(name, None, scorer, digest_of(name, scorer), runs_on))
    return found


def with_full_names(metrics: Sequence[Metric]) -> list[Metric]:
    """Returns the metrics with the full names of criteria in their conditions."""
    found = []
    for metric in metrics:
        if metric.when is not None:
            named = [each.model_copy(update={"metric": full_name(each.metric)}) for each in metric.when.any]
            metric = replace(metric, when=metric.when.model_copy(update={"any": named}))
        found.append(metric)
    return found


def as_judged(metric: Metric, judge: JudgeConfig) -> Metric:
    """Returns the metric with the sampling parameters, the fallback and the windows of its judge in its digest."""
    scorer = metric.scorer
    if scorer is None or scorer.judge_model is None:
        return metric
    sampling = judge.sampling_of(scorer.judge_model)
    others = judge.fallback.get(scorer.judge_model, ())
    fallback = [canonical([each, sent]) if (sent := judge.sampling_of(each)) else each for each in others]
    windows = judge.windows_of(scorer.judge_model, *others)
    if not sampling and not fallback and not windows:
        return metric
    return replace(metric, digest=digest_of(metric.name, scorer, sampling, fallback, windows))


def _when(name: str, value: JsonValue, problems: list[str]) -> When | None:
    if not isinstance(value, dict):
        problems.append(f"{name}.when: must be an object, not {kind_of(value)}")
        return None
    return validated(When, value, f"{name}.when", problems)


def _scorer_class(name: str, code: str | None) -> type[Scorer] | None:
    """Returns the scorer class of a metric; None for a metric of the config's own code that has no scorer here."""
    try:
        return scorer_class(name)
    except UnknownMetric as error:
        if code is not None:
            return None
        raise ConfigError([str(error)]) from None
    except UnusableMetric as error:
        raise ConfigError([str(error)]) from None


def _ignores_intermediate_responses(name: str, kind: type[Scorer]) -> bool:
    is_adk_metric = name in ADK_DEFAULT_CRITERIA or issubclass(kind, JudgedScorer)
    return is_adk_metric and not IGNORED_ADK_OPTIONS & kind.model_fields.keys()

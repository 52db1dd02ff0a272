"""Reads the evaluation config into a plan, once at start, and reports all its problems together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.config import AgentEvaluation, ChallengerConfig, EvalConfig, GateConfig
from traceweir.schemas.judge_config import Budget, JudgeConfig
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import RUNS_ON, full_name
from traceweir.scorers.evaluation.cascade import When, rounds_of
from traceweir.scorers.evaluation.config_names import code_names, named_twice, unknown_names
from traceweir.scorers.evaluation.config_problems import (
    MAX_VALUES,
    are_enough,
    is_too_large,
    kind_of,
    reported,
    validated,
)
from traceweir.scorers.evaluation.default_criteria import default_metrics
from traceweir.scorers.evaluation.metric import Metric, canonical, digest_of, metric_digest, sha256
from traceweir.scorers.evaluation.own_criteria import is_own, own_metric
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
from traceweir.scorers.metrics.trace_value import TraceValue
from traceweir.scorers.redaction.custom_patterns import unusable_patterns
from traceweir.scorers.spelling import did_you_mean

ADK_DEFAULT_CRITERIA = ("tool_trajectory_avg_score", "response_match_score")
"""The criteria with which Google ADK evaluates where no config is given; each has a default threshold."""

MAX_CRITERIA = 500
"""Maximum number of criteria of a config. Each becomes a Score of each session."""

IGNORED_ADK_OPTIONS = {"include_intermediate_responses_in_final", "includeIntermediateResponsesInFinal"}
"""Options that ADK accepts in every criterion; without effect in criteria that do not count intermediate responses."""


class ConfigError(ValueError):
    """Raised for a config that cannot be used; `problems` lists its problems, up to 50."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = reported(problems)
        super().__init__(
            "the evaluation config cannot be used:\n" + "\n".join(f"  - {problem}" for problem in self.problems)
        )


@dataclass(frozen=True)
class Challenger:
    """Another config that scores a part of the sessions beside that of a plan."""

    name: str
    sample: float
    """Share of the sessions, above 0 and at most 1."""
    budget_usd: float | None
    """The most that its judges can cost in all; None: no such limit."""
    plan: Plan
    document: JsonObject
    """The config, as in the document of the plan."""

    @cached_property
    def id(self) -> str:
        """Equal for the same name and the same config; another share or budget is the same challenger."""
        return challenger_id(self.name, self.document)


def challenger_id(name: str, document: JsonObject) -> str:
    """Returns the id of a challenger with this name and config."""
    return sha256(canonical([name, document]))


def without_challenger(document: Mapping[str, JsonValue]) -> JsonObject:
    """Returns a config without its section `challenger`."""
    return {name: value for name, value in document.items() if name != "challenger"}


@dataclass(frozen=True)
class Plan:
    """Holds the metrics to measure, the sampling of sessions, and the conditions of the gate."""

    metrics: tuple[Metric, ...]
    trace_value: TraceValue
    gate: GateConfig
    sampling: Mapping[str, float]
    """Share of sessions, from 0 to 1, on which each metric is measured."""
    digest: str
    """Equal for equivalent configs, thresholds included. Budgets and timeouts of judging do not count."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    is_default: bool = False
    """Whether there is no config, and the default criteria are measured."""
    challenger: Challenger | None = None
    """Another config that scores a part of the sessions too; not part of the digest, because it changes no score."""
    document: JsonObject | None = field(default=None, compare=False, repr=False)
    """The config as parsed JSON; None if there is no config."""

    @cached_property
    def rounds(self) -> Sequence[Sequence[Metric]]:
        """The metrics in the rounds in which they are measured: each after those that decide whether it is."""
        order = rounds_of([(metric.name, metric.when) for metric in self.metrics])
        return [[self.metrics[index] for index in indices] for indices in order]

    @cached_property
    def judged(self) -> frozenset[str]:
        """Names of the criteria that ask a judge."""
        return frozenset(metric.name for metric in self.metrics if metric.scorer is not None and metric.scorer.judged)

    def trace_value_digest(self, embedder_id: str | None) -> str:
        """Returns the metric digest of trace values; `embedder_id` is None if no embedder computes novelty."""
        return metric_digest("trace_value", TraceValue.version, self._options[0], embedder_id)

    def gate_digest(self, embedder_id: str | None) -> str:
        """Returns the metric digest of the gate's decisions."""
        return metric_digest("gate", GATE_VERSION, self._options[1], embedder_id)

    @cached_property
    def _options(self) -> tuple[str, str]:
        return canonical(self.trace_value.model_dump(mode="json")), canonical(
            self.gate.model_dump(mode="json", exclude={"threshold"}, exclude_none=True)
        )


GATE_VERSION = "2"
"""Version of the gate's rules. Increase the version when the decision on an unchanged candidate changes."""


def read_plan(document: str | bytes | Mapping[str, JsonValue] | None) -> Plan:
    """Returns the plan of a config; without a config, a plan with the default criteria, trace value and gate.

    Args:
        document: Google ADK's `test_config.json`, or the same file with Traceweir's sections, as text or as parsed
            JSON; None if there is no config, which differs from a config without criteria.

    Raises:
        ConfigError: the config has problems; the error lists all of them.

    >>> [(metric.name, metric.threshold) for metric in read_plan('{"criteria": {"response_match_score": 0.5}}').metrics]
    [('response_match_score', 0.5)]
    """
    loaded = _loaded(document)
    sections = dict(loaded)
    problems: list[str] = []
    criteria = _section(sections, ("criteria",), problems)
    if len(criteria) > MAX_CRITERIA:
        raise ConfigError([f"criteria: {len(criteria)} are too many; a config has {MAX_CRITERIA} at most"])
    problems += named_twice(criteria, "criteria")
    options = _section(sections, ("trace_value", "traceValue"), problems)
    challenger = _challenger(sections, problems)

    codes = code_names(sections)
    metrics = []
    for name, criterion in criteria.items():
        if are_enough(problems):
            break
        try:
            metrics.append(_metric(name, criterion, codes.get(name)))
        except ConfigError as error:
            problems += [f"criteria.{problem}" for problem in error.problems]
    trace_value = validated(TraceValue, options, "trace_value", problems)
    config = validated(EvalConfig, sections, "", problems)
    problems += [f"gate.redact{each}" for each in unusable_patterns(config.gate.redact if config else {})]
    if config and config.agent_evaluation:
        metrics += _automatic(config.agent_evaluation, criteria, problems)
    if document is None:
        metrics += default_metrics()
    if config and not problems:
        problems += _unused_fallbacks(metrics, config.judge.fallback)
        metrics = _with_full_names(metrics)
        problems += _cascade_problems(metrics, config.gate.required, config.sampling)
        problems += _unused_budgets(metrics, config.judge.budget)
    problems += unknown_names(sections, criteria)
    if problems or trace_value is None or config is None:
        raise ConfigError(problems)
    metrics = [_as_judged(metric, config.judge) for metric in metrics]

    budget = config.judge.budget
    if budget.metrics:
        named = {full_name(name): limits for name, limits in budget.metrics.items()}
        judge = config.judge.model_copy(update={"budget": budget.model_copy(update={"metrics": named})})
        config = config.model_copy(update={"judge": judge})
    gate = config.gate
    required = [full_name(name) for name in gate.required]
    if required != gate.required:
        gate = gate.model_copy(update={"required": required})
    if "scope" not in gate.model_fields_set:
        gate = gate.model_copy(update={"scope": trace_value.preferred_scope})
    sampling = _shares(config.sampling, metrics)
    digest_parts: dict[str, object] = {
        "criteria": {metric.name: [metric.threshold, metric.digest] for metric in metrics},
        "trace_value": [TraceValue.version, trace_value.model_dump(mode="json")],
        "gate": [GATE_VERSION, gate.model_dump(mode="json", exclude_none=True)],
        "sampling": sampling,
    }
    if cascade := {metric.name: metric.when.model_dump(mode="json") for metric in metrics if metric.when}:
        digest_parts["cascade"] = cascade
    if config.judge.models or config.judge.structured_output != "auto":
        digest_parts["judge"] = [dict(config.judge.models), config.judge.structured_output]
    if sampled := {model: sent for model in config.judge.options if (sent := config.judge.sampling_of(model))}:
        digest_parts["judge.options"] = sampled
    if config.judge.fallback:
        digest_parts["fallback"] = dict(config.judge.fallback)
    if config.judge.window_tokens:
        digest_parts["judge.window_tokens"] = dict(config.judge.window_tokens)
    # The longest answer decides which answers are cut off, and what is left of a window. It is no part of a metric's digest,
    # so that a score whose answer was cut off is replaced when the limit is raised.
    if config.judge.max_output_tokens != JudgeConfig.model_fields["max_output_tokens"].default:
        digest_parts["judge.max_output_tokens"] = config.judge.max_output_tokens
    if document is None:
        digest_parts["default"] = True
    if config.agent_evaluation:
        digest_parts["agent_evaluation"] = config.agent_evaluation.model_dump(mode="json")
    digest = sha256(canonical(digest_parts))
    return Plan(
        tuple(metrics),
        trace_value,
        gate,
        sampling,
        digest,
        config.judge,
        is_default=document is None,
        challenger=challenger,
        document=None if document is None else dict(loaded),
    )


def _with_full_names(metrics: Sequence[Metric]) -> list[Metric]:
    """Returns the metrics with the full names of criteria in their conditions."""
    found = []
    for metric in metrics:
        if metric.when is not None:
            named = [each.model_copy(update={"metric": full_name(each.metric)}) for each in metric.when.any]
            metric = replace(metric, when=metric.when.model_copy(update={"any": named}))
        found.append(metric)
    return found


def _cascade_problems(
    metrics: Sequence[Metric], required: Sequence[str], sampling: float | Mapping[str, float]
) -> list[str]:
    """Returns the problems of conditions: a criterion that is unknown, of traces, sampled or the gate's, or a circle."""
    shares = _shares(sampling, metrics)
    by_name = {metric.name: metric for metric in metrics}
    problems = []
    for metric in metrics:
        if metric.when is not None and metric.scorer is not None and metric.scorer.level == "trace":
            problems.append(f"criteria.{metric.name}.when: a metric of traces takes no condition; remove it")
        for place, condition in enumerate(metric.when.any if metric.when else ()):
            where = f"criteria.{metric.name}.when.any.{place}.metric"
            other = by_name.get(condition.metric)
            if other is None:
                problems.append(f"{where}: {condition.metric!r} is not among the criteria")
            elif other.scorer is not None and other.scorer.level == "trace":
                problems.append(f"{where}: {condition.metric} measures traces, and has no score of the session")
            elif shares[other.name] < 1:
                problems.append(
                    f"{where}: {condition.metric} is measured on a share of the sessions (sampling), so nobody could say "
                    f"how probable it is that {metric.name} is asked; sample {metric.name} by `else` instead"
                )
    conditional = {metric.name for metric in metrics if metric.when is not None and metric.when.otherwise < 1}
    problems += [
        f"gate.required: {name} has the condition `when`, so a trace of a session that is not chosen would be rejected; "
        "remove one of the two"
        for name in required
        if full_name(name) in conditional
    ]
    if not problems:
        try:
            rounds_of([(metric.name, metric.when) for metric in metrics])
        except ValueError as error:
            problems.append(f"criteria: {error}")
    return problems


def _unused_fallbacks(metrics: Sequence[Metric], fallback: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the problems of a fallback for a model that no criterion asks, which would never have an effect."""
    judged = [metric.scorer for metric in metrics if metric.scorer is not None and metric.scorer.judged]
    asked = {scorer.judge_model for scorer in judged}
    # A scorer of a plugin can ask a model that it does not name.
    if None in asked:
        return []
    names = ", ".join(sorted(map(str, asked))) or "none"
    return [
        f"judge.fallback.{model}: no criterion asks this model (asked: {names}); name the judge_model of a criterion"
        for model in fallback
        if model not in asked
    ]


def _unused_budgets(metrics: Sequence[Metric], budget: Budget) -> list[str]:
    """Returns the problems of limits for metrics that ask no judge, which would never have an effect."""
    judged = [metric.name for metric in metrics if metric.scorer is not None and metric.scorer.judged]
    problems = [
        f"judge.budget.metrics.{name}: no criterion of this name asks a judge; {did_you_mean(name, judged)}"
        for name in budget.metrics
        if full_name(name) not in judged
    ]
    counts = Counter(map(full_name, budget.metrics))
    return problems + [
        f"judge.budget.metrics: {name} has limits twice, by its full and its short name; keep one"
        for name, count in counts.items()
        if count > 1
    ]


def _loaded(document: str | bytes | Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue]:
    if document is None:
        return {}
    if isinstance(document, str | bytes):
        try:
            document = json.loads(document, object_pairs_hook=_unique_keys, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            raise ConfigError([f"the document cannot be read as JSON: {error}"]) from None
    if not isinstance(document, Mapping):
        raise ConfigError([f"the document must be a JSON object, not {kind_of(document)}"])
    if is_too_large(document):
        raise ConfigError(
            [f"the config has more than {MAX_VALUES:,} values, the most that is allowed; shorten its lists"]
        )
    return document


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"the key {next(name for name in counts if counts[name] > 1)!r:.200} occurs twice")
    return found


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")


def _section(sections: dict[str, JsonValue], spellings: tuple[str, ...], problems: list[str]) -> JsonObject:
    """Removes a section from the document and returns it, so that its problems are reported with their own paths."""
    given = [spelling for spelling in spellings if spelling in sections]
    values = [sections.pop(spelling) for spelling in given]
    if len(given) > 1:
        problems.append(f"{given[0]} and {given[1]} are the same section; keep one of them")
    value = values[0] if values else {}
    if isinstance(value, dict):
        return value
    problems.append(f"{given[0]}: must be an object, not {kind_of(value)}")
    return {}


def _challenger(sections: dict[str, JsonValue], problems: list[str]) -> Challenger | None:
    """Removes the section `challenger` from the document and returns it, with the plan of the config in it."""
    found = sections.pop("challenger", None)
    if found is None:
        return None
    if not isinstance(found, dict):
        problems.append(f"challenger: must be an object, not {kind_of(found)}")
        return None
    section = validated(ChallengerConfig, found, "challenger", problems)
    # Also of a section with problems, so that all are reported together.
    config = found.get("config")
    if not isinstance(config, dict):
        return None
    if "challenger" in config:
        problems.append("challenger.config.challenger: a challenger has no challenger; remove this section")
        config = without_challenger(config)
    try:
        plan = read_plan(config)
    except ConfigError as error:
        problems += [f"challenger.config.{problem}" for problem in error.problems]
        return None
    return None if section is None else Challenger(section.name, section.sample, section.budget, plan, config)


def _as_judged(metric: Metric, judge: JudgeConfig) -> Metric:
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


def _metric(name: str, criterion: JsonValue, code: str | None) -> Metric:
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
    options: JsonObject = dict(criterion) if isinstance(criterion, dict) else {"threshold": criterion}
    scorer: Scorer | None = None
    within: tuple[float, float] | None = UNSUPPORTED.get(name) if code is None else ANY_NUMBER
    kind = None if name in UNSUPPORTED else _scorer_class(spelled, code)
    value = options.pop("threshold", None if kind is None else kind.default_threshold)
    if kind is not None:
        if _ignores_intermediate_responses(name, kind):
            options = {key: option for key, option in options.items() if key not in IGNORED_ADK_OPTIONS}
        scorer = validated(kind, options, spelled, problems)
        within = None if kind.informational else kind.range
    threshold = threshold_of(spelled, value, within, problems)
    problems += needless_wait(spelled, settle_s, scorer)
    if problems:
        raise ConfigError(problems)
    digest = digest_of(name, scorer) if scorer is not None else metric_digest(name, "", canonical(options))
    return Metric(name, threshold, scorer, digest, code=code, when=when, settle_s=settle_s)


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


def _automatic(section: AgentEvaluation, criteria: Collection[str], problems: list[str]) -> list[Metric]:
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


def _shares(sampling: float | Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    if not isinstance(sampling, Mapping):
        return {metric.name: sampling for metric in metrics}
    shares = {full_name(name): share for name, share in sampling.items()}
    return {metric.name: shares.get(metric.name, 1.0) for metric in metrics}


def _ignores_intermediate_responses(name: str, kind: type[Scorer]) -> bool:
    is_adk_metric = name in ADK_DEFAULT_CRITERIA or issubclass(kind, JudgedScorer)
    return is_adk_metric and not IGNORED_ADK_OPTIONS & kind.model_fields.keys()

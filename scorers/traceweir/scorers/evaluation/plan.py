"""Reads the evaluation config into a plan, once at start, and reports all its problems together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.config import ChallengerConfig, EvalConfig, GateConfig
from traceweir.schemas.judge_config import JudgeConfig
from traceweir.schemas.text import printable
from traceweir.scorers.databricks_names import full_name
from traceweir.scorers.evaluation.cascade import rounds_of
from traceweir.scorers.evaluation.config_document import loaded_document, taken_section
from traceweir.scorers.evaluation.config_names import code_names, named_twice, unknown_names
from traceweir.scorers.evaluation.config_problems import (
    ConfigError,
    are_enough,
    kind_of,
    validated,
)
from traceweir.scorers.evaluation.criteria import as_judged, automatic_metrics, metric_of, with_full_names
from traceweir.scorers.evaluation.criteria_problems import cascade_problems, shares_of, unused_budgets, unused_fallbacks
from traceweir.scorers.evaluation.default_criteria import default_metrics
from traceweir.scorers.evaluation.metric import Metric, canonical, metric_digest, sha256
from traceweir.scorers.metrics.trace_value import TraceValue
from traceweir.scorers.redaction.custom_patterns import unusable_patterns

MAX_CRITERIA = 500
"""Maximum number of criteria of a config. Each becomes a Score of each session."""
_ROUNDING = 1e-9
"""By how much a bound that is found by halving can be below the bar that it reaches."""


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
            _gate_options(self.gate, without={"threshold", "certificates"})
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
    loaded = loaded_document(document)
    sections = dict(loaded)
    problems: list[str] = []
    criteria = taken_section(sections, ("criteria",), problems)
    if len(criteria) > MAX_CRITERIA:
        raise ConfigError([f"criteria: {len(criteria)} are too many; a config has {MAX_CRITERIA} at most"])
    problems += named_twice(criteria, "criteria")
    options = taken_section(sections, ("trace_value", "traceValue"), problems)
    challenger = _challenger(sections, problems)

    codes = code_names(sections)
    metrics = []
    for name, criterion in criteria.items():
        if are_enough(problems):
            break
        try:
            metrics.append(metric_of(name, criterion, codes.get(name)))
        except ConfigError as error:
            problems += [f"criteria.{problem}" for problem in error.problems]
    trace_value = validated(TraceValue, options, "trace_value", problems)
    config = validated(EvalConfig, sections, "", problems)
    problems += [f"gate.redact{each}" for each in unusable_patterns(config.gate.redact if config else {})]
    if config and config.agent_evaluation:
        metrics += automatic_metrics(config.agent_evaluation, criteria, problems)
    if document is None:
        metrics += default_metrics()
    if config and not problems:
        problems += unused_fallbacks(metrics, config.judge.fallback)
        metrics = with_full_names(metrics)
        problems += cascade_problems(metrics, config.gate.required, config.sampling)
        problems += unused_budgets(metrics, config.judge.budget)
    problems += unknown_names(sections, criteria)
    if problems or trace_value is None or config is None:
        raise ConfigError(problems)
    metrics = [as_judged(metric, config.judge) for metric in metrics]

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
    sampling = shares_of(config.sampling, metrics)
    if problems := [*_uncertifiable(metrics, gate), *_without_proof(gate)]:
        raise ConfigError(problems)
    digest_parts: dict[str, object] = {
        "criteria": {metric.name: [metric.threshold, metric.digest] for metric in metrics},
        "trace_value": [TraceValue.version, trace_value.model_dump(mode="json")],
        "gate": [GATE_VERSION, _gate_options(gate)],
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


def _gate_options(gate: GateConfig, without: AbstractSet[str] = frozenset()) -> JsonObject:
    """Returns the options of the gate that count; certificates count only where they are required, as in a decision.

    A decision under other certificates has the same id, as one by another threshold has: the later one counts.
    """
    return gate.model_dump(mode="json", exclude={*without, *unused_gate_options(gate)}, exclude_none=True)


def unused_gate_options(gate: GateConfig) -> AbstractSet[str]:
    """Returns the names of the options on which no decision of the gate depends."""
    return frozenset() if gate.require_certified else frozenset({"require_certified", "certificates"})


def _uncertifiable(metrics: Sequence[Metric], gate: GateConfig) -> list[str]:
    required = [each for each in metrics if each.name in gate.required]
    if not gate.require_certified or any(each.source == "model" for each in required):
        return []
    return [
        "gate.require_certified: gate.required names no criterion that asks a judge; add one, or remove this option"
    ]


def _without_proof(gate: GateConfig) -> list[str]:
    return [
        f"gate.certificates.{place}.{name}: {bound:g} is below the bar {each.bar:g}, so it proves nothing of "
        f"{printable(each.criterion, 100)}; remove this certificate, and run `traceweir trust certify` again"
        for place, each in enumerate(gate.certificates)
        for name, bound in (("tpr_bound", each.tpr_bound), ("tnr_bound", each.tnr_bound))
        if bound < each.bar - _ROUNDING
    ]


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

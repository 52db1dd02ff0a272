"""A plan: the evaluation config, read once at start, with every problem of it found at once."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.config import AgentEvaluation, EvalConfig, GateConfig
from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import RUNS_ON, full_name, short_name
from traceweir.scorers.evaluation.config_problems import kind_of, shown, validated
from traceweir.scorers.evaluation.metric import Metric, canonical, digest_of, metric_digest, sha256
from traceweir.scorers.evaluation.registry import BUILT_IN, UNSUPPORTED, UnusableMetric, scorer_class
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.yes_no_rating import RatingOptions
from traceweir.scorers.metrics.trace_value import TraceValue
from traceweir.scorers.redaction.custom_patterns import compiled
from traceweir.scorers.spelling import did_you_mean

DEFAULT_THRESHOLDS = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""The thresholds that Google ADK has for a metric whose config names none."""

WITHOUT_EFFECT = {"include_intermediate_responses_in_final", "includeIntermediateResponsesInFinal"}
"""Options that ADK accepts in every criterion, and that change nothing in those which do not read intermediate responses as answers."""


class ConfigError(ValueError):
    """A config that cannot be used; `problems` names everything that is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "the evaluation config cannot be used:\n" + "\n".join(f"  - {problem}" for problem in problems)
        )
        self.problems = list(problems)


@dataclass(frozen=True)
class Plan:
    """What is measured, on which sessions, and what the gate asks for."""

    metrics: tuple[Metric, ...]
    trace_value: TraceValue
    gate: GateConfig
    sampling: Mapping[str, float]
    """The share of sessions, from 0 to 1, on which each metric is measured."""
    digest: str
    """Equal for configs that say the same, thresholds included. What judging may cost, and its patience, do not count."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)

    @cached_property
    def judged(self) -> frozenset[str]:
        """The criteria that ask a judge."""
        return frozenset(metric.name for metric in self.metrics if metric.scorer is not None and metric.scorer.judged)

    def trace_value_digest(self, embedder_id: str | None) -> str:
        """The metric digest of trace values whose novelty comes from this embedder; None: from none."""
        return metric_digest("trace_value", TraceValue.version, self._options[0], embedder_id)

    def gate_digest(self, embedder_id: str | None) -> str:
        """The metric digest of the gate's decisions."""
        return metric_digest("gate", GATE_VERSION, self._options[1], embedder_id)

    @cached_property
    def _options(self) -> tuple[str, str]:
        return canonical(self.trace_value.model_dump(mode="json")), canonical(
            self.gate.model_dump(mode="json", exclude={"threshold"})
        )


GATE_VERSION = "1"
"""Raise it when the same candidate would be decided otherwise."""


def read_plan(document: str | bytes | Mapping[str, JsonValue] | None) -> Plan:
    """The plan that a config asks for; without a config, the trace value and the gate with their defaults.

    Args:
        document: Google ADK's `test_config.json`, or Traceweir's with more in it: its text, or what JSON made of it.

    Raises:
        ConfigError: with every problem that the config has.

    >>> [(metric.name, metric.threshold) for metric in read_plan('{"criteria": {"response_match_score": 0.5}}').metrics]
    [('response_match_score', 0.5)]
    """
    sections = dict(_loaded(document))
    problems: list[str] = []
    criteria = _section(sections, ("criteria",), problems)
    problems += _named_twice(criteria, "criteria")
    options = _section(sections, ("trace_value", "traceValue"), problems)

    metrics = []
    for name, criterion in criteria.items():
        try:
            metrics.append(_metric(name, criterion))
        except ConfigError as error:
            problems += [f"criteria.{problem}" for problem in error.problems]
    trace_value = validated(TraceValue, options, "trace_value", problems)
    config = validated(EvalConfig, sections, "", problems)
    problems += _unusable_patterns(config.gate.redact if config else {})
    if config and config.agent_evaluation:
        metrics += _automatic(config.agent_evaluation, criteria, problems)
    problems += _unknown_names(sections, criteria)
    if problems or trace_value is None or config is None:
        raise ConfigError(problems)

    gate = config.gate
    required = [full_name(name) for name in gate.required]
    if required != gate.required:
        gate = gate.model_copy(update={"required": required})
    if "scope" not in gate.model_fields_set:
        gate = gate.model_copy(update={"scope": trace_value.preferred_scope})
    sampling = _shares(config.sampling, metrics)
    said = {
        "criteria": {metric.name: [metric.threshold, metric.digest] for metric in metrics},
        "trace_value": [TraceValue.version, trace_value.model_dump(mode="json")],
        "gate": [GATE_VERSION, gate.model_dump(mode="json")],
        "sampling": sampling,
    }
    if config.judge.models or config.judge.structured_output != "auto":
        said["judge"] = [dict(config.judge.models), config.judge.structured_output]
    if config.agent_evaluation:
        said["agent_evaluation"] = config.agent_evaluation.model_dump(mode="json")
    return Plan(tuple(metrics), trace_value, gate, sampling, sha256(canonical(said)), config.judge)


def _loaded(document: str | bytes | Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue]:
    if document is None:
        return {}
    if isinstance(document, str | bytes):
        try:
            document = json.loads(document, object_pairs_hook=_once, parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            raise ConfigError([f"it cannot be read as JSON: {error}"]) from None
    if not isinstance(document, Mapping):
        raise ConfigError([f"it must be a JSON object, not {kind_of(document)}"])
    return document


def _once(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _section(sections: dict[str, JsonValue], spellings: tuple[str, ...], problems: list[str]) -> JsonObject:
    """Take a section out of the document, so that what is wrong in it is reported in its own terms."""
    given = [spelling for spelling in spellings if spelling in sections]
    values = [sections.pop(spelling) for spelling in given]
    if len(given) > 1:
        problems.append(f"{given[0]} and {given[1]} are the same section; keep one of them")
    value = values[0] if values else {}
    if isinstance(value, dict):
        return value
    problems.append(f"{given[0]}: must be an object, not {kind_of(value)}")
    return {}


def _metric(name: str, criterion: JsonValue) -> Metric:
    if name in ("trace_value", "gate"):
        raise ConfigError(
            [f"{name}: is no criterion; its options stand in {name!r} beside criteria, its threshold in gate.threshold"]
        )
    spelled, name = name, full_name(name)
    options: JsonObject = dict(criterion) if isinstance(criterion, dict) else {"threshold": criterion}
    stated = options.pop("threshold", DEFAULT_THRESHOLDS.get(name))
    problems: list[str] = []
    scorer: Scorer | None = None
    if name in UNSUPPORTED:
        within = UNSUPPORTED[name]
    else:
        try:
            kind = scorer_class(spelled)
        except UnusableMetric as error:
            raise ConfigError([str(error)]) from None
        if _reads_no_response_beside_the_final_one(name, kind):
            options = {key: value for key, value in options.items() if key not in WITHOUT_EFFECT}
        scorer = validated(kind, options, spelled, problems)
        within = None if kind.informational else kind.range
    threshold = _threshold(spelled, stated, within, problems)
    if problems:
        raise ConfigError(problems)
    if scorer is None:
        return Metric(name, threshold, None, metric_digest(name, "", canonical(options)))
    return Metric(name, threshold, scorer, digest_of(name, scorer))


def _automatic(wanted: AgentEvaluation, criteria: Collection[str], problems: list[str]) -> list[Metric]:
    """The metrics of Agent Evaluation that are not named already, each where it goes with what is expected."""
    options = validated(RatingOptions, wanted.judge_model_options, "agent_evaluation.judge_model_options", problems)
    named = {full_name(name) for name in criteria}
    found: list[Metric] = []
    for name, runs_on in RUNS_ON.items():
        kind = BUILT_IN[name]
        if options is None or name in named or (kind.judged and not wanted.judged):
            continue
        scorer = kind.model_validate({"judge_model_options": options} if kind.judged else {})
        found.append(Metric(name, None, scorer, digest_of(name, scorer), runs_on))
    return found


def _shares(sampling: float | Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    if not isinstance(sampling, Mapping):
        return {metric.name: sampling for metric in metrics}
    shares = {full_name(name): share for name, share in sampling.items()}
    return {metric.name: shares.get(metric.name, 1.0) for metric in metrics}


def _named_twice(names: JsonValue, place: str) -> list[str]:
    first: dict[str, str] = {}
    problems = []
    for name in names if isinstance(names, dict) else ():
        other = first.setdefault(full_name(name), name)
        if other != name:
            problems.append(f"{place}.{name}: is the same metric as {other}; keep one of them")
    return problems


def _reads_no_response_beside_the_final_one(name: str, kind: type[Scorer]) -> bool:
    known = name in DEFAULT_THRESHOLDS or issubclass(kind, JudgedScorer)
    return known and not WITHOUT_EFFECT & kind.model_fields.keys()


def _threshold(name: str, stated: JsonValue, within: tuple[float, float] | None, problems: list[str]) -> float | None:
    """The threshold: a number, or as ADK has it a string that reads as one, within the metric's range."""
    if within is None:
        if stated is not None:
            problems.append(f"{name}: is informational and takes no threshold; write {{}} instead")
        return None
    lowest, highest = within
    rule = f"the threshold must be a number from {lowest:g} to {highest:g}"
    if stated is None:
        problems.append(f"{name}: {rule}; none is given")
        return None
    try:
        number = math.nan if isinstance(stated, bool | dict | list) else float(stated)
    except ValueError:
        number = math.nan
    if not lowest <= number <= highest:
        problems.append(f"{name}: {rule}, not {shown(stated)}")
        return None
    return number


def _brought(sections: JsonObject) -> set[str]:
    """The metrics that `agent_evaluation` brings, whatever is wrong with its options or elsewhere."""
    wanted = sections.get("agent_evaluation", sections.get("agentEvaluation"))
    if wanted is None:
        return set()
    judged = not isinstance(wanted, dict) or wanted.get("judged", True)
    return {name for name in RUNS_ON if judged or not BUILT_IN[name].judged}


def _unknown_names(sections: JsonObject, criteria: JsonObject) -> list[str]:
    """What refers to a criterion that is not there; from the document itself, so that it is said beside what else is wrong."""
    gate, sampling = sections.get("gate"), sections.get("sampling")
    known = {full_name(name) for name in criteria}
    sampled = known | _brought(sections)
    required = gate.get("required") if isinstance(gate, dict) else None
    named = [("gate.required", name, known) for name in (required if isinstance(required, list) else ())]
    named += [("sampling", name, sampled) for name in (sampling if isinstance(sampling, dict) else ())]
    problems = _named_twice(sampling, "sampling")
    for place, name, allowed in named:
        if isinstance(name, str) and full_name(name) not in allowed:
            if full_name(name) in sampled:
                hint = "name it there, with a threshold"  # without one it would always be met
            else:
                hint = did_you_mean(name, [*criteria, *(short_name(each) for each in allowed - known)])
            problems.append(f"{place}: {name!r} is not among the criteria; {hint}")
    return problems


def _unusable_patterns(patterns: Mapping[str, str]) -> list[str]:
    problems = []
    for kind, pattern in patterns.items():
        try:
            compiled(pattern)
        except ValueError as error:
            problems.append(f"gate.redact.{kind}: {error}")
    return problems

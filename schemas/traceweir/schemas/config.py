"""Defines EvalConfig: the criteria to measure and the conditions of the gate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from traceweir.schemas.base import ConfigModel, Fraction, JsonObject, NonEmpty
from traceweir.schemas.certificate import Certificate
from traceweir.schemas.judge_config import JudgeConfig, Positive

Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
EntityName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]


class PresidioConfig(ConfigModel):
    """Selects what Presidio recognises in the free text of published traces, with a language model of spaCy."""

    model: Annotated[str, Field(min_length=1, max_length=1_000)]
    """Name of an installed spaCy model, or path of a folder with one. The model decides the language."""
    entities: Annotated[list[EntityName], Field(min_length=1, max_length=100)] = ["PERSON", "LOCATION"]
    """Presidio's names of the kinds to redact, such as `ORGANIZATION`; the model or Presidio must know each of them."""
    score_threshold: Fraction = 0.5
    """Minimum score of a recognised place. Presidio gives every name that a spaCy model finds the score 0.85."""
    max_chars: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """Characters that Presidio reads in one trace, 1 to 10,000,000; the gate rejects a trace with more free text."""


class GateConfig(ConfigModel):
    """Conditions that a trace must meet to be published on `network`."""

    threshold: Fraction = 0.75
    """The minimum trace value."""
    required: list[str] = []
    """Criteria that must have PASSED."""
    require_certified: bool = False
    """Whether the verdict of a judge on a required criterion counts only with a certificate for this judge."""
    certificates: Annotated[list[Certificate], Field(max_length=200)] = []
    """What `traceweir trust certify` has proven of judges; at most 200."""
    redact: Annotated[dict[Kind, Annotated[str, Field(min_length=1, max_length=1_000)]], Field(max_length=100)] = {}
    """Patterns in RE2's syntax that are redacted in addition to secrets and personal identifiers, by kind.

    A token with the kind replaces each match.
    """
    presidio: PresidioConfig | None = None
    """Names of persons, places and other entities that are redacted too; None: names are not recognised.

    Needs the [presidio] extra and a spaCy model.
    """
    scope: Literal["task_domain", "global"] = "task_domain"
    """The traces among which novelty is compared: those of the same `task_domain`, or all traces.

    With `global`, a single partition decides all traces.
    """
    cache_size: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    """Number of vectors stored per scope, first in, first out.

    Above 100,000, a worker has vectors in memory in about half of their size, and reads some of them from its state
    directory.
    """
    max_scopes: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Number of scopes stored per partition.

    A fifth of the places is for scopes on trial. A scope is on trial until its tenth candidate, and only a scope on trial
    is dropped, the least recently used first.
    """


class AgentEvaluation(ConfigModel):
    """Selects the metrics of Databricks Agent Evaluation that run automatically."""

    judged: bool = True
    """Whether metrics that ask a judge run too."""
    judge_model_options: JsonObject = {}
    """Options of the metrics that ask a judge: `judge_model`, `num_samples`, `parallelism_limit`."""


class CodeConfig(ConfigModel):
    """The place of ADK's code for a metric. Traceweir never imports it."""

    model_config = ConfigDict(extra="ignore")

    name: NonEmpty
    """Dotted name of the function that ADK calls."""


class CustomMetric(ConfigModel):
    """An entry of `custom_metrics`; only its name counts, and `code_config` for messages."""

    model_config = ConfigDict(extra="ignore")

    code_config: CodeConfig
    """Where ADK finds the function."""


def _automatic(value: JsonValue | AgentEvaluation) -> JsonValue | AgentEvaluation:
    if value == "auto":
        return AgentEvaluation()
    if not isinstance(value, dict | AgentEvaluation):
        raise ValueError('must be "auto" or an object')  # noqa: TRY004  # pydantic reports only ValueErrors
    return value


Automatic = Annotated[
    AgentEvaluation, BeforeValidator(_automatic, json_schema_input_type=Literal["auto"] | AgentEvaluation)
]


class ChallengerConfig(ConfigModel):
    """Another config that scores a part of the live sessions beside this one, into a topic of its own."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
    """The name: 1 to 100 of a-z, A-Z, 0-9, `-` and `_`. Its scores go to the topic `results.shadow.<name>`."""
    sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the sessions, above 0 and at most 1; the session id decides, so that a larger share holds a smaller one."""
    budget: Positive | None = None
    """The most that its judges can cost in all, in USD; None: its own `judge.budget` is the only limit."""
    config: JsonObject
    """The challenger's evaluation config, which has no challenger itself."""


class EvalConfig(ConfigModel):
    """Google ADK's `test_config.json`: `criteria`, and the sections that Traceweir adds.

    `criteria` maps a metric to its threshold, or to an object with `threshold` and the options of the metric.
    """

    criteria: dict[str, float | JsonObject] = {}
    """The metrics to measure: each maps to its threshold, or to an object with `threshold` and options."""
    agent_evaluation: Automatic | None = None
    """`auto` adds the metrics of Databricks Agent Evaluation that apply to the data of each invocation.

    An object does the same, and selects the judge model or switches judged metrics off.
    """
    trace_value: JsonObject = {}
    """Options of the trace value, such as `{"preset": "knowledgepulse"}`."""
    gate: GateConfig = GateConfig()
    """The conditions under which a trace is published on `network`."""
    judge: JudgeConfig = JudgeConfig()
    """How judge models are called, and their budget."""
    sampling: Fraction | dict[str, Fraction] = 1.0
    """Share of sessions on which criteria are measured, for all criteria or by metric; the session id decides."""
    challenger: ChallengerConfig | None = None
    """Another config that scores a part of the sessions beside this one; it changes nothing in the scores of this one."""
    custom_metrics: dict[str, CustomMetric] | None = None
    """ADK's metrics of own code, by name. Traceweir never imports code that a config names.

    A criterion with such a name is measured by the scorer that is registered under this name; if there is none, it is
    NOT_EVALUATED `unsupported`. An entry that is not among the criteria has no effect, as in ADK.
    """
    user_simulator_config: JsonValue = None
    """Has no effect, because Traceweir never runs the agent; accepted because ADK's files can contain it."""
    live_model_config: JsonValue = None
    """Has no effect, because Traceweir never runs the agent; accepted because ADK's files can contain it."""

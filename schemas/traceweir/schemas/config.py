"""EvalConfig: which criteria are measured and what the gate asks for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from traceweir.schemas.base import ConfigModel, Fraction, JsonObject
from traceweir.schemas.judge_config import JudgeConfig

Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class GateConfig(ConfigModel):
    """What a trace must satisfy to be published on `network`."""

    threshold: Fraction = 0.75
    """The least trace value that is accepted."""
    required: list[str] = []
    """Criteria that must have PASSED."""
    redact: Annotated[dict[Kind, Annotated[str, Field(min_length=1, max_length=1_000)]], Field(max_length=100)] = {}
    """What is redacted beside secrets and personal identifiers: patterns in RE2's syntax, each under the kind that stands in its place."""
    scope: Literal["task_domain", "global"] = "task_domain"
    """What novelty is compared within: the trace's field, or everything (one partition then decides it all)."""
    cache_size: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Vectors remembered per scope, first in, first out."""
    max_scopes: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Scopes remembered per partition; beyond that the least recently used one is dropped."""


class AgentEvaluation(ConfigModel):
    """Which metrics of Databricks Agent Evaluation run by themselves."""

    judged: bool = True
    """Whether those that ask a judge are among them."""
    judge_model_options: JsonObject = {}
    """Whom these ask, and how often: `judge_model`, `num_samples`, `parallelism_limit`."""


def _automatic(value: JsonValue | AgentEvaluation) -> JsonValue | AgentEvaluation:
    if value == "auto":
        return AgentEvaluation()
    if not isinstance(value, dict | AgentEvaluation):
        raise ValueError('must be "auto" or an object')  # noqa: TRY004  # only that is a problem of the config's to pydantic
    return value


Automatic = Annotated[
    AgentEvaluation, BeforeValidator(_automatic, json_schema_input_type=Literal["auto"] | AgentEvaluation)
]


class EvalConfig(ConfigModel):
    """Google ADK's `test_config.json`, and beside `criteria` what Traceweir adds.

    `criteria` maps a metric to its threshold, or to an object with `threshold` and the metric's own options.
    """

    criteria: dict[str, float | JsonObject] = {}
    agent_evaluation: Automatic | None = None
    """`auto`: beside the criteria, the metrics of Databricks Agent Evaluation that go with what is known of each invocation. An object
    does the same, and says which judge is asked, or that none is."""
    trace_value: JsonObject = {}
    """Options of the trace value, such as `{"preset": "knowledgepulse"}`."""
    gate: GateConfig = GateConfig()
    judge: JudgeConfig = JudgeConfig()
    """How models that judge are asked, and what they may cost."""
    sampling: Fraction | dict[str, Fraction] = 1.0
    """Share of sessions on which criteria are measured, for all of them or by metric; the choice follows from the session id."""
    custom_metrics: JsonValue = None
    user_simulator_config: JsonValue = None
    """Accepted, because ADK's files have it, and without effect: Traceweir never runs the agent."""
    live_model_config: JsonValue = None
    """Likewise."""

    @field_validator("custom_metrics")
    @classmethod
    def _names_no_code(cls, value: JsonValue) -> JsonValue:
        if value:
            raise ValueError(
                "a config cannot name code to import; publish the scorer under the entry point group 'traceweir.scorers' "
                "and name its metric in criteria"
            )
        return value

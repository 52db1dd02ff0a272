"""Writes the part of a plan on which the gate's decision depends as a text, and reads it.

A candidate carries the text if its session was scored with a config of the topic `configs`. The gate thus decides with
the rules of that config, whenever it reads the candidate, and without waiting for the topic.
"""

from __future__ import annotations

from pydantic import ConfigDict, ValidationError

from traceweir.schemas.base import ConfigModel, explain
from traceweir.schemas.config import GateConfig
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.metrics.trace_value import TraceValue


class _Rules(ConfigModel):
    model_config = ConfigDict(extra="ignore")

    digest: str
    gate: GateConfig
    trace_value: TraceValue


def gate_rules(plan: Plan) -> str:
    """Returns the gate's rules of a plan as JSON."""
    return _Rules(digest=plan.digest, gate=plan.gate, trace_value=plan.trace_value).model_dump_json()


def plan_of_rules(text: str) -> Plan:
    """Returns a plan without criteria that decides as the plan of these rules does.

    Raises:
        ValueError: the text is not a gate's rules.
    """
    try:
        rules = _Rules.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"gate_rules: {explain(error)}") from None
    return Plan((), rules.trace_value, rules.gate, {}, rules.digest)

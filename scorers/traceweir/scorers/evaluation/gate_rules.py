"""Writes the part of a plan on which the gate's decision depends as a JSON object, and reads it.

A candidate carries the object if its session was scored with a config of the topic `configs`. The gate thus decides with
the rules of that config, whenever it reads the candidate, and without waiting for the topic.
"""

from __future__ import annotations

from pydantic import ConfigDict, ValidationError
from pydantic_core import to_json

from traceweir.schemas.base import ConfigModel, JsonObject, explain
from traceweir.schemas.config import GateConfig
from traceweir.scorers.evaluation.plan import Plan, unused_gate_options
from traceweir.scorers.metrics.trace_value import TraceValue


class _Rules(ConfigModel):
    model_config = ConfigDict(extra="ignore")

    digest: str
    gate: GateConfig
    trace_value: TraceValue


def gate_rules(plan: Plan) -> JsonObject:
    """Returns the gate's rules of a plan."""
    needed = [each for each in plan.gate.certificates if each.criterion in plan.gate.required]
    gate = plan.gate.model_copy(update={"certificates": needed})
    rules = _Rules(digest=plan.digest, gate=gate, trace_value=plan.trace_value)
    return rules.model_dump(mode="json", exclude={"gate": {*unused_gate_options(gate)}})


def plan_of_rules(document: JsonObject) -> Plan:
    """Returns a plan without criteria that decides as the plan of these rules does.

    Raises:
        ValueError: the document is not a gate's rules.
    """
    try:
        rules = _Rules.model_validate_json(to_json(document))
    except ValidationError as error:
        raise ValueError(f"gate_rules: {explain(error)}") from None
    return Plan((), rules.trace_value, rules.gate, {}, rules.digest)

"""Says which certificates are about the judges of a config, and puts certificates into a config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.certificate import Certificate
from traceweir.schemas.model_names import litellm_name
from traceweir.schemas.text import listed
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan

IN_FORCE = "in force"


def standing(certificate: Certificate, plan: Plan) -> str:
    """Returns `in force`, or why a certificate is not about what a config measures."""
    metric = next((each for each in plan.metrics if each.name == certificate.criterion), None)
    if metric is None:
        return "ended: the config has no such criterion"
    if metric.digest != certificate.metric_digest:
        return "ended: the judge, its prompt, its options or its scorer's version is another one"
    if metric.threshold != certificate.threshold:
        return "ended: the threshold is another one"
    asked = _asked_models(metric, plan)
    # A worker with the address of a server of one's own gives a model another provider, and that is not known here.
    names = {litellm_name(each, plan.judge.models, base) for each in asked for base in (None, "a server")}
    if certificate.judge is not None and not names.issuperset(certificate.judge.split(" + ")):
        named = listed([litellm_name(each, plan.judge.models) for each in asked], 80, separator=", ") or "no model"
        return f"not in force: the config names {named}"
    return IN_FORCE


def _asked_models(metric: Metric, plan: Plan) -> Sequence[str]:
    """Returns the models that the judge of a criterion can be, as the config writes them."""
    model = metric.scorer.judge_model if metric.scorer is not None else None
    return [] if model is None else [model, *plan.judge.fallback.get(model, ())]


def with_certificates(document: Mapping[str, JsonValue], certificates: Sequence[Certificate]) -> JsonObject:
    """Returns a config with these certificates in place of its own."""
    section = document.get("gate")
    gate: JsonObject = dict(section) if isinstance(section, Mapping) else {}
    gate.pop("certificates", None)
    if certificates:
        gate["certificates"] = [each.model_dump(mode="json") for each in certificates]
    return {**document, "gate": gate}

"""Makes certificates of judges."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tests.support.scoring import NOW

from traceweir.schemas.certificate import Certificate
from traceweir.scorers.evaluation.plan import read_plan

Document = dict[str, Any]


def certificate(**changes: Any) -> Certificate:
    """Returns a certificate of a judge; these fields differ."""
    fields: dict[str, Any] = {
        "criterion": "helpful",
        "metric_digest": "measured",
        "judge": "model-a",
        "threshold": 0.5,
        "bar": 0.8,
        "tpr_bound": 0.85,
        "tnr_bound": 0.82,
        "good": 100,
        "bad": 60,
        "labels_digest": "labels",
        "certified_at": NOW,
    }
    return Certificate.model_validate(fields | changes)


def certificate_of(config: Mapping[str, Any], criterion: str) -> Document:
    """Returns a certificate of the judge that a config asks about a criterion."""
    (metric,) = (each for each in read_plan({**config, "gate": {}}).metrics if each.name == criterion)
    assert metric.scorer is not None
    fields = {"metric_digest": metric.digest, "judge": metric.scorer.judge_model, "threshold": metric.threshold}
    return certificate(criterion=criterion, **fields).model_dump(mode="json")


def drawn_certificates(config: Mapping[str, Any], criterion: str, rnd: random.Random) -> list[Document]:
    """Returns no certificate, that of the judge of a criterion, or one that only a broken gate takes for it."""
    known = certificate_of(config, criterion)
    others = (
        {"criterion": "another_criterion"},
        {"metric_digest": "another prompt"},
        {"judge": "openai/another"},
        {"judge": None},
        {"threshold": known["threshold"] - 0.01},
    )
    kind = rnd.random()
    if kind < 0.25:
        return []
    return [known] if kind < 0.65 else [known | rnd.choice(others)]


def certified_gate(config: Mapping[str, Any], gate: Document, criterion: str, rnd: random.Random) -> Document:
    """Returns a gate that also requires a certified verdict on a criterion, with the drawn certificates."""
    required = [*gate["required"], criterion]
    certificates = drawn_certificates(config, criterion, rnd)
    return {**gate, "required": required, "require_certified": True, "certificates": certificates}

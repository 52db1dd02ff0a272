"""Makes certificates of judges."""

from __future__ import annotations

from typing import Any

from tests.support.scoring import NOW

from traceweir.schemas.certificate import Certificate


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

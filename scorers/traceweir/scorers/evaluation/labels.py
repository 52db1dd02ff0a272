"""Puts labels beside the values that they can be compared with."""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation, RecordedLabel
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement
from traceweir.scorers.databricks_names import full_name
from traceweir.scorers.evaluation.outcome import Outcome

MAX_LABELS, MAX_CHARACTERS = 10, 300
"""Limits of the labels in a Score: their number, and the length of each text."""


def with_labels(outcome: Outcome, invocation: Invocation | None, metric: str) -> Outcome:
    """Returns a measurement with the invocation's labels of the same metric in `details.labels`.

    An outcome without a value, or an invocation without such labels, is returned unchanged.
    """
    if invocation is None or not invocation.labels or not isinstance(outcome, Measurement):
        return outcome
    labels: list[JsonValue] = [_details(label) for label in invocation.labels if full_name(label.name) == metric]
    return replace(outcome, details={**outcome.details, "labels": labels[:MAX_LABELS]}) if labels else outcome


def _details(label: RecordedLabel) -> JsonObject:
    value = printable(label.value, MAX_CHARACTERS) if isinstance(label.value, str) else label.value
    return {
        "value": value,
        "source_type": printable(label.source_type or "", MAX_CHARACTERS) or None,
        "rationale": printable(label.rationale or "", MAX_CHARACTERS),
    }

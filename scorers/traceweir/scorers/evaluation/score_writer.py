"""Builds Scores from outcomes; only this module decides the status of a Score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import orjson
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.candidate import Candidate
from traceweir.schemas.dimensions import UNKNOWN, Dimensions
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Score, Status, result_id
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.times import known_time
from traceweir.scorers.base import Measurement
from traceweir.scorers.evaluation.decision import explained
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.evaluation.plan import GATE_VERSION, Plan


class GateScores:
    """Builds the two Scores of a candidate at the gate: its trace value, and the decision."""

    def __init__(self, plan: Plan, candidate: Candidate, now: datetime) -> None:
        self._plan = plan
        self._candidate = candidate
        self._embedder = candidate.embedding.embedder if candidate.embedding else None
        self._began = known_time(candidate.trace.created_at)
        self._writer = ScoreWriter(
            candidate, candidate.segment_opened_at, candidate.occurred_at, plan, now, candidate.attempt
        )

    def trace_value(self, outcome: Outcome) -> Score:
        """Returns the Score of a trace value, with the gate's threshold."""
        plan = self._plan
        metric = Metric("trace_value", plan.gate.threshold, plan.trace_value, plan.trace_value_digest(self._embedder))
        return self._score(metric, outcome)

    def decision(self, accepted: bool, reasons: Sequence[str], details: Mapping[str, JsonValue]) -> Score:
        """Returns the Score of the gate's decision, with the reasons in `details`.

        The value is 1 and the status PASSED if the trace was accepted; otherwise the value is 0 and the status FAILED.
        """
        decision = "accepted" if accepted else "rejected"
        metric = Metric("gate", 1.0, None, self._plan.gate_digest(self._embedder))
        measured = Measurement(
            value=1.0 if accepted else 0.0,
            rationale=": ".join([decision, ", ".join(map(explained, reasons))]) if reasons else decision,
            details={**details, "decision": decision, "reasons": list(reasons)},
        )
        return self._score(metric, measured, GATE_VERSION)

    def _score(self, metric: Metric, measured: Outcome, version: str = "") -> Score:
        candidate = self._candidate
        return self._writer.score(metric, "trace", candidate.trace.id, measured, self._began, candidate, version)


class ScoreWriter:
    """Builds the Scores of one session, or of one candidate, with the same timestamps."""

    def __init__(
        self,
        origin: Session | Candidate,
        segment_opened_at: datetime | None,
        occurred_at: datetime,
        plan: Plan,
        now: datetime,
        attempt: int = 0,
    ) -> None:
        self._session_id = origin.session_id
        self._segment = origin.segment
        self._common = _NO_VALUES | {
            "revision": origin.revision,
            "attempt": attempt,
            "session_id": origin.session_id,
            "segment": origin.segment,
            "config_digest": plan.digest,
            "occurred_at": occurred_at,
            "segment_opened_at": segment_opened_at,
            "evaluated_at": now,
        }
        """All fields, in their order in JSON. Those that differ between Scores are null until `_score` sets them in a copy."""
        self._dimensions = UNKNOWN

    def score(
        self,
        metric: Metric,
        level: Level,
        subject_id: str,
        outcome: Outcome,
        started_at: datetime | None,
        dimensions: Dimensions,
        version: str = "",
        *,
        inclusion: float | None = None,
    ) -> Score:
        """Returns the Score of an outcome, for a subject with these dimensions that began at `started_at`.

        `inclusion` is the probability with which the subject was chosen; None: 1.

        The status is that of `Metric.status_of`, and NOT_EVALUATED without a value. A measurement that violates the
        Score's schema becomes NOT_EVALUATED `error`.
        """
        about = metric, level, subject_id, started_at, dimensions, version, inclusion
        if isinstance(outcome, Unmeasured):
            return self._score(*about, None, "NOT_EVALUATED", outcome)
        try:
            return self._score(*about, float(outcome.value), metric.status_of(outcome.value), outcome)
        except ValidationError as error:
            failed = Unmeasured("error", printable(f"the scorer's measurement cannot be published: {explain(error)}"))
            return self._score(*about, None, "NOT_EVALUATED", failed)

    def _score(
        self,
        metric: Metric,
        level: Level,
        subject_id: str,
        started_at: datetime | None,
        dimensions: Dimensions,
        version: str,
        inclusion: float | None,
        value: float | None,
        status: Status,
        outcome: Outcome,
    ) -> Score:
        # Most subjects of a session have the same.
        if dimensions is not self._dimensions:
            self._dimensions = dimensions
            self._common.update(zip(_DIMENSIONS, _values_of(dimensions), strict=True))
        fields = self._common.copy()
        fields["result_id"] = result_id(self._session_id, self._segment, level, subject_id, metric.name, metric.digest)
        if level == "invocation":
            fields["invocation_id"] = subject_id
        elif level == "trace":
            fields["trace_id"] = subject_id
        fields["level"] = level
        fields["metric"] = metric.name
        fields["inclusion_probability"] = inclusion
        fields["value"] = value
        fields["threshold"] = metric.threshold
        fields["status"] = status
        if isinstance(outcome, Unmeasured):
            fields["not_evaluated_because"] = outcome.because
            fields["cause"] = outcome.cause
            fields["details"] = {}
        else:
            fields["details"] = _json(outcome.details) if outcome.details else {}
            fields["category"] = outcome.category
        rationale = outcome.rationale
        fields["rationale"] = rationale if rationale.isascii() else _encodable(rationale)
        fields["cost"] = outcome.cost
        fields["judge"] = outcome.judge
        fields["scorer_version"] = version or metric.version
        fields["metric_digest"] = metric.digest
        # The gate has a version and no scorer.
        fields["source"] = "code" if version else metric.source
        fields["started_at"] = started_at
        return Score.trusted_with(fields)


def _encodable(text: str) -> str:
    """Returns the text with a question mark for each lone surrogate, which UTF-8 cannot encode.

    The reply of a judge can contain lone surrogates.
    """
    return text.encode("utf-8", "replace").decode()


def _json(details: Mapping[str, JsonValue]) -> JsonObject:
    """Returns the details in a form that UTF-8 can encode.

    Raises:
        pydantic.ValidationError: the details are not JSON.
    """
    try:
        text = orjson.dumps(details, option=_AS_JSON)
    except TypeError:
        pass
    else:
        # orjson also writes NaN as null.
        if b"null" not in text:
            plain: JsonObject = orjson.loads(text)
            return plain
    checked = _DETAILS.validate_python(details)
    try:
        orjson.dumps(checked)
    except TypeError:
        # A lone surrogate, or an integer of more than 64 bits, which stays unchanged.
        checked = json.loads(_encodable(json.dumps(checked, ensure_ascii=False)))
    return checked


_DIMENSIONS = tuple(Dimensions.model_fields)
_NO_VALUES: dict[str, Any] = dict.fromkeys(
    [*(name for name in Score.model_fields if name not in _DIMENSIONS), *_DIMENSIONS]
)
_values_of = attrgetter(*_DIMENSIONS)
_AS_JSON = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_DETAILS = TypeAdapter(dict[str, JsonValue], config=ConfigDict(strict=True, allow_inf_nan=False))

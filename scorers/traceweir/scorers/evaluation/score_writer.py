"""Builds Scores from outcomes; only this module decides the status of a Score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter

import orjson
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.candidate import Candidate
from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Score, Status, result_id
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.times import known_time
from traceweir.scorers.base import Measurement
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.evaluation.plan import GATE_VERSION, Plan


def trace_value_score(plan: Plan, candidate: Candidate, measurement: Measurement, now: datetime) -> Score:
    """Returns the Score of a trace value, with the gate's threshold."""
    metric = Metric("trace_value", plan.gate.threshold, plan.trace_value, plan.trace_value_digest(_embedder(candidate)))
    writer = ScoreWriter(candidate, candidate.occurred_at, plan, now, candidate.attempt)
    began = known_time(candidate.trace.created_at)
    return writer.score(metric, "trace", candidate.trace.id, measurement, began, candidate)


def decision_score(
    plan: Plan,
    candidate: Candidate,
    accepted: bool,
    reasons: Sequence[str],
    details: Mapping[str, JsonValue],
    now: datetime,
) -> Score:
    """Returns the Score of the gate's decision, with the reasons in `details`.

    The value is 1 and the status PASSED if the trace was accepted; otherwise the value is 0 and the status FAILED.
    """
    decision = "accepted" if accepted else "rejected"
    metric = Metric("gate", 1.0, None, plan.gate_digest(_embedder(candidate)))
    measured = Measurement(
        value=1.0 if accepted else 0.0,
        rationale=": ".join([decision, ", ".join(reasons)]) if reasons else decision,
        details={**details, "decision": decision, "reasons": list(reasons)},
    )
    writer = ScoreWriter(candidate, candidate.occurred_at, plan, now, candidate.attempt)
    began = known_time(candidate.trace.created_at)
    return writer.score(metric, "trace", candidate.trace.id, measured, began, candidate, version=GATE_VERSION)


def _embedder(candidate: Candidate) -> str | None:
    return candidate.embedding.embedder if candidate.embedding else None


class ScoreWriter:
    """Builds the Scores of one session, or of one candidate, with the same timestamps."""

    def __init__(
        self, origin: Session | Candidate, occurred_at: datetime, plan: Plan, now: datetime, attempt: int = 0
    ) -> None:
        self.origin, self.attempt = origin, attempt
        self.occurred_at = occurred_at
        self.config_digest = plan.digest
        self.now = now

    def score(
        self,
        metric: Metric,
        level: Level,
        subject_id: str,
        outcome: Outcome,
        started_at: datetime | None,
        dimensions: Dimensions,
        version: str = "",
    ) -> Score:
        """Returns the Score of an outcome, for a subject with these dimensions that began at `started_at`.

        The status is PASSED if the value is at least the threshold or there is no threshold, FAILED if the value is
        less, and NOT_EVALUATED without a value. A measurement that violates the Score's schema becomes NOT_EVALUATED
        `error`.
        """
        write = partial(self._score, metric, level, subject_id, started_at, dimensions, version)
        if isinstance(outcome, Unmeasured):
            return write(value=None, status="NOT_EVALUATED", outcome=outcome)
        passed = metric.threshold is None or outcome.value >= metric.threshold
        try:
            status: Status = "PASSED" if passed else "FAILED"
            return write(value=float(outcome.value), status=status, outcome=outcome)
        except ValidationError as error:
            failed = Unmeasured("error", printable(f"the scorer's measurement cannot be published: {explain(error)}"))
            return write(value=None, status="NOT_EVALUATED", outcome=failed)

    def _score(
        self,
        metric: Metric,
        level: Level,
        subject_id: str,
        started_at: datetime | None,
        dimensions: Dimensions,
        version: str,
        value: float | None,
        status: Status,
        outcome: Outcome,
    ) -> Score:
        origin = self.origin
        measured = outcome if isinstance(outcome, Measurement) else None
        return Score.trusted(
            result_id=result_id(origin.session_id, origin.segment, level, subject_id, metric.name, metric.digest),
            revision=origin.revision,
            attempt=self.attempt,
            session_id=origin.session_id,
            segment=origin.segment,
            invocation_id=subject_id if level == "invocation" else None,
            trace_id=subject_id if level == "trace" else None,
            level=level,
            metric=metric.name,
            value=value,
            threshold=metric.threshold,
            status=status,
            not_evaluated_because=outcome.because if isinstance(outcome, Unmeasured) else None,
            rationale=outcome.rationale if outcome.rationale.isascii() else _encodable(outcome.rationale),
            details=_json(measured.details) if measured and measured.details else {},
            cost=outcome.cost,
            scorer_version=version or metric.version,
            config_digest=self.config_digest,
            source="code" if version else metric.source,  # the gate has a version and no scorer
            occurred_at=self.occurred_at,
            started_at=started_at,
            evaluated_at=self.now,
            **dict(zip(_DIMENSIONS, _values_of(dimensions), strict=True)),
        )


def _encodable(text: str) -> str:
    """Returns the text with a question mark for each lone surrogate, which UTF-8 cannot encode.

    The reply of a judge can contain lone surrogates.
    """
    return text.encode("utf-8", "replace").decode()


def _json(details: Mapping[str, JsonValue]) -> JsonObject:
    """Returns the details in a form that UTF-8 can encode.

    Raises:
        pydantic.ValidationError: The details are not JSON.
    """
    try:
        text = orjson.dumps(details, option=_AS_JSON)
    except TypeError:
        pass
    else:
        if b"null" not in text:  # orjson also writes NaN as null
            plain: JsonObject = orjson.loads(text)
            return plain
    checked = _DETAILS.validate_python(details)
    try:
        orjson.dumps(checked)
    except TypeError:  # a lone surrogate, or an integer of more than 64 bits, which stays unchanged
        checked = json.loads(_encodable(json.dumps(checked, ensure_ascii=False)))
    return checked


_DIMENSIONS = tuple(Dimensions.model_fields)
_values_of = attrgetter(*_DIMENSIONS)
_AS_JSON = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_DETAILS = TypeAdapter(dict[str, JsonValue], config=ConfigDict(strict=True, allow_inf_nan=False))

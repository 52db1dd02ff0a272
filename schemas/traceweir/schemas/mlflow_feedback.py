"""Writes a Score as an assessment of MLflow 3, in the form that `mlflow.entities.Assessment.from_dictionary` reads."""

from __future__ import annotations

from datetime import UTC, datetime

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import threshold_figure
from traceweir.schemas.mlflow_identity import SESSION
from traceweir.schemas.score import Score, reported_status

CODE_SOURCE = "traceweir"
"""The source of a value that no judge gave."""


def feedback_of(score: Score, judge_model: str | None) -> JsonObject:
    """Returns a Score as feedback.

    The score of an invocation has the id of the invocation as `trace_id`: for an MLflow trace without a `request_id`
    of its own, this is the id of the trace. The score of a session has no `trace_id` but the session's id in its
    metadata, as MLflow marks assessments of sessions. A NOT_EVALUATED score has an error in place of a value. MLflow
    requires text in metadata, so that numbers are written as text.

    Args:
        score: The score.
        judge_model: The model that the metric asks; None if the metric asks none.
    """
    evaluated_at = _timestamp(score.evaluated_at)
    source: JsonObject = {
        "source_type": "CODE" if judge_model is None else "LLM_JUDGE",
        "source_id": judge_model or CODE_SOURCE,
    }
    assessment: JsonObject = {
        "assessment_name": score.metric,
        "source": source,
        "create_time": evaluated_at,
        "last_update_time": evaluated_at,
        "feedback": _value(score),
        "metadata": _metadata(score),
    }
    if score.rationale and score.value is not None:
        assessment["rationale"] = score.rationale
    subject = score.invocation_id or score.trace_id
    if subject is not None:
        assessment["trace_id"] = subject
    return assessment


def _value(score: Score) -> JsonObject:
    if score.not_evaluated_because is None:
        return {"value": score.value}
    return {"value": None, "error": {"error_code": score.not_evaluated_because, "error_message": score.rationale}}


def _metadata(score: Score) -> JsonObject:
    found: JsonObject = {
        "traceweir.result_id": score.result_id,
        "traceweir.revision": f"{score.revision}",
        "traceweir.attempt": f"{score.attempt}",
        "traceweir.session_id": score.session_id,
        "traceweir.segment": f"{score.segment}",
        "traceweir.level": score.level,
        "traceweir.status": reported_status(score.metric, score.status, score.threshold),
        "traceweir.scorer_version": score.scorer_version,
        "traceweir.config_digest": score.config_digest,
        "traceweir.occurred_at": _timestamp(score.occurred_at),
    }
    if score.started_at is not None:
        found["traceweir.started_at"] = _timestamp(score.started_at)
    if score.threshold is not None:
        found["traceweir.threshold"] = threshold_figure(score.threshold)
    if score.cause is not None:
        found["traceweir.cause"] = score.cause
    if score.level == "session":
        found[SESSION] = score.session_id
    if score.cost.input_tokens or score.cost.output_tokens:
        found |= {
            "mlflow.assessment.judgeInputTokens": f"{score.cost.input_tokens}",
            "mlflow.assessment.judgeOutputTokens": f"{score.cost.output_tokens}",
            "mlflow.assessment.judgeCost": f"{score.cost.usd}",
        }
    return found


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"

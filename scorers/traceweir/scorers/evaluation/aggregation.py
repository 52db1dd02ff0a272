"""Computes the session's outcome of a criterion from the outcomes of its invocations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceweir.schemas.base import JsonObject
from traceweir.schemas.score import Cause, NotEvaluated
from traceweir.scorers.base import Measurement, Measurements, Scorer
from traceweir.scorers.evaluation.metered_judge import joined_models
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured, unmeasured

MAX_NAMED_INVOCATIONS = 50
"""Maximum number of invocations without a value that a session's Score names per reason; it counts all of them."""

MOST_SEVERE_FIRST: tuple[NotEvaluated, ...] = ("error", "timeout", "budget", "missing_input")


def lacks_input(outcome: Outcome) -> bool:
    """Returns whether an outcome is NOT_EVALUATED `missing_input`."""
    return isinstance(outcome, Unmeasured) and outcome.because == "missing_input"


def _numbers_of(causes: Sequence[Cause | None]) -> JsonObject:
    """Returns how many invocations have which cause; empty if none has one."""
    numbers = Counter[str](cause for cause in causes if cause is not None)
    return {"causes": dict(numbers)} if numbers else {}


def aggregated(scorer: Scorer, invocation_ids: Sequence[str], outcomes: Sequence[Outcome]) -> Outcome:
    """Returns the session's outcome, aggregated from the outcomes of its invocations."""
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measurement)]
    ids_by_reason: dict[NotEvaluated, list[str]] = {}
    causes_by_reason: dict[NotEvaluated, list[Cause | None]] = {}
    for invocation_id, outcome in zip(invocation_ids, outcomes, strict=True):
        if isinstance(outcome, Unmeasured):
            ids_by_reason.setdefault(outcome.because, []).append(invocation_id)
            causes_by_reason.setdefault(outcome.because, []).append(outcome.cause)
    if not measured:
        because: NotEvaluated = next(
            (reason for reason in MOST_SEVERE_FIRST if reason in ids_by_reason), "missing_input"
        )
        causes = set(causes_by_reason.get(because, ()))
        shared = causes.pop() if len(causes) == 1 else None
        why = f"none of {len(outcomes)} invocations has a value"
        return Unmeasured(because, why, cause=shared, judge=joined_models(outcome.judge for outcome in outcomes))
    details: JsonObject = {"invocations": len(outcomes), "measured": len(measured)}
    if ids_by_reason:
        details["not_evaluated"] = {
            reason: {
                "count": len(ids),
                "invocations": list(ids[:MAX_NAMED_INVOCATIONS]),
                **_numbers_of(causes_by_reason[reason]),
            }
            for reason, ids in ids_by_reason.items()
        }
    measurements = Measurements.of(measured, len(outcomes))
    try:
        return Measurement(
            value=scorer.aggregate(measurements),
            rationale=f"over {len(measured)} of {len(outcomes)} invocations",
            details={**scorer.summary(measurements), **details},
            judge=joined_models(outcome.judge for outcome in measured),
        )
    except Exception as error:  # noqa: BLE001  # the aggregate of a plugin can fail like its score
        return unmeasured(error)

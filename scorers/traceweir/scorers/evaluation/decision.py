"""Decides whether the gate accepts a trace."""

from __future__ import annotations

from traceweir.schemas.candidate import Candidate, Verdict
from traceweir.schemas.config import GateConfig
from traceweir.scorers.evaluation.plan import Plan

NOT_CERTIFIED = "criterion_not_certified:"
"""Begins the reason of a required criterion whose judge has no certificate; the metric follows."""


def decide(plan: Plan, candidate: Candidate, value: float) -> list[str]:
    """Returns the reasons why the gate rejects a candidate with this value, in a fixed order; empty if it accepts.

    A candidate is accepted if its value is at least `gate.threshold`, its visibility is `network`, its privacy level
    is not `private`, and every criterion of `gate.required` has PASSED. The reasons are `below_threshold`,
    `visibility`, `privacy`, `criterion_failed:<metric>` and `criterion_not_evaluated:<metric>:<why>`. A required
    criterion that the candidate does not contain counts as not evaluated, with `missing_input`. With
    `gate.require_certified`, a criterion that PASSED by a judge without a certificate is
    `criterion_not_certified:<metric>`.

    The gate can reject an accepted candidate for more reasons, which depend on the redacted record: `publication` names
    them.
    """
    metadata = candidate.trace.metadata
    reasons = []
    if value < plan.gate.threshold:
        reasons.append("below_threshold")
    if metadata.visibility != "network":
        reasons.append("visibility")
    if metadata.privacy_level == "private":
        reasons.append("privacy")
    for metric in plan.gate.required:
        verdict = candidate.required.get(metric)
        if verdict is None or verdict.status == "NOT_EVALUATED":
            because = (verdict and verdict.not_evaluated_because) or "missing_input"
            reasons.append(f"criterion_not_evaluated:{metric}:{because}")
        elif verdict.status == "FAILED":
            reasons.append(f"criterion_failed:{metric}")
        elif plan.gate.require_certified and not is_certified(plan.gate, metric, verdict):
            reasons.append(f"{NOT_CERTIFIED}{metric}")
    return reasons


def is_certified(gate: GateConfig, metric: str, verdict: Verdict) -> bool:
    """Returns whether a certificate of the gate is about the judge of a verdict, or no judge has measured it.

    A verdict that does not say what has measured it, as of a worker without `gate.require_certified`, is not certified.
    """
    measured = verdict.measured
    if measured is None:
        return False
    if measured.source in ("code", "human"):
        return True
    judge = (metric, measured.metric_digest, measured.judge, measured.threshold)
    return any(each.key == judge for each in gate.certificates)


def explained(reason: str) -> str:
    """Returns a reason as a sentence where people must do something about it; else the reason itself.

    >>> explained("visibility")
    'visibility'
    >>> explained("criterion_not_certified:helpful")
    'criterion_not_certified:helpful (no certificate for its judge: run `traceweir trust certify --criterion helpful`)'
    """
    if not reason.startswith(NOT_CERTIFIED):
        return reason
    name = reason.removeprefix(NOT_CERTIFIED)
    return f"{reason} (no certificate for its judge: run `traceweir trust certify --criterion {name}`)"

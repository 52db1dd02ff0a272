"""Decides whether the gate accepts a trace."""

from __future__ import annotations

from traceweir.schemas.candidate import Candidate
from traceweir.scorers.evaluation.plan import Plan


def decide(plan: Plan, candidate: Candidate, value: float) -> list[str]:
    """Returns the reasons why the gate rejects a candidate with this value, in a fixed order; empty if it accepts.

    A candidate is accepted if its value is at least `gate.threshold`, its visibility is `network`, its privacy level
    is not `private`, and every criterion of `gate.required` has PASSED. The reasons are `below_threshold`,
    `visibility`, `privacy`, `criterion_failed:<metric>` and `criterion_not_evaluated:<metric>:<why>`. A required
    criterion that the candidate does not contain counts as not evaluated, with `missing_input`.

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
    return reasons

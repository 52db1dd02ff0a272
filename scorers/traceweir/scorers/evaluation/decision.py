"""The gate's decision: may this trace be shared, and what of it?"""

from __future__ import annotations

from typing import cast

from traceweir.schemas.base import JsonObject
from traceweir.schemas.candidate import Candidate
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.redaction.redaction import redact


def decide(plan: Plan, candidate: Candidate, value: float) -> list[str]:
    """Why a candidate of this value is rejected, in a fixed order; nothing, if it is accepted.

    Accepted means: a value of at least `gate.threshold`, visibility `network`, a privacy level other than `private`, and every criterion
    of `gate.required` PASSED. The reasons: `below_threshold`, `visibility`, `privacy`, `criterion_failed:<metric>`,
    `criterion_not_evaluated:<metric>:<why>`; a criterion that the candidate does not carry was not evaluated: `missing_input`.

    The gate rejects what is accepted here for two reasons more, which only the redacted record shows: `id_not_publishable`, the id holds a
    secret or an identifier; `too_large`, the record does not fit a topic.
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


def network_record(plan: Plan, trace: ReasoningTrace, value: float) -> JsonObject:
    """The accepted trace as it is published: its value, from 0 to 1, as `quality_score`; secrets and identifiers redacted.

    What `gate.redact` names is redacted, too.

    Keys that KnowledgePulse's schema does not know are gone.
    """
    metadata = trace.metadata.model_copy(update={"quality_score": min(1.0, max(0.0, value))})
    document = trace.model_copy(update={"metadata": metadata}).document()
    return cast("JsonObject", redact(document, plan.gate.redact))

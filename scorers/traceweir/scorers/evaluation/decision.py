"""Decides whether the gate accepts a trace, and builds the record that it publishes."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.schemas.candidate import Candidate
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.redaction.entities import EntityFinder, limited
from traceweir.scorers.redaction.trace_document import redact_trace


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


def network_record(plan: Plan, trace: ReasoningTrace, value: float, entities: EntityFinder | None = None) -> JsonObject:
    """Returns the record of an accepted trace, with the value, limited to 0..1, as `quality_score`.

    Secrets, identifiers and matches of `gate.redact` are redacted in the free text of the trace, and keys outside
    KnowledgePulse's schema are removed.

    Args:
        plan: The plan, with the patterns of `gate.redact`.
        trace: A trace that the gate accepts.
        value: The trace value.
        entities: Recognises the names of `gate.presidio`.

    Raises:
        NotSearchedError: `entities` could not search the whole text.
        RuntimeError: the plan has `gate.presidio`, and `entities` is None.
    """
    if plan.gate.presidio is not None and entities is None:
        raise RuntimeError("the plan has gate.presidio, but nothing recognises its entities: pass an EntityFinder")
    metadata = trace.metadata.model_copy(update={"quality_score": min(1.0, max(0.0, value))})
    document = trace.model_copy(update={"metadata": metadata}).document()
    return redact_trace(document, plan.gate.redact, None if entities is None else limited(entities))

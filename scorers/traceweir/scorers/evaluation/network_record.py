"""Builds the record that the gate publishes of an accepted trace."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.redaction.entities import EntityFinder, limited
from traceweir.scorers.redaction.trace_document import redact_trace


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

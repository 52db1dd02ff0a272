"""Serialises the record of an accepted trace, and checks that the record can be published."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import to_json

from traceweir.schemas.base import JsonObject
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.redaction.entities import EntityFinder, NotSearchedError


def publication(
    plan: Plan, trace: ReasoningTrace, value: float, max_bytes: int, entities: EntityFinder | None = None
) -> tuple[bytes, list[str]]:
    """Returns the record of a trace as JSON, and the reasons why the record cannot be published, if there are any.

    Args:
        plan: The plan, with the patterns of `gate.redact`.
        trace: A trace that the gate accepts.
        value: The trace value.
        max_bytes: Maximum length of the record.
        entities: Recognises the names of `gate.presidio`; None only if the plan has no such section.

    The reasons are `id_not_publishable`, if the id contains a secret or an identifier; `not_publishable`, if the redacted
    record is no valid trace or contains a number that JSON does not know (NaN, Infinity); `too_large`; and, with
    `gate.presidio`, `too_long_for_presidio` and `presidio_failed`.
    """
    # Here, because the rules of redaction take as long to import as a small file to score, and most runs publish nothing.
    from traceweir.scorers.evaluation.network_record import network_record
    from traceweir.scorers.redaction.trace_document import is_publishable_id

    reasons = [] if is_publishable_id(trace.id, plan.gate.redact) else ["id_not_publishable"]
    try:
        document = network_record(plan, trace, value, entities)
        # Any integer, unlike orjson.
        published = to_json(document)
    except NotSearchedError as error:
        return b"", [*reasons, error.reason]
    except ValueError:
        # Deeper than the serialiser goes, or text that UTF-8 cannot represent.
        return b"", [*reasons, "not_publishable"]
    if not _is_valid(document):
        reasons.append("not_publishable")
    # Redaction can make a text longer.
    if len(published) > max_bytes:
        reasons.append("too_large")
    return published, reasons


def _is_valid(document: JsonObject) -> bool:
    """Returns whether a record is a reasoning trace with numbers that JSON knows."""
    try:
        ReasoningTrace.model_validate(document)
    except ValidationError:
        return False
    return True

"""Checks whether traces can be published, where the sessions are scored: redaction takes longer than all else at the gate."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.dead_letter import KEPT_BYTES
from traceweir.scorers.evaluation.decision import decide
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.publication import publication
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES
from traceweir.streams.tools.offline.session_chunks import PublicationCheck

_NOVELTIES = (0.0, 0.5, 1.0)
_DIGITS = 32
"""More characters than a value has. Only the value of the record is not known yet."""


class PublicationChecks:
    """Checks candidates, and keeps the checks until they are taken.

    Args:
        plan: The requirements of the gate.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._checks: dict[bytes, PublicationCheck] = {}

    def add(self, candidate: Candidate, value: bytes) -> None:
        """Checks a candidate; `value` is the candidate as on its topic."""
        self._checks[value] = PublicationCheck(candidate.trace.id, self._reasons(candidate))

    def take(self, values: Sequence[bytes]) -> list[PublicationCheck]:
        """Returns the checks of the candidates of a session and forgets them."""
        return [self._checks.pop(value) for value in values]

    def clear(self) -> None:
        """Forgets the candidates of sessions that were not scored in the end."""
        self._checks.clear()

    def _reasons(self, candidate: Candidate) -> list[str] | None:
        plan = self._plan
        trace = candidate.trace
        # A model of several hundred megabytes, which only the gate loads.
        if plan.gate.presidio is not None:
            return None
        measured = (
            [plan.trace_value.measure(trace)]
            if candidate.embedding is None
            else [plan.trace_value.measure(trace, novelty) for novelty in _NOVELTIES]
        )
        if decide(plan, candidate, max(each.value for each in measured)):
            # The gate rejects the trace for other reasons.
            return None
        _, reasons = publication(plan, trace, 0.5, MAX_OUTPUT_BYTES - KEPT_BYTES - _DIGITS)
        # The number of the value's digits can decide.
        return None if "too_large" in reasons else reasons

"""The cells in which commands show a Score. Texts are those of agents: the caller has to escape them."""

from __future__ import annotations

from typing import Protocol

from traceweir.schemas.figures import figure, needed, why_no_value
from traceweir.schemas.score import GATE, reported_status


class ShownScore(Protocol):
    """The fields of a Score that are shown."""

    @property
    def invocation_id(self) -> str | None: ...
    @property
    def trace_id(self) -> str | None: ...
    @property
    def segment(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def status(self) -> str: ...
    @property
    def not_evaluated_because(self) -> str | None: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def rationale(self) -> str: ...


def subject_of(score: ShownScore) -> str:
    """Returns what was measured: the id of an invocation or a trace, or the session; `segment 2` after its first part."""
    return score.invocation_id or score.trace_id or (f"segment {score.segment}" if score.segment else "session")


def value_of(score: ShownScore) -> str:
    """Returns the value, with enough digits to see on which side of the threshold it is; empty without a value."""
    return "" if score.value is None else figure(score.value, score.threshold)


def status_of(score: ShownScore) -> str:
    """Returns the reported status; for a value that misses its threshold also the threshold: `FAILED (needs >= 0.75)`.

    The threshold of a decision of the gate says nothing: its value is 1 or 0.
    """
    status = reported_status(score.metric, score.status, score.threshold)
    if status != "FAILED" or score.threshold is None or score.value is None or score.metric == GATE:
        return status
    return f"FAILED (needs {needed(score.value, score.threshold)})"


def reason_of(score: ShownScore) -> str:
    """Returns the rationale; for a score without a value also its reason, and what its judge lacked."""
    because = score.not_evaluated_because
    return score.rationale if because is None else why_no_value(because, score.cause, score.rationale)

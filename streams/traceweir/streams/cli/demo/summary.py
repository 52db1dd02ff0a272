"""Summarizes a demo: the coverage equations, and the observed counts beside those of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceweir.schemas.text import printable
from traceweir.streams.cli.demo.ledger import Counts
from traceweir.streams.cli.demo.observed import Equation

IDLE_GAP_S = 4.0
"""After how many seconds without a record the demo's sessions close."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """The result of redaction for the trace that contains secrets."""

    trace_id: str
    published: bool
    secrets: int
    """Number of secrets that the trace contained."""
    found: tuple[str, ...]
    """The secrets that the published trace still contains; must be empty."""

    @classmethod
    def of(cls, trace_id: str, published: Mapping[str, bytes], secrets: Sequence[str]) -> Redaction:
        """Returns what the published traces, by id, have of the secrets of one trace."""
        text = published.get(trace_id, b"").decode()
        return cls(trace_id, bool(text), len(secrets), tuple(secret for secret in secrets if secret in text))


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a demo."""

    seed: int
    took_s: float
    worker_log: str | None
    """The end of the worker's log if records were still in flight at the deadline, otherwise None."""
    equations: Sequence[Equation]
    expected: Counts
    observed: Counts
    redactions: Sequence[Redaction]
    late_s: float
    """By how many seconds a record was sent after its time, at most."""

    @property
    def problems(self) -> list[str]:
        """One sentence for each deviation from the expected result."""
        found = [] if self.worker_log is None else ["not everything came out in time"]
        found += [f"does not add up: {equation}" for equation in self.equations if not equation.holds]
        found += [
            f"{name}: {wanted} expected, {there} observed" for name, wanted, there in self.rows() if wanted != there
        ]
        for redaction in self.redactions:
            if not redaction.published:
                found.append(f"{redaction.trace_id} was not published")
            found += [f"{redaction.trace_id} was published with {printable(secret)}" for secret in redaction.found]
        if found and self.late_s >= IDLE_GAP_S / 2:
            found.append(
                f"this machine had too little time for the demo: a record was sent {self.late_s:.1f} s late, and sessions "
                f"close after {IDLE_GAP_S:g} s without a record, so the counts can differ; run it again with less load"
            )
        return found

    @property
    def exit_code(self) -> int:
        """0 if there are no problems, otherwise 1."""
        return 1 if self.problems else 0

    def rows(self) -> list[tuple[str, int, int]]:
        """Returns name, expected count and observed count, for each name in either set of counts."""
        names = sorted({*self.expected, *self.observed})
        return [(name, self.expected.get(name, 0), self.observed.get(name, 0)) for name in names]

    def document(self) -> dict[str, Any]:
        """Returns the summary as a JSON object."""
        return {
            "ok": not self.problems,
            "seed": self.seed,
            "took_s": round(self.took_s, 1),
            "late_s": round(self.late_s, 1),
            "equations": [
                {"equation": str(one), "total": one.total, "parts": dict(one.parts), "holds": one.holds}
                for one in self.equations
            ],
            "counts": {name: {"expected": wanted, "observed": there} for name, wanted, there in self.rows()},
            "redaction": [
                {
                    "trace_id": one.trace_id,
                    "published": one.published,
                    "secrets": one.secrets,
                    "secrets_published": len(one.found),
                }
                for one in self.redactions
            ],
            "problems": self.problems,
            "worker_log": self.worker_log,
        }

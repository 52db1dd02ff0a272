"""Summarizes a demo: checks the coverage equations, and compares the observed counts with those of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceweir.schemas.text import printable
from traceweir.streams.cli.demo.ledger import Counts
from traceweir.streams.cli.demo.observer import Observed, dead_lettered


@dataclass(frozen=True, slots=True)
class Equation:
    """A coverage equation: a total and the parts that must add up to it."""

    whole: str
    total: int
    parts: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether the parts add up to the total."""
        return self.total == sum(self.parts.values())

    def __str__(self) -> str:
        names = f"{self.whole} = {' + '.join(self.parts)}"
        return f"{names}: {self.total} {'=' if self.holds else '≠'} {' + '.join(map(str, self.parts.values()))}"


@dataclass(frozen=True, slots=True)
class Redaction:
    """The result of redaction for the trace that contains secrets."""

    trace_id: str
    published: bool
    secrets: int
    """Number of secrets that the trace contained."""
    found: tuple[str, ...]
    """The secrets that the published trace still contains; must be empty."""


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


def observed_counts(seen: Observed) -> Counts:
    """Returns the observed counts, by the ledger's names."""
    assemble = seen.counters("assemble")
    own = {"records": assemble["consumed"] - assemble["forwarded"], "duplicates": assemble["duplicate"]}
    return {name: count for name, count in (seen.counts | own).items() if count}


def equations_of(seen: Observed, metrics: int) -> list[Equation]:
    """Returns the coverage equations.

    Where possible the two sides come from different sources: the counters of the stages, and the written records.

    Args:
        seen: The worker's output.
        metrics: Number of criteria; each is measured on every invocation and every session.
    """
    assemble = seen.counters("assemble")
    score = seen.counters("score")
    gate = seen.counters("gate")
    counts = seen.counts
    by_status = {
        name: sum(
            count
            for key, count in counts.items()
            if key.startswith("scores: ") and not key.startswith("scores: trace_value") and f" {name}" in key
        )
        for name in ("PASSED", "FAILED", "NOT_EVALUATED")
    }
    done = score["scored"] + score["superseded"] + dead_lettered(score)
    return [
        Equation(
            "records consumed",
            assemble["consumed"],
            {
                "joined": assemble["joined"],
                "duplicate": assemble["duplicate"],
                "forwarded": counts["forwarded"],
                "dead-lettered": dead_lettered(assemble),
            },
        ),
        Equation(
            "segments opened and reopened",
            assemble["opened"] + assemble["reopened"],
            {"open": seen.open_sessions, "closed": counts["sessions"]},
        ),
        Equation(
            "segments closed" + _and_replayed(score),
            assemble["closed"] + score["replayed"],
            {
                "scored": score["scored"],
                "superseded": score["superseded"],
                "in flight": counts["sessions"] + score["replayed"] - done,
                "dead-lettered": dead_lettered(score),
            },
        ),
        Equation(
            "applicable pairs",
            metrics * sum(count for version, count in seen.subjects.items() if version in seen.answered),
            by_status,
        ),
        Equation(
            "candidates seen" + _and_replayed(gate),
            score["candidates"] + gate["replayed"],
            {
                "accepted": counts["decisions: accepted"],
                "rejected": counts["decisions: rejected"],
                "dead-lettered": dead_lettered(gate),
                "in flight": counts["candidates"] + gate["replayed"] - gate["consumed"],
            },
        ),
    ]


def _and_replayed(counters: Mapping[str, int]) -> str:
    return " + replayed" if counters["replayed"] else ""


def redaction_of(seen: Observed, trace_id: str, secrets: Sequence[str]) -> Redaction:
    """Returns whether the trace with the secrets was published, and which secrets the published trace contains."""
    value = seen.network.get(trace_id)
    text = (value or b"").decode()
    return Redaction(trace_id, bool(value), len(secrets), tuple(secret for secret in secrets if secret in text))

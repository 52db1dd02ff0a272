"""The summary: do the coverage equations add up, and is everything as the ledger says?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceweir.schemas.text import printable
from traceweir.streams.demo.ledger import Counts
from traceweir.streams.demo.observer import Observed, dead_lettered


@dataclass(frozen=True, slots=True)
class Equation:
    """A whole and its parts."""

    whole: str
    total: int
    parts: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether the parts make up the whole."""
        return self.total == sum(self.parts.values())

    def __str__(self) -> str:
        names = f"{self.whole} = {' + '.join(self.parts)}"
        return f"{names}: {self.total} {'=' if self.holds else '≠'} {' + '.join(map(str, self.parts.values()))}"


@dataclass(frozen=True, slots=True)
class Redaction:
    """What became of the trace that carries secrets."""

    trace_id: str
    published: bool
    secrets: int
    """How many it carried."""
    found: tuple[str, ...]
    """Those that stand in what was published; should be none."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a demo showed."""

    seed: int
    took_s: float
    worker_log: str | None
    """The end of the worker's log if not everything came to rest before the deadline, else None."""
    equations: Sequence[Equation]
    expected: Counts
    observed: Counts
    redactions: Sequence[Redaction]

    @property
    def problems(self) -> list[str]:
        """A sentence for each thing that is not as it should be."""
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
        """0 if everything is as it should be, else 1."""
        return 1 if self.problems else 0

    def rows(self) -> list[tuple[str, int, int]]:
        """Name, expected and observed count, of everything that either side knows."""
        names = sorted({*self.expected, *self.observed})
        return [(name, self.expected.get(name, 0), self.observed.get(name, 0)) for name in names]

    def document(self) -> dict[str, Any]:
        """As JSON."""
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
    """What came out, by the ledger's names."""
    assemble = seen.counters("assemble")
    own = {"records": assemble["consumed"] - assemble["forwarded"], "duplicates": assemble["duplicate"]}
    return {name: count for name, count in (seen.counts | own).items() if count}


def equations_of(seen: Observed, metrics: int) -> list[Equation]:
    """The coverage equations. Each side comes from another source where there are two: the stages' own counts, and what was written.

    Args:
        seen: What came out.
        metrics: How many criteria are measured, each on every invocation and every session.
    """
    assemble, score, gate = seen.counters("assemble"), seen.counters("score"), seen.counters("gate")
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
    """Whether the trace with the secrets was published, and without them."""
    value = seen.network.get(trace_id)
    text = (value or b"").decode()
    return Redaction(trace_id, bool(value), len(secrets), tuple(secret for secret in secrets if secret in text))

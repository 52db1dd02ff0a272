"""States the success rate of recorded sessions from a metric that asks no model, with some rewards as labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.labelled import Labelled
from traceweir.streams.base.statistics.agreement import agreement
from traceweir.streams.base.statistics.people_only import Estimated
from traceweir.streams.base.statistics.rate_statement import JudgedSubjects, RateStatement, state_rate

LABELS = 40
"""How many sessions are drawn as labelled; at least half as many must be left without a label."""
DRAWS = 200
COLUMNS = (
    "metric, as a verdict",
    "sessions",
    "pass rate",
    "TPR",
    "TNR",
    "kappa",
    f"rate stated from {LABELS} rewards",
    "contain the true rate",
    "width",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A metric whose value is a pass from a threshold on."""

    name: str
    """In Markdown."""
    threshold: float
    values: Mapping[str, float]
    """By session id."""


def rate_line(verdicts: Verdicts, sessions: Sequence[Labelled]) -> str:
    """Returns a row of the table: the verdicts against all rewards, and the rates stated from drawn ones."""
    known = [each for each in sessions if each.succeeded is not None and each.session_id in verdicts.values]
    cells = [f"{verdicts.name} >= {verdicts.threshold:g}", str(len(known))]
    if len(known) < LABELS + LABELS // 2:
        return f"| {' | '.join([*cells, *['undefined'] * 7])} |"
    truth = np.array([float(bool(each.succeeded)) for each in known])
    passed = np.array([float(verdicts.values[each.session_id] >= verdicts.threshold) for each in known])
    tasks = np.unique([each.task for each in known], return_inverse=True)[1]
    found = agreement(_subjects(passed, truth, tasks, np.ones(len(known), dtype=bool), 1.0).labelled(truth))
    random = np.random.default_rng(0)
    stated = [_stated(passed, truth, tasks, random) for _ in range(DRAWS)]
    covered = [(each.low or 0) <= truth.mean() <= (each.high or 0) for each in stated]
    widths = [(each.high or 0) - (each.low or 0) for each in stated]
    first = stated[0]
    cells += [
        f"{passed.mean():.3f}",
        _rate(found.passing),
        _rate(found.failing),
        "undefined" if found.kappa is None else f"{found.kappa:.2f}",
        f"{first.value:.3f} ({first.low:.3f} to {first.high:.3f})",
        f"{np.mean(covered):.0%}",
        f"{np.mean(widths):.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def _stated(passed: np.ndarray, truth: np.ndarray, tasks: np.ndarray, random: np.random.Generator) -> RateStatement:
    drawn = np.zeros(len(truth), dtype=bool)
    drawn[random.choice(len(truth), LABELS, replace=False)] = True
    return state_rate(_subjects(passed, truth, tasks, drawn, LABELS / len(truth)))


def _subjects(
    passed: np.ndarray, truth: np.ndarray, tasks: np.ndarray, drawn: np.ndarray, chance: float
) -> JudgedSubjects:
    """Returns the sessions as subjects; those of one task resemble each other, as results of one session do."""
    return JudgedSubjects(
        passed,
        np.ones(len(truth)),
        tasks,
        np.where(drawn, truth, np.nan),
        np.where(drawn, chance, np.nan),
    )


def _rate(found: Estimated | None) -> str:
    return "undefined" if found is None else f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"

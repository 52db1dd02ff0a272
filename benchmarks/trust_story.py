"""Tells a story with a planted truth: a judge becomes too lenient at a known hour, and labels of people say so.

Nothing depends on the machine: the numbers are drawn from one seed. The records go the way of real ones, through the code
of `traceweir trust agreement` and `traceweir trust rate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.schemas.score import Score, result_id
from traceweir.streams.base.statistics.agreement import LabelAgreement
from traceweir.streams.base.statistics.people_only import Estimated
from traceweir.streams.base.statistics.rate_statement import Calibration, RateStatement, state_rate
from traceweir.streams.base.statistics.rogan_gladen import KnownRate
from traceweir.streams.lab.trust import LabelledScores, joined

CRITERION = "helpful"
SESSIONS_AN_HOUR = 200
HOURS = 48
DRIFT_AT = 24
"""The hour from which the judge errs in another way, under the same name."""
TRUE_RATE = 0.8
TPR = 0.95
TNR = (0.9, 0.5)
"""Before and after the drift."""
DRAWN = 0.1
"""The share of the sessions that people label."""
UNSURE = 0.02
SEED = 1
_BEGIN = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scene:
    """A part of the story, with what was planted and what the labels say."""

    name: str
    truth: float
    """The share of good answers in this part, as drawn."""
    tnr: float | None
    """The planted TNR; None if it changes within this part."""
    stated: RateStatement
    agreement: LabelAgreement | None


@dataclass(frozen=True, slots=True)
class _Records:
    good: np.ndarray
    scores: Sequence[Score]
    labels: Sequence[Label]


def scenes(seed: int = SEED) -> list[Scene]:
    """Returns the parts: before the drift, after it, both together, and after it with the labels of before."""
    records = _records(seed)
    turn = DRIFT_AT * SESSIONS_AN_HOUR
    before, after, together = (
        _group(records.scores[part], records.labels) for part in (slice(turn), slice(turn, None), slice(None))
    )
    unlabelled = _group(records.scores[turn:], [])
    known = before.agreement
    assert known is not None  # the share that is labelled is never empty
    return [
        _scene("before", records.good[:turn], TNR[0], before),
        _scene("after", records.good[turn:], TNR[1], after),
        _scene("both", records.good, None, together),
        Scene(
            "after, with the labels of before",
            float(records.good[turn:].mean()),
            TNR[1],
            _stated(unlabelled, _calibration(known)),
            None,
        ),
    ]


def run() -> None:
    """Prints the story, as docs/trust.md quotes it."""
    print("\n".join(table()))


def table(seed: int = SEED) -> list[str]:
    """Returns the story in Markdown, a line each."""
    found = scenes(seed)
    lines = [
        "| part | true rate | judge's rate | labels | stated rate | error | TPR, planted 0.95 | TNR | TNR, planted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for scene in found:
        stated = scene.stated
        error = "" if stated.value is None else f"{stated.value - scene.truth:+.3f}"
        passing, failing = (
            (None, None) if scene.agreement is None else (scene.agreement.passing, scene.agreement.failing)
        )
        planted = f"{TNR[0]}, then {TNR[1]}" if scene.tnr is None else f"{scene.tnr}"
        cells = [
            scene.name,
            f"{scene.truth:.3f}",
            f"{stated.raw:.3f}",
            str(stated.labels),
            _interval(stated.value, stated.low, stated.high),
            error,
            _estimate(passing),
            _estimate(failing),
            planted,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *(f"- {scene.name}: {scene.stated.sentence}" for scene in found)]


def _records(seed: int) -> _Records:
    random = np.random.default_rng(seed)
    count = SESSIONS_AN_HOUR * HOURS
    hours = np.arange(count) / SESSIONS_AN_HOUR
    good = random.random(count) < TRUE_RATE
    right = random.random(count) < np.where(good, TPR, np.where(hours < DRIFT_AT, *TNR))
    passed = np.where(right, good, ~good)
    drawn = random.random(count) < DRAWN
    unsure = random.random(count) < UNSURE
    times = [_BEGIN + timedelta(hours=float(hour)) for hour in hours]
    scores = [_score(number, bool(passed[number]), times[number]) for number in range(count)]
    labels = [
        _label(number, "unsure" if unsure[number] else "pass" if good[number] else "fail", times[number])
        for number in np.flatnonzero(drawn).tolist()
    ]
    return _Records(good, scores, labels)


def _score(number: int, passed: bool, at: datetime) -> Score:
    session = f"session-{number}"
    return Score(
        result_id=result_id(session, 0, "session", session, CRITERION, "digest"),
        revision=0,
        session_id=session,
        segment=0,
        level="session",
        metric=CRITERION,
        value=float(passed),
        threshold=0.5,
        status="PASSED" if passed else "FAILED",
        scorer_version="1",
        judge="openai/judge",
        config_digest="digest",
        occurred_at=at,
        evaluated_at=at,
    )


def _label(number: int, verdict: str, at: datetime) -> Label:
    subject = LabelSubject(session_id=f"session-{number}", segment=0, revision=0, level="session")
    return Label.model_validate(
        {
            "label_id": label_id(subject, CRITERION, "ana", "review"),
            "subject": subject,
            "criterion": CRITERION,
            "verdict": verdict,
            "annotator": "ana",
            "kind": "review",
            "drawn": "random",
            "inclusion_probability": DRAWN,
            "occurred_at": at + timedelta(days=3),
        }
    )


def _group(scores: Sequence[Score], labels: Sequence[Label]) -> LabelledScores:
    [group] = joined(scores, labels).groups
    return group


def _calibration(known: LabelAgreement) -> Calibration:
    passing, failing = known.passing, known.failing
    assert passing is not None  # the story has good and bad answers
    assert failing is not None
    return Calibration(KnownRate(passing.value, passing.size), KnownRate(failing.value, failing.size))


def _scene(name: str, good: np.ndarray, tnr: float | None, group: LabelledScores) -> Scene:
    return Scene(name, float(good.mean()), tnr, _stated(group), group.agreement)


def _stated(group: LabelledScores, calibration: Calibration | None = None) -> RateStatement:
    assert group.subjects is not None  # each score has a verdict
    return state_rate(group.subjects, calibration=calibration)


def _estimate(found: Estimated | None) -> str:
    return "" if found is None else _interval(found.value, found.low, found.high)


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    return "none" if value is None or low is None or high is None else f"{value:.3f} ({low:.3f} to {high:.3f})"

"""Runs the scorers on a session: whatever one of them does costs its own Score and no other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import NotEvaluated, Score
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import NOTHING_SPENT, Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.score_writer import ScoreWriter
from traceweir.scorers.judge import AnswerUnusable, BudgetSpent, Judge

NAMED = 50
"""How many invocations without a value a session's Score names, by reason; the rest are counted."""

GRAVEST_FIRST: tuple[NotEvaluated, ...] = ("error", "timeout", "budget", "missing_input")


async def evaluate(
    plan: Plan,
    session: Session,
    turns: Sequence[Turn],
    *,
    now: Callable[[], datetime],
    timeout_s: float,
    judge: Judge | None = None,
    judge_timeout_s: float | None = None,
) -> list[Score]:
    """Every criterion's Scores for a session, in the order of the config, of the invocations, and last the session's own.

    A metric of level `invocation` gives a Score per invocation and one for the session, which is over the invocations that have a value
    and names the others in `details`. One of another level gives a Score per subject. A session that the sampling leaves out, and a
    metric that nothing here computes, give one Score of the session that says so. A metric that runs on some invocations only gives
    none of the others. A scorer that fails or takes too long costs its own
    Score and no other.

    Args:
        plan: What to measure.
        session: The session.
        turns: Its invocations, each with the reference that was found for it.
        now: The clock that stamps the Scores.
        timeout_s: Seconds that an asynchronous scorer may take on one subject. All subjects are measured at once.
        judge: Whom scorers may ask. Without one, those that ask are NOT_EVALUATED `error`.
        judge_timeout_s: Seconds that one of those may take on one subject; None: as many as the others.
    """
    subjects: dict[Level, list[Subject]] = {}
    measured: list[list[Subject]] = []
    point = sampling_point(session.session_id)
    started: list[list[Outcome | Awaitable[Measurement]]] = []
    limits: list[float] = []
    for metric in plan.metrics:
        scorer = metric.scorer
        asks = scorer is not None and scorer.judged
        limits.append(timeout_s if judge_timeout_s is None or not asks else judge_timeout_s)
        if scorer is None or point >= plan.sampling[metric.name]:
            started.append([])
            measured.append([])
            continue
        if scorer.level not in subjects:
            subjects[scorer.level] = _subjects(scorer.level, session, turns, judge)
        measured.append([subject for subject in subjects[scorer.level] if metric.applies(subject.reference)])
        started.append([_started(scorer, subject) for subject in measured[-1]])
    outcomes = await _finished(started, limits)

    write = ScoreWriter(session, session.last_record_at, plan, now())
    scores: list[Score] = []
    for metric, of, found in zip(plan.metrics, measured, outcomes, strict=True):
        if metric.scorer is None:
            reason = Unmeasured(
                "unsupported", f"{metric.name} is a metric of another system's that is not computed here"
            )
            scores.append(write.score(metric, "session", session.session_id, reason))
        elif point >= plan.sampling[metric.name]:
            reason = Unmeasured("sampled_out", f"{plan.sampling[metric.name]:g} of all sessions are measured")
            scores.append(write.score(metric, "session", session.session_id, reason))
        else:
            level = metric.scorer.level
            for subject, outcome in zip(of, found, strict=True):
                scores.append(write.score(metric, level, _id_of(subject), outcome))
            if level == "invocation" and (of or metric.runs_on is None):
                names = [_id_of(subject) for subject in of]
                total = _aggregated(metric.scorer, names, found)
                scores.append(write.score(metric, "session", session.session_id, total))
    return scores


def sampling_point(session_id: str) -> float:
    """Where a session stands between 0 and 1; it is measured by every metric whose share is greater.

    It follows from the id alone, so all metrics, retries and replays choose the same sessions, and a greater share takes in a smaller.

    >>> round(sampling_point("session-1"), 3)
    0.516
    """
    return int.from_bytes(hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()[:6]) / 2**48


def _subjects(level: Level, session: Session, turns: Sequence[Turn], judge: Judge | None) -> list[Subject]:
    if level == "invocation":
        return [
            Subject(session=session, invocation=turn.invocation, reference=turn.reference, judge=judge)
            for turn in turns
        ]
    if level == "trace":
        return [Subject(session=session, trace=trace, judge=judge) for trace in session.traces]
    return [Subject(session=session, judge=judge)]


def _id_of(subject: Subject) -> str:
    if subject.invocation is not None:
        return subject.invocation.invocation_id
    if subject.trace is not None:
        return subject.trace.id
    return subject.session.session_id if subject.session else ""


def _started(scorer: Scorer, subject: Subject) -> Outcome | Awaitable[Measurement]:
    if scorer.judged and subject.judge is None:
        return Unmeasured("error", "no judge is there to be asked")
    try:
        found = scorer.score(subject)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # whatever a scorer raises costs its own Score and no other
        return _unmeasured(error)
    return found if isinstance(found, Measurement | Awaitable) else _unmeasured(_no_measurement(found))


async def _finished(
    started: Sequence[Sequence[Outcome | Awaitable[Measurement]]], limits: Sequence[float]
) -> list[list[Outcome]]:
    """Await what is to be awaited, all of it at once; without any, nothing is scheduled."""
    waiting = [
        _awaited(item, timeout_s)
        for row, timeout_s in zip(started, limits, strict=True)
        for item in row
        if not isinstance(item, Measurement | Unmeasured)
    ]
    awaited = iter(await asyncio.gather(*waiting) if waiting else ())
    return [[item if isinstance(item, Measurement | Unmeasured) else next(awaited) for item in row] for row in started]


async def _awaited(measurement: Awaitable[Measurement], timeout_s: float) -> Outcome:
    try:
        async with asyncio.timeout(timeout_s) as limit:
            measured = await measurement
    except (Exception, asyncio.CancelledError) as error:  # as in _started
        if limit.expired():
            return Unmeasured("timeout", f"timed out after {timeout_s:g} s")
        if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
            raise
        return _unmeasured(error)
    return measured if isinstance(measured, Measurement) else _unmeasured(_no_measurement(measured))


def cancelled_from_outside() -> bool:
    """Whether the task that runs was asked to end. Clients raise CancelledError of their own, too, when a connection goes."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _no_measurement(given: object) -> TypeError:
    return TypeError(f"the scorer returned {type(given).__name__}, not a Measurement")


def _unmeasured(error: BaseException) -> Unmeasured:
    if isinstance(error, MissingInput):
        return Unmeasured("missing_input", printable(str(error)))
    if isinstance(error, BudgetSpent):
        return Unmeasured("budget", printable(str(error)))
    cost = error.cost if isinstance(error, AnswerUnusable) else NOTHING_SPENT
    return Unmeasured("error", printable(f"{type(error).__name__}: {error}"), cost)


def _aggregated(scorer: Scorer, names: Sequence[str], outcomes: Sequence[Outcome]) -> Outcome:
    """The session's outcome from those of its invocations."""
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measurement)]
    without: dict[NotEvaluated, list[str]] = {}
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, Unmeasured):
            without.setdefault(outcome.because, []).append(name)
    if not measured:
        because: NotEvaluated = next((reason for reason in GRAVEST_FIRST if reason in without), "missing_input")
        return Unmeasured(because, f"none of {len(outcomes)} invocations has a value")
    details: JsonObject = {"invocations": len(outcomes), "measured": len(measured)}
    if without:
        details["not_evaluated"] = {
            reason: {"count": len(ids), "invocations": list(ids[:NAMED])} for reason, ids in without.items()
        }
    try:
        return Measurement(
            value=scorer.aggregate(measured),
            rationale=f"over {len(measured)} of {len(outcomes)} invocations",
            details={**scorer.summary(measured), **details},
        )
    except Exception as error:  # noqa: BLE001  # a plugin's aggregate may fail as its score may
        return _unmeasured(error)

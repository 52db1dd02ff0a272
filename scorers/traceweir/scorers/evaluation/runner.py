"""Runs the scorers on a session; a scorer that fails affects no other scorer's Score."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import Dimensions, session_dimensions
from traceweir.schemas.invocation import Level
from traceweir.schemas.reference import session_reference
from traceweir.schemas.score import Cause, NotEvaluated, Score
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, trace_dimensions
from traceweir.scorers.base import Measurement, Measurements, MissingInput, Scorer, Subject
from traceweir.scorers.evaluation.labels import with_labels
from traceweir.scorers.evaluation.metered_judge import MeteredJudge, joined_models
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.score_writer import ScoreWriter
from traceweir.scorers.judge import SCORE_ENDS_AT_S, BudgetSpent, Judge, JudgeFailed

MAX_NAMED_INVOCATIONS = 50
"""Maximum number of invocations without a value that a session's Score names per reason; it counts all of them."""

_WITHDRAWN = Unmeasured("missing_input", "withdrawn: late spans have moved or replaced what was measured")

MOST_SEVERE_FIRST: tuple[NotEvaluated, ...] = ("error", "timeout", "budget", "missing_input")


Watch = Callable[[str, str], AbstractContextManager[Callable[[Outcome], object]]]
"""Watches a run of a scorer: receives the metric and the id of the subject, is entered for the time of the run, and then
receives the outcome."""


async def evaluate(
    plan: Plan,
    session: Session,
    turns: Sequence[Turn],
    *,
    now: Callable[[], datetime],
    timeout_s: float,
    judge: Judge | None = None,
    judge_timeout_s: float | None = None,
    attempt: int = 0,
    watch: Watch | None = None,
    withdrawn: Sequence[Turn] = (),
) -> list[Score]:
    """Returns the Scores of all criteria for a session.

    The Scores are in the order of the config; within a criterion, those of the invocations come first and the
    session's Score last. A metric of level `invocation` results in a Score per invocation and a Score of the session.
    The session's Score aggregates the invocations with a value and names the others in `details`. A metric of another
    level results in a Score per subject. If the sampling leaves out the session, or Traceweir does not compute the
    metric, the metric results in a single Score of the session with the reason. A metric that runs on certain
    invocations results in no Score of the other invocations, and a metric of the default criteria that needs an input
    results in no Score where the input is missing. A scorer that fails or exceeds its timeout loses only its
    own Score.

    A withdrawn invocation or trace, and a session of which nothing is left, are NOT_EVALUATED `missing_input`, so that
    no Score of a former revision counts any more. This holds for each metric, because a former revision can have had a
    reference or an input.

    Args:
        plan: The metrics to measure.
        session: The session.
        turns: The session's invocations, each with its reference.
        now: The clock for the Scores' timestamps.
        timeout_s: Seconds that an asynchronous scorer can take for a subject. All subjects are measured concurrently.
        judge: The judge for the scorers; without a judge, the Scores of judged metrics are NOT_EVALUATED `error`.
        judge_timeout_s: Seconds that a scorer with a judge can take for a subject; if None, `timeout_s` applies.
        attempt: The attempt number of the Scores.
        watch: Is entered for each run of a scorer on a subject; None: nobody watches.
        withdrawn: The invocations of the session that count no more.
    """
    subjects: dict[Level, list[Subject]] = {}
    measured: list[list[Subject]] = []
    point = sampling_point(session.session_id)
    began = _start_of(session, turns)
    shared = session_dimensions([turn.dimensions for turn in turns])
    traces = session.current_traces
    withdrawn_traces = [trace for trace in session.traces if trace.metadata.withdrawn]
    gone: dict[Level, list[Subject]] = {
        level: _subjects(level, session, withdrawn, withdrawn_traces, judge, began, shared)
        for level in ("invocation", "trace")
    }
    is_empty = not (turns or traces) and any(gone.values())
    started: list[list[Outcome | Awaitable[Outcome]]] = []
    for metric in plan.metrics:
        scorer = metric.scorer
        if scorer is None or point >= plan.sampling[metric.name]:
            started.append([])
            measured.append([])
            continue
        if scorer.level == "session" and is_empty:
            started.append([_WITHDRAWN])
            measured.append([Subject(session=session, started_at=began, dimensions=shared)])
            continue
        if scorer.level not in subjects:
            subjects[scorer.level] = _subjects(scorer.level, session, turns, traces, judge, began, shared)
        measured.append([subject for subject in subjects[scorer.level] if metric.applies(subject.reference)])
        wait_s = timeout_s if judge_timeout_s is None or not scorer.judged else judge_timeout_s
        if watch is None:
            started.append([_start(scorer, subject, wait_s) for subject in measured[-1]])
        else:
            started.append([_watched(watch, metric.name, scorer, subject, wait_s) for subject in measured[-1]])
    outcomes = await _await_all(started)

    write = ScoreWriter(session, session.last_record_at, plan, now(), attempt)
    scores: list[Score] = []
    for metric, metric_subjects, metric_outcomes in zip(plan.metrics, measured, outcomes, strict=True):
        if metric.scorer is None:
            reason = Unmeasured("unsupported", metric.unsupported_because)
            scores.append(write.score(metric, "session", session.session_id, reason, began, shared))
        elif point >= plan.sampling[metric.name]:
            reason = Unmeasured("sampled_out", f"{plan.sampling[metric.name]:g} of all sessions are measured")
            scores.append(write.score(metric, "session", session.session_id, reason, began, shared))
        else:
            level = metric.scorer.level
            for subject, outcome in zip(metric_subjects, metric_outcomes, strict=True):
                if metric.needs_input and _lacks_input(outcome):
                    continue
                labelled = with_labels(outcome, subject.invocation, metric.name)
                about = _id_of(subject), labelled, subject.started_at, subject.dimensions
                scores.append(write.score(metric, level, *about))
            for subject in gone.get(level, ()):
                about = _id_of(subject), _WITHDRAWN, subject.started_at, subject.dimensions
                scores.append(write.score(metric, level, *about))
            if level == "invocation" and (metric_subjects or metric.runs_on is None or withdrawn):
                ids = [_id_of(subject) for subject in metric_subjects]
                total = _aggregated(metric.scorer, ids, metric_outcomes)
                if metric.needs_input and _lacks_input(total) and not withdrawn:
                    continue
                scores.append(write.score(metric, "session", session.session_id, total, began, shared))
    return scores


def sampling_point(session_id: str) -> float:
    """Returns a number from 0 to 1 for a session; a metric measures the session if its share is greater.

    The number depends on the session id only. Therefore all metrics, retries and replays choose the same sessions, and
    a larger share includes the sessions of a smaller share.

    >>> round(sampling_point("session-1"), 3)
    0.516
    """
    return int.from_bytes(hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()[:6]) / 2**48


def _start_of(session: Session, turns: Sequence[Turn]) -> datetime | None:
    """Returns when the session began; a conversation from a file has no events, but its invocations can have times."""
    times = [session.started_at, *(turn.started_at for turn in turns)]
    return min((moment for moment in times if moment is not None), default=None)


def _subjects(
    level: Level,
    session: Session,
    turns: Sequence[Turn],
    traces: Sequence[ReasoningTrace],
    judge: Judge | None,
    began: datetime | None,
    shared: Dimensions,
) -> list[Subject]:
    if level == "invocation":
        return [
            Subject(
                session=session,
                invocation=turn.invocation,
                reference=turn.reference,
                turns=turns,
                position=position,
                judge=judge,
                started_at=turn.started_at,
                dimensions=turn.dimensions,
            )
            for position, turn in enumerate(turns)
        ]
    if level == "trace":
        return [
            Subject(
                session=session,
                trace=trace,
                turns=turns,
                judge=judge,
                started_at=known_time(trace.created_at),
                dimensions=trace_dimensions(trace, turns),
            )
            for trace in traces
        ]
    expected = session_reference(turn.reference for turn in turns)
    return [Subject(session=session, reference=expected, turns=turns, judge=judge, started_at=began, dimensions=shared)]


def _id_of(subject: Subject) -> str:
    if subject.invocation is not None:
        return subject.invocation.invocation_id
    if subject.trace is not None:
        return subject.trace.id
    return subject.session.session_id if subject.session else ""


def _start(scorer: Scorer, subject: Subject, timeout_s: float) -> Outcome | Awaitable[Outcome]:
    if scorer.judged and subject.judge is None:
        return Unmeasured("error", "there is no judge to ask", cause="judge_unavailable")
    try:
        meter = MeteredJudge(subject.judge) if scorer.judged and subject.judge is not None else None
        found = scorer.score(subject if meter is None else replace(subject, judge=meter))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # affects this Score only
        return _unmeasured(error)
    if isinstance(found, Measurement):
        return found
    if not isinstance(found, Awaitable):
        return _unmeasured(_no_measurement(found))
    return _awaited(found, timeout_s) if meter is None else _charged(_awaited(found, timeout_s), meter)


async def _charged(outcome: Awaitable[Outcome], meter: MeteredJudge) -> Outcome:
    return meter.charged(await outcome)


async def _watched(watch: Watch, metric: str, scorer: Scorer, subject: Subject, timeout_s: float) -> Outcome:
    with watch(metric, _id_of(subject)) as note:
        found = _start(scorer, subject, timeout_s)
        outcome = found if isinstance(found, Measurement | Unmeasured) else await found
        note(outcome)
    return outcome


async def _await_all(started: Sequence[Sequence[Outcome | Awaitable[Outcome]]]) -> list[list[Outcome]]:
    """Awaits all awaitables concurrently; without awaitables, no task is scheduled."""
    waiting = [item for row in started for item in row if not isinstance(item, Measurement | Unmeasured)]
    awaited = iter(await asyncio.gather(*waiting) if waiting else ())
    return [[item if isinstance(item, Measurement | Unmeasured) else next(awaited) for item in row] for row in started]


async def _awaited(measurement: Awaitable[Measurement], timeout_s: float) -> Outcome:
    ends = SCORE_ENDS_AT_S.set(asyncio.get_running_loop().time() + timeout_s)
    try:
        async with asyncio.timeout(timeout_s) as timeout:
            measured = await measurement
    except (Exception, asyncio.CancelledError) as error:
        # As in _start.
        if timeout.expired():
            return Unmeasured("timeout", f"timed out after {timeout_s:g} s")
        if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
            raise
        return _unmeasured(error)
    finally:
        SCORE_ENDS_AT_S.reset(ends)
    return measured if isinstance(measured, Measurement) else _unmeasured(_no_measurement(measured))


def cancelled_from_outside() -> bool:
    """Returns whether the current task is being cancelled.

    Clients can also raise CancelledError themselves when a connection closes; the task is then not being cancelled.
    """
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _no_measurement(returned: object) -> TypeError:
    return TypeError(f"the scorer returned {type(returned).__name__}, not a Measurement")


def _unmeasured(error: BaseException) -> Unmeasured:
    if isinstance(error, MissingInput):
        return Unmeasured("missing_input", printable(str(error)), cause=error.cause)
    if isinstance(error, BudgetSpent):
        return Unmeasured("budget", printable(str(error)))
    text = printable(f"{type(error).__name__}: {error}")
    return (
        Unmeasured("error", text, error.cost, error.cause)
        if isinstance(error, JudgeFailed)
        else Unmeasured("error", text)
    )


def _lacks_input(outcome: Outcome) -> bool:
    return isinstance(outcome, Unmeasured) and outcome.because == "missing_input"


def _numbers_of(causes: Sequence[Cause | None]) -> JsonObject:
    """Returns how many invocations have which cause; empty if none has one."""
    numbers = Counter[str](cause for cause in causes if cause is not None)
    return {"causes": dict(numbers)} if numbers else {}


def _aggregated(scorer: Scorer, invocation_ids: Sequence[str], outcomes: Sequence[Outcome]) -> Outcome:
    """Returns the session's outcome, aggregated from the outcomes of its invocations."""
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measurement)]
    ids_by_reason: dict[NotEvaluated, list[str]] = {}
    causes_by_reason: dict[NotEvaluated, list[Cause | None]] = {}
    for invocation_id, outcome in zip(invocation_ids, outcomes, strict=True):
        if isinstance(outcome, Unmeasured):
            ids_by_reason.setdefault(outcome.because, []).append(invocation_id)
            causes_by_reason.setdefault(outcome.because, []).append(outcome.cause)
    if not measured:
        because: NotEvaluated = next(
            (reason for reason in MOST_SEVERE_FIRST if reason in ids_by_reason), "missing_input"
        )
        causes = set(causes_by_reason.get(because, ()))
        shared = causes.pop() if len(causes) == 1 else None
        why = f"none of {len(outcomes)} invocations has a value"
        return Unmeasured(because, why, cause=shared, judge=joined_models(outcome.judge for outcome in outcomes))
    details: JsonObject = {"invocations": len(outcomes), "measured": len(measured)}
    if ids_by_reason:
        details["not_evaluated"] = {
            reason: {
                "count": len(ids),
                "invocations": list(ids[:MAX_NAMED_INVOCATIONS]),
                **_numbers_of(causes_by_reason[reason]),
            }
            for reason, ids in ids_by_reason.items()
        }
    measurements = Measurements.of(measured, len(outcomes))
    try:
        return Measurement(
            value=scorer.aggregate(measurements),
            rationale=f"over {len(measured)} of {len(outcomes)} invocations",
            details={**scorer.summary(measurements), **details},
            judge=joined_models(outcome.judge for outcome in measured),
        )
    except Exception as error:  # noqa: BLE001  # the aggregate of a plugin can fail like its score
        return _unmeasured(error)

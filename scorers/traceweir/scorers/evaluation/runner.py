"""Runs the scorers on a session; a scorer that fails affects no other scorer's Score."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from traceweir.schemas.dimensions import session_dimensions
from traceweir.schemas.invocation import Level
from traceweir.schemas.reference import session_reference
from traceweir.schemas.score import Score
from traceweir.schemas.session import Session
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, trace_dimensions
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.evaluation.aggregation import aggregated, lacks_input
from traceweir.scorers.evaluation.cascade import SessionChoice
from traceweir.scorers.evaluation.labels import with_labels
from traceweir.scorers.evaluation.metered_judge import MeteredJudge
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.outcome import (
    Outcome,
    Unmeasured,
    unmeasured,
    with_lost_references,
    with_unused_references,
)
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.score_writer import ScoreWriter
from traceweir.scorers.judge import SCORE_ENDS_AT_S, Judge

_WITHDRAWN = Unmeasured("missing_input", "withdrawn: late spans have moved or replaced what was measured")

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
    settling: bool = False,
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
        settling: Whether a later revision can come soon, so that criteria with `settle_s` are not measured yet.
    """
    point = sampling_point(session.session_id)
    opened_at = known_time(session.first_record_at)
    measuring = _Measuring(session, turns, withdrawn, judge, timeout_s, judge_timeout_s, attempt, watch)
    by_metric: dict[str, list[Score]] = {}
    totals: dict[str, Score] = {}
    for metrics in plan.rounds:
        choices = [
            metric.choice(plan.sampling[metric.name], point, session.session_id, totals, settling=settling)
            for metric in metrics
        ]
        measured = [measuring.subjects(*each) for each in zip(metrics, choices, strict=True)]
        started = [measuring.start(*each) for each in zip(metrics, choices, measured, strict=True)]
        outcomes = await _await_all(started)
        writer = ScoreWriter(session, opened_at, session.last_record_at, plan, now(), attempt)
        for metric, choice, subjects, found in zip(metrics, choices, measured, outcomes, strict=True):
            scores = by_metric[metric.name] = measuring.scores(writer, metric, choice, subjects, found)
            if scores and scores[-1].level == "session":
                totals[metric.name] = scores[-1]
    return [score for metric in plan.metrics for score in by_metric[metric.name]]


async def measured(metric: Metric, subject: Subject, timeout_s: float) -> Outcome:
    """Returns the outcome of one criterion for one subject, measured as `evaluate` measures it.

    Args:
        metric: The criterion; Traceweir computes it.
        subject: What is measured, with the judge to ask.
        timeout_s: Seconds that an asynchronous scorer can take.
    """
    if metric.scorer is None:
        return Unmeasured("unsupported", metric.unsupported_because)
    found = _start(metric.name, metric.scorer, subject, timeout_s)
    return found if isinstance(found, Measurement | Unmeasured) else await found


class _Measuring:
    """Starts the scorers on the subjects of one session, and writes the Scores of their outcomes."""

    def __init__(
        self,
        session: Session,
        turns: Sequence[Turn],
        withdrawn: Sequence[Turn],
        judge: Judge | None,
        timeout_s: float,
        judge_timeout_s: float | None,
        attempt: int,
        watch: Watch | None,
    ) -> None:
        self._session = session
        self._turns = turns
        self._judge = judge
        self._timeout_s = timeout_s
        self._judge_timeout_s = judge_timeout_s
        self._watch = watch
        self._found: dict[Hashable, Any] = {}
        self._is_later = session.revision > 0 or attempt > 0
        self._began = _start_of(session, turns)
        self._shared = session_dimensions([turn.dimensions for turn in turns])
        self._withdrawn = withdrawn
        self._traces = session.current_traces
        withdrawn_traces = [trace for trace in session.traces if trace.metadata.withdrawn]
        self._gone: dict[Level, list[Subject]] = {
            level: self._subjects(level, withdrawn, withdrawn_traces) for level in ("invocation", "trace")
        }
        self._is_empty = not (turns or self._traces) and any(self._gone.values())
        self._of_level: dict[Level, list[Subject]] = {}

    def subjects(self, metric: Metric, choice: SessionChoice) -> list[Subject]:
        """Returns what is measured; nothing if the session is left out.

        A cascade can leave out what a former revision or attempt has chosen; its subjects then get a Score without value.
        """
        scorer = metric.scorer
        if scorer is None or (choice.left_out is not None and not (choice.is_by_cascade and self._is_later)):
            return []
        if scorer.level == "session" and self._is_empty:
            return [Subject(session=self._session, started_at=self._began, dimensions=self._shared)]
        if scorer.level not in self._of_level:
            self._of_level[scorer.level] = self._subjects(scorer.level, self._turns, self._traces)
        return [subject for subject in self._of_level[scorer.level] if metric.applies(subject.reference)]

    def start(
        self, metric: Metric, choice: SessionChoice, subjects: Sequence[Subject]
    ) -> list[Outcome | Awaitable[Outcome]]:
        """Returns an outcome for each subject, or what it is awaited from."""
        scorer = metric.scorer
        if scorer is None or choice.left_out is not None:
            return [choice.left_out for _ in subjects if choice.left_out is not None]
        if scorer.level == "session" and self._is_empty:
            return [_WITHDRAWN]
        if choice.settling is not None:
            return [choice.settling] * len(subjects)
        is_quick = self._judge_timeout_s is None or not scorer.judged
        wait_s = self._timeout_s if is_quick or self._judge_timeout_s is None else self._judge_timeout_s
        if self._watch is None:
            return [_start(metric.name, scorer, subject, wait_s) for subject in subjects]
        return [_watched(self._watch, metric.name, scorer, subject, wait_s) for subject in subjects]

    def scores(
        self,
        writer: ScoreWriter,
        metric: Metric,
        choice: SessionChoice,
        subjects: Sequence[Subject],
        outcomes: Sequence[Outcome],
    ) -> list[Score]:
        """Returns the Scores of a metric: those of the subjects first, that of the session last."""
        write = partial(writer.score, metric, inclusion=choice.probability)
        scorer = metric.scorer
        level: Level = "session" if scorer is None else scorer.level
        found = []
        outcomes = with_lost_references(scorer, subjects, outcomes)
        for subject, outcome in zip(subjects, outcomes, strict=True):
            if metric.needs_input and lacks_input(outcome):
                continue
            labelled = with_labels(outcome, subject.invocation, metric.name)
            found.append(write(level, _id_of(subject), labelled, subject.started_at, subject.dimensions))
        left_out = choice.left_out
        if left_out is None or choice.is_by_cascade:
            found += [
                write(level, _id_of(subject), _WITHDRAWN, subject.started_at, subject.dimensions)
                for subject in self._gone.get(level, ())
            ]
        if left_out is None:
            if scorer is not None and level == "invocation" and (subjects or metric.runs_on is None or self._withdrawn):
                total = aggregated(scorer, [_id_of(subject) for subject in subjects], outcomes)
                total = with_unused_references(scorer, self._turns, total)
                if not (metric.needs_input and lacks_input(total) and not self._withdrawn):
                    found.append(write("session", self._session.session_id, total, self._began, self._shared))
        elif level != "session" or not subjects:
            found.append(write("session", self._session.session_id, left_out, self._began, self._shared))
        return found

    def _subjects(self, level: Level, turns: Sequence[Turn], traces: Sequence[ReasoningTrace]) -> list[Subject]:
        if level == "invocation":
            return [
                Subject(
                    session=self._session,
                    invocation=turn.invocation,
                    reference=turn.reference,
                    turns=turns,
                    position=position,
                    found_of_session=self._found,
                    judge=self._judge,
                    started_at=turn.started_at,
                    dimensions=turn.dimensions,
                )
                for position, turn in enumerate(turns)
            ]
        if level == "trace":
            return [
                Subject(
                    session=self._session,
                    trace=trace,
                    turns=turns,
                    judge=self._judge,
                    started_at=known_time(trace.created_at),
                    dimensions=trace_dimensions(trace, turns),
                )
                for trace in traces
            ]
        return [
            Subject(
                session=self._session,
                reference=session_reference(turn.reference for turn in turns),
                turns=turns,
                found_of_session=self._found,
                judge=self._judge,
                started_at=self._began,
                dimensions=self._shared,
            )
        ]


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


def _id_of(subject: Subject) -> str:
    if subject.invocation is not None:
        return subject.invocation.invocation_id
    if subject.trace is not None:
        return subject.trace.id
    return subject.session.session_id if subject.session else ""


def _start(metric: str, scorer: Scorer, subject: Subject, timeout_s: float) -> Outcome | Awaitable[Outcome]:
    if scorer.judged and subject.judge is None:
        return Unmeasured("error", "there is no judge to ask", cause="judge_unavailable")
    try:
        meter = None
        if scorer.judged and subject.judge is not None:
            meter = MeteredJudge(subject.judge, metric, subject.dimensions.app_name)
        found = scorer.score(subject if meter is None else replace(subject, judge=meter))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # affects this Score only
        return unmeasured(error)
    if isinstance(found, Measurement):
        return found
    if not isinstance(found, Awaitable):
        return unmeasured(_no_measurement(found))
    return _awaited(found, timeout_s) if meter is None else _charged(_awaited(found, timeout_s), meter)


async def _charged(outcome: Awaitable[Outcome], meter: MeteredJudge) -> Outcome:
    return meter.charged(await outcome)


async def _watched(watch: Watch, metric: str, scorer: Scorer, subject: Subject, timeout_s: float) -> Outcome:
    with watch(metric, _id_of(subject)) as note:
        found = _start(metric, scorer, subject, timeout_s)
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
        return unmeasured(error)
    finally:
        SCORE_ENDS_AT_S.reset(ends)
    return measured if isinstance(measured, Measurement) else unmeasured(_no_measurement(measured))


def cancelled_from_outside() -> bool:
    """Returns whether the current task is being cancelled.

    Clients can also raise CancelledError themselves when a connection closes; the task is then not being cancelled.
    """
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _no_measurement(returned: object) -> TypeError:
    return TypeError(f"the scorer returned {type(returned).__name__}, not a Measurement")

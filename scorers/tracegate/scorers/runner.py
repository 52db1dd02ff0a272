"""Runs the scorers on a session, and is the only place that decides a status."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import orjson
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from tracegate.schemas.base import JsonObject, explain
from tracegate.schemas.candidate import Candidate
from tracegate.schemas.dead_letter import printable
from tracegate.schemas.invocation import Level
from tracegate.schemas.score import NotEvaluated, Score, Status, result_id
from tracegate.schemas.session import Session
from tracegate.schemas.turns import Turn
from tracegate.scorers.base import NOTHING_SPENT, Measurement, Missing, Scorer, Subject
from tracegate.scorers.plan import GATE_VERSION, Metric, Plan

NAMED = 50
"""How many invocations without a value a session's Score names, by reason; the rest are counted."""

GRAVEST_FIRST: tuple[NotEvaluated, ...] = ("error", "timeout", "budget", "missing_input")


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Why a subject has no value."""

    because: NotEvaluated
    rationale: str


Outcome: TypeAlias = Measurement | Unmeasured


async def evaluate(
    plan: Plan, session: Session, turns: Sequence[Turn], *, now: Callable[[], datetime], timeout_s: float
) -> list[Score]:
    """Every criterion's Scores for a session, in the order of the config, of the invocations, and last the session's own.

    A metric of level `invocation` gives a Score per invocation and one for the session, which is over the invocations that have a value
    and names the others in `details`. One of another level gives a Score per subject. A session that the sampling leaves out, and a
    metric that nothing here computes, give one Score of the session that says so. A scorer that fails or takes too long costs its own
    Score and no other.

    Args:
        plan: What to measure.
        session: The session.
        turns: Its invocations, each with the reference that was found for it.
        now: The clock that stamps the Scores.
        timeout_s: Seconds that an asynchronous scorer may take on one subject. All subjects are measured at once.
    """
    subjects: dict[Level, list[Subject]] = {}
    point = sampling_point(session.session_id)
    started: list[list[Outcome | Awaitable[Measurement]]] = []
    for metric in plan.metrics:
        scorer = metric.scorer
        if scorer is None or point >= plan.sampling[metric.name]:
            started.append([])
            continue
        if scorer.level not in subjects:
            subjects[scorer.level] = _subjects(scorer.level, session, turns)
        started.append([_started(scorer, subject) for subject in subjects[scorer.level]])
    outcomes = await _finished(started, timeout_s)

    write = _Writer(session, session.last_record_at, plan, now())
    scores: list[Score] = []
    for metric, found in zip(plan.metrics, outcomes, strict=True):
        if metric.scorer is None:
            reason = Unmeasured("unsupported", f"{metric.name} is a metric of Google ADK's that is not computed here")
            scores.append(write.score(metric, "session", session.session_id, reason))
        elif point >= plan.sampling[metric.name]:
            reason = Unmeasured("sampled_out", f"{plan.sampling[metric.name]:g} of all sessions are measured")
            scores.append(write.score(metric, "session", session.session_id, reason))
        else:
            level = metric.scorer.level
            for subject, outcome in zip(subjects[level], found, strict=True):
                scores.append(write.score(metric, level, _id_of(subject), outcome))
            if level == "invocation":
                names = [_id_of(subject) for subject in subjects[level]]
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


def trace_value_score(plan: Plan, candidate: Candidate, measurement: Measurement, now: datetime) -> Score:
    """The Score of a trace's value, held against the gate's threshold."""
    metric = Metric("trace_value", plan.gate.threshold, plan.trace_value, plan.trace_value_digest(_embedder(candidate)))
    writer = _Writer(candidate, candidate.occurred_at, plan, now)
    return writer.score(metric, "trace", candidate.trace.id, measurement)


def decision_score(
    plan: Plan,
    candidate: Candidate,
    accepted: bool,
    reasons: Sequence[str],
    details: Mapping[str, JsonValue],
    now: datetime,
) -> Score:
    """The Score of the gate's decision: 1 and PASSED if the trace was accepted, else 0 and FAILED with the reasons in `details`."""
    decision = "accepted" if accepted else "rejected"
    metric = Metric("gate", 1.0, None, plan.gate_digest(_embedder(candidate)))
    measured = Measurement(
        value=1.0 if accepted else 0.0,
        rationale=": ".join([decision, ", ".join(reasons)]) if reasons else decision,
        details={**details, "decision": decision, "reasons": list(reasons)},
    )
    writer = _Writer(candidate, candidate.occurred_at, plan, now)
    return writer.score(metric, "trace", candidate.trace.id, measured, version=GATE_VERSION)


def _embedder(candidate: Candidate) -> str | None:
    return candidate.embedding.embedder if candidate.embedding else None


def _subjects(level: Level, session: Session, turns: Sequence[Turn]) -> list[Subject]:
    if level == "invocation":
        return [Subject(session=session, invocation=turn.invocation, reference=turn.reference) for turn in turns]
    if level == "trace":
        return [Subject(session=session, trace=trace) for trace in session.traces]
    return [Subject(session=session)]


def _id_of(subject: Subject) -> str:
    if subject.invocation is not None:
        return subject.invocation.invocation_id
    if subject.trace is not None:
        return subject.trace.id
    return subject.session.session_id if subject.session else ""


def _started(scorer: Scorer, subject: Subject) -> Outcome | Awaitable[Measurement]:
    try:
        found = scorer.score(subject)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # whatever a scorer raises costs its own Score and no other
        return _unmeasured(error)
    return found if isinstance(found, Measurement | Awaitable) else _unmeasured(_no_measurement(found))


async def _finished(
    started: Sequence[Sequence[Outcome | Awaitable[Measurement]]], timeout_s: float
) -> list[list[Outcome]]:
    """Await what is to be awaited, all of it at once; without any, nothing is scheduled."""
    waiting = [item for row in started for item in row if not isinstance(item, Measurement | Unmeasured)]
    awaited = iter(await asyncio.gather(*(_awaited(item, timeout_s) for item in waiting)) if waiting else ())
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
    if isinstance(error, Missing):
        return Unmeasured("missing_input", printable(str(error)))
    return Unmeasured("error", printable(f"{type(error).__name__}: {error}"))


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
            details=details,
        )
    except Exception as error:  # noqa: BLE001  # a plugin's aggregate may fail as its score may
        return _unmeasured(error)


class _Writer:
    """Writes the Scores of one session, or of one candidate, at one moment."""

    def __init__(self, origin: Session | Candidate, occurred_at: datetime, plan: Plan, now: datetime) -> None:
        self.origin = origin
        self.occurred_at = occurred_at
        self.config_digest = plan.digest
        self.now = now

    def score(self, metric: Metric, level: Level, subject_id: str, outcome: Outcome, version: str = "") -> Score:
        """The Score of an outcome: PASSED from the threshold on, FAILED below it, NOT_EVALUATED without a value."""
        if isinstance(outcome, Unmeasured):
            return self._score(metric, level, subject_id, version, None, "NOT_EVALUATED", outcome)
        passed = metric.threshold is None or outcome.value >= metric.threshold
        try:
            return self._score(
                metric, level, subject_id, version, float(outcome.value), "PASSED" if passed else "FAILED", outcome
            )
        except ValidationError as error:
            failed = Unmeasured("error", printable(f"the scorer's measurement cannot be published: {explain(error)}"))
            return self._score(metric, level, subject_id, version, None, "NOT_EVALUATED", failed)

    def _score(
        self,
        metric: Metric,
        level: Level,
        subject_id: str,
        version: str,
        value: float | None,
        status: Status,
        outcome: Outcome,
    ) -> Score:
        origin = self.origin
        measured = outcome if isinstance(outcome, Measurement) else None
        return Score.trusted(
            result_id=result_id(origin.session_id, origin.segment, level, subject_id, metric.name, metric.digest),
            revision=origin.revision,
            session_id=origin.session_id,
            segment=origin.segment,
            invocation_id=subject_id if level == "invocation" else None,
            trace_id=subject_id if level == "trace" else None,
            level=level,
            metric=metric.name,
            value=value,
            threshold=metric.threshold,
            status=status,
            not_evaluated_because=outcome.because if isinstance(outcome, Unmeasured) else None,
            rationale=outcome.rationale if outcome.rationale.isascii() else _encodable(outcome.rationale),
            details=_json(measured.details) if measured and measured.details else {},
            cost=measured.cost if measured else NOTHING_SPENT,
            scorer_version=version or metric.version,
            config_digest=self.config_digest,
            occurred_at=self.occurred_at,
            evaluated_at=self.now,
        )


def _encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which a judge's reply may hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _json(details: Mapping[str, JsonValue]) -> JsonObject:
    """The details, if they are JSON, in a form that UTF-8 can say."""
    try:
        text = orjson.dumps(details, option=_AS_JSON)
    except TypeError:
        pass
    else:
        if b"null" not in text:  # orjson writes NaN like this, too
            plain: JsonObject = orjson.loads(text)
            return plain
    checked = _DETAILS.validate_python(details)
    try:
        orjson.dumps(checked)
    except TypeError:  # a lone surrogate, or a whole number beyond 64 bits, which stays as it is
        checked = json.loads(_encodable(json.dumps(checked, ensure_ascii=False)))
    return checked


_AS_JSON = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_DETAILS = TypeAdapter(dict[str, JsonValue], config=ConfigDict(strict=True, allow_inf_nan=False))

"""Computes the expected counts for the emitted records, without a worker and without a stage.

The fleet determines the expected outcome (`fate`) of every record. The ledger uses the scorers as a library to compute
values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, turns_of
from traceweir.scorers.base import Measurement, MissingInput, Subject
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.cli.demo.agents import DUPLICATE, JOINED, Emission
from traceweir.streams.cli.demo.margins import ValueRange, below, spans_of

CONFIG: JsonObject = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"},
        "response_match_score": 0.6,
    },
    "gate": {"required": ["tool_trajectory_avg_score"]},
}
"""The evaluation config of the demo."""

Counts = Mapping[str, int]
"""Counts by name; the name states what is counted."""

_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def expected_counts(emissions: Iterable[Emission], plan: Plan) -> Counts:
    """Returns the counts that the worker must produce for these records, which can be any part of a fleet.

    Raises:
        OrderMattersError: the counts would depend on the order in which sessions finish.
    """
    emitted = list(emissions)
    counts: Counter[str] = Counter()
    counts["records"] = len(emitted)
    counts["duplicates"] = sum(one.fate == DUPLICATE for one in emitted)
    counts["forwarded"] = sum(one.misrouted for one in emitted)
    counts.update(f"dead letters: {one.fate}" for one in emitted if one.fate not in (JOINED, DUPLICATE))
    candidates = []
    for session in sessions_of(emitted):
        ended = any(event.type == "session.ended" for event in session.events)
        counts["sessions"] += 1
        counts["closed: session.ended" if ended else "closed: idle"] += 1
        statuses = _criteria(plan, turns_of(session.document()), counts)
        candidates += [_Traced(trace, [statuses[metric] for metric in plan.gate.required]) for trace in session.traces]
    _decide(plan, candidates, counts)
    return +counts


def spans_by_domain(emissions: Iterable[Emission]) -> dict[str, list[ValueRange]]:
    """Returns the range of values that each trace of these records can have, by domain."""
    traces = {trace.id: trace for session in sessions_of(list(emissions)) for trace in session.traces}
    by_domain: dict[str, list[ReasoningTrace]] = defaultdict(list)
    for trace in traces.values():
        by_domain[trace.metadata.task_domain].append(trace)
    return {domain: spans_of(found) for domain, found in by_domain.items()}


@dataclass(slots=True)
class SentRecords:
    """The events and traces of a session's records."""

    name: str
    events: list[InvocationEvent] = field(default_factory=list)
    traces: list[ReasoningTrace] = field(default_factory=list)

    def document(self) -> Session:
        """Returns the session. The time and the reason of its closing are arbitrary, because criteria ignore them."""
        return Session(
            session_id=self.name,
            segment=0,
            revision=0,
            closed_because=ClosingReason.IDLE,
            first_record_at=_SOME_TIME,
            last_record_at=_SOME_TIME,
            events=sorted(self.events, key=lambda event: event.occurred_at),
            traces=self.traces,
        )


def sessions_of(emissions: Sequence[Emission]) -> list[SentRecords]:
    """Returns the sessions of these records."""
    found: dict[str, SentRecords] = {}
    for one in emissions:
        if one.fate != JOINED:
            continue
        session = found.setdefault(one.session, SentRecords(one.session))
        if one.topic == "traces":
            session.traces.append(ReasoningTrace.model_validate_json(one.value or b""))
        else:
            session.events.append(EVENT.validate_json(one.value or b""))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Traced:
    trace: ReasoningTrace
    required: list[tuple[str, str]]
    """Metric and status of each criterion that the gate requires."""


def _criteria(plan: Plan, turns: Sequence[Turn], counts: Counter[str]) -> dict[str, tuple[str, str]]:
    """Counts the scores of a session; returns metric and status of its session-level scores, by metric."""
    found = {}
    for metric in plan.metrics:
        values = [_measured(metric, turn) for turn in turns]
        evaluated = [value for value in values if value is not None]
        mean = sum(evaluated) / len(evaluated) if evaluated else None
        for value in (*values, mean):
            counts[f"scores: {metric.name} {_status(metric, value)}"] += 1
        found[metric.name] = (metric.name, _status(metric, mean))
    return found


def _measured(metric: Metric, turn: Turn) -> float | None:
    if metric.scorer is None:
        raise ValueError(f"the demo cannot compute the expected value of {metric.name}: the metric has no scorer here")
    try:
        measurement = metric.scorer.score(Subject(invocation=turn.invocation, reference=turn.reference))
    except MissingInput:
        return None
    if not isinstance(measurement, Measurement):
        raise TypeError(f"{metric.name}: the demo supports only synchronous scorers, which return a Measurement")
    return measurement.value


def _status(metric: Metric, value: float | None) -> str:
    if value is None:
        return "NOT_EVALUATED missing_input"
    return metric.status_of(value)


def _decide(plan: Plan, candidates: Sequence[_Traced], counts: Counter[str]) -> None:
    unique = {one.trace.id: one for one in reversed(candidates)}
    counts["candidates"] = len(candidates)
    counts["dead letters: trace_id_conflict"] += len(candidates) - len(unique)
    by_domain: dict[str, list[ReasoningTrace]] = defaultdict(list)
    for one in unique.values():
        by_domain[one.trace.metadata.task_domain].append(one.trace)
    low = {name for traces in by_domain.values() for name in below(spans_of(traces), plan.gate.threshold)}
    for one in unique.values():
        reasons = _reasons(one, one.trace.id in low)
        counts["decisions: rejected" if reasons else "decisions: accepted"] += 1
        counts["network"] += not reasons
        counts[f"scores: trace_value {'FAILED' if one.trace.id in low else 'PASSED'}"] += 1
        counts.update(f"rejected: {reason}" for reason in reasons)


def _reasons(one: _Traced, is_low: bool) -> list[str]:
    metadata = one.trace.metadata
    reasons = ["below_threshold"] if is_low else []
    reasons += ["visibility"] if metadata.visibility != "network" else []
    reasons += ["privacy"] if metadata.privacy_level == "private" else []
    for metric, status in one.required:
        if status == "FAILED":
            reasons.append(f"criterion_failed:{metric}")
        elif status != "PASSED":
            reasons.append(f"criterion_not_evaluated:{metric}:{status.split()[1]}")
    return reasons

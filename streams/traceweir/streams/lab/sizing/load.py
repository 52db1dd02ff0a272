"""The load that a deployment is sized for: what is known of it, and what is assumed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from traceweir.schemas.session import Session
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan

_FILLER = "The parcel left the warehouse in the morning and is on its way to the address that the order names. "
_FIXED_BYTES = 200
"""About what an event has beside its texts."""


class SessionLoad(NamedTuple):
    """Sessions a day, and what a session is. The defaults are the load of the benchmarks."""

    sessions_per_day: float
    records: int = 11
    """Events and traces of a session."""
    record_bytes: int = 355
    """Bytes of the value of a record."""
    turns: int = 1
    """Invocations of a session."""
    traces: int = 1
    """Reasoning traces of a session."""
    spans: int = 0
    """Spans of a session, if agents send OpenTelemetry spans to the stage collect."""
    open_s: float = 60.0
    """Time from the first record of a session to its close, in seconds."""
    peak: float = 3.0
    """The busiest hour beside the mean of a day."""
    replication: int = 3
    """Copies of each partition in Kafka."""
    dimensions: int = 384
    """Dimensions of a vector; 0: no embedder."""
    embedding_ms: float = 0.0
    """CPU of the embedder for a trace, in milliseconds: 0.1 or less for `hashing`, 38 for all-MiniLM-L6-v2."""
    scopes: int = 10
    """Novelty scopes that are full."""
    passes_on: float = 1.0
    """The share of sessions in which the condition of a criterion with `when` holds."""

    def share_of(self, plan: Plan, metric: Metric) -> float:
        """Returns the share of sessions on which a metric is measured, from 0 to 1: by sampling, and by its `when`."""
        share = plan.sampling.get(metric.name, 1.0)
        if metric.when is None:
            return share
        return share * (self.passes_on + (1 - self.passes_on) * metric.when.otherwise)


def typical_session(load: SessionLoad) -> Session:
    """Returns a session of this size, with questions, tool calls, answers and expected answers in English.

    >>> session = typical_session(SessionLoad(1.0, records=22, turns=2))
    >>> len(session.events), session.events[0].type
    (20, 'invocation.started')
    """
    text = (_FILLER * (1 + load.record_bytes // len(_FILLER)))[: max(20, load.record_bytes - _FIXED_BYTES)]
    calls = max(0, (load.records - load.traces) // load.turns - 2) // 2
    events: list[dict[str, object]] = []
    for turn in range(load.turns):
        answer = {"parts": [{"text": text}]}
        made = [{"name": "look_up", "args": {"order": text[:40]}} for _ in range(calls)]
        question = {"parts": [{"text": text}]}
        reference = {"final_response": answer, "tool_uses": made}
        events.append(_event("invocation.started", turn, user_content=question, reference=reference))
        for number in range(calls):
            call = {"call_id": f"{turn}-{number}", "name": "look_up"}
            events.append(_event("tool.called", turn, args={"order": text[:40]}, **call))
            events.append(_event("tool.returned", turn, response={"found": text}, **call))
        events.append(_event("invocation.completed", turn, final_response=answer))
    return Session.model_validate_json(
        orjson.dumps(
            {
                "session_id": "typical",
                "segment": 0,
                "revision": 0,
                "closed_because": "idle",
                "first_record_at": _at(0),
                "last_record_at": _at(load.turns),
                "events": [{"event_id": f"e{number}", **each} for number, each in enumerate(events)],
                "traces": [],
            }
        )
    )


def _event(kind: str, turn: int, **fields: object) -> dict[str, object]:
    base = {"type": kind, "session_id": "typical", "invocation_id": f"turn-{turn}", "app_name": "typical"}
    return {**base, "occurred_at": _at(turn), **fields}


def _at(second: int) -> str:
    return datetime(2026, 1, 1, 0, second // 60 % 60, second % 60, tzinfo=UTC).isoformat().replace("+00:00", "Z")

"""Builds valid records and plans, so that a test names only the fields that matter to the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from traceweir.scorers.base import Scorer
from traceweir.scorers.evaluation.metric import Metric, digest_of
from traceweir.scorers.evaluation.plan import Plan, read_plan

START_S = 1_767_225_600.0
"""The start time of every flow, 2026-01-01T00:00:00Z, in seconds since 1970."""

_REQUIRED_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "model.called": {"model": "m"},
    "tool.called": {"name": "find"},
    "tool.returned": {"name": "find"},
}


def event(kind: str = "model.called", session_id: str = "s", at: float = 0, **fields: Any) -> dict[str, Any]:
    """Returns an event of the invocation `i`, with default values for the fields that its type requires.

    Args:
        kind: The `type` of the event, as on the wire.
        session_id: The session of the event.
        at: Time of `occurred_at`, in seconds after the start of a flow. `occurred_at` only orders the events of a
            session; the closing of a session depends on the timestamps of the records.
        fields: Further fields; they replace default values.

    >>> event("tool.called", at=1.5)
    {'type': 'tool.called', 'session_id': 's', 'invocation_id': 'i', 'occurred_at': '2026-01-01T00:00:01.500000Z', 'name': 'find'}
    """
    return {
        "type": kind,
        "session_id": session_id,
        "invocation_id": "i",
        "occurred_at": instant(at),
        **_REQUIRED_FIELDS.get(kind, {}),
        **fields,
    }


def trace(
    number: int | str = 1, session_id: str | None = "s", at: float = 0, domain: str = "travel", **changes: Any
) -> dict[str, Any]:
    """Returns a reasoning trace that the gate accepts by default.

    Args:
        number: Part of the trace's id and texts, to distinguish the trace from other traces.
        session_id: The session of the trace; with None, the metadata has no session id.
        at: Creation time, in seconds after the start of a flow.
        domain: `metadata.task_domain`, the scope in which novelty is measured.
        changes: Other top-level fields. Objects such as `metadata` and `outcome` are merged, other values are replaced.

    >>> trace(7, outcome={"confidence": 0.5})["outcome"]
    {'result_summary': 'Booked', 'confidence': 0.5}
    """
    document: dict[str, Any] = {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number}",
        "metadata": {
            "created_at": instant(at),
            "task_domain": domain,
            "success": True,
            "quality_score": 0,
            "visibility": "network",
            "privacy_level": "aggregated",
            **({} if session_id is None else {"session_id": session_id}),
        },
        "task": {"objective": f"Book seat {number}"},
        "steps": [
            {"step_id": 0, "type": "thought", "content": f"Think of {number}."},
            {"step_id": 1, "type": "tool_call", "content": "Look.", "tool": {"name": "search"}},
            {"step_id": 2, "type": "error_recovery", "content": "Again.", "tool": {"name": "book"}},
            {"step_id": 3, "type": "observation", "content": "Found."},
        ],
        "outcome": {"result_summary": "Booked", "confidence": 1.0},
    }
    for key, value in changes.items():
        document[key] = {**document[key], **value} if isinstance(document.get(key), dict) else value
    return document


def instant(at: float) -> str:
    """Returns the time `at` seconds after the start of a flow, as a UTC date-time that ends in Z.

    >>> instant(90)
    '2026-01-01T00:01:30Z'
    """
    moment = datetime.fromtimestamp(START_S, UTC) + timedelta(seconds=at)
    return moment.isoformat().replace("+00:00", "Z")


def plan_of(
    name: str,
    scorer: Scorer,
    threshold: float | None,
    config: Mapping[str, Any] | None = None,
    *,
    required: bool = False,
) -> Plan:
    """Returns a plan that runs `scorer` on all sessions; the scorer can be one that is not installed.

    Args:
        name: The metric's name in scores.
        scorer: The scorer of the metric.
        threshold: The minimum value of a PASSED score; with None, the metric is informational.
        config: An evaluation config with further criteria and sections.
        required: Whether the gate requires that this metric is PASSED.

    Raises:
        ConfigError: the config is invalid.
    """
    plan = read_plan(config or {})
    gate = plan.gate
    if required:
        gate = gate.model_copy(update={"required": [*gate.required, name]})
    metrics = (*plan.metrics, Metric(name, threshold, scorer, digest_of(name, scorer)))
    return replace(plan, metrics=metrics, gate=gate, sampling={**plan.sampling, name: 1.0})

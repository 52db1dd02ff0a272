"""Builds alerts, and stores them as the feed does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of

from traceweir.schemas.alert import Alert, AlertStream, alert_id
from traceweir.streams.board.store.opening import Store

RAISED = NOW - timedelta(hours=2)


def make_alert(
    metric: str = "response_match_score",
    level: str = "session",
    by: Mapping[str, str | None] | None = None,
    **changes: Any,
) -> Alert:
    """Returns an open alert of a pass rate that fell by 0.2 three hours ago.

    Args:
        metric: The metric of its stream.
        level: The level of its stream.
        by: The slice of its stream.
        changes: Other fields; `hours` moves all its times back.
    """
    moved = timedelta(hours=changes.pop("hours", 0))
    stream = AlertStream.model_validate({"metric": metric, "level": level, "slice": dict(by or {})})
    at = NOW - timedelta(hours=3) - moved
    given: dict[str, Any] = {
        "rule": "any-pass-rate-drops",
        "what": "pass_rate",
        "stream": stream,
        "state": "raised",
        "since": RAISED - moved,
        "onset": {"at": at, "from": at - timedelta(minutes=30), "to": at + timedelta(minutes=5)},
        "baseline": 0.9,
        "effect": {"estimate": -0.2, "low": -0.31, "high": -0.02},
        "sessions_since": 130,
        "sessions": ("session-1", "session-2"),
        "suspects": ({"field": "agent_version", "value": "2.4.0", "first_seen": at},),
        **changes,
    }
    given.setdefault("occurred_at", given["since"])
    given.setdefault("alert_id", alert_id(given["rule"], stream, int(at.timestamp() // 60)))
    return Alert.model_validate(given)


def resolved(alert: Alert, hours: float = 1) -> Alert:
    """Returns an alert after it ended, so many hours after it was raised."""
    ended = alert.since + timedelta(hours=hours)
    return alert.model_copy(update={"state": "resolved", "occurred_at": ended})


def send_alerts(store: Store, *alerts: Alert, offset: int = 0) -> None:
    """Stores alerts as the feed does."""
    records = [FakeRecord(each.wire(), offset + at, each.alert_id.encode()) for at, each in enumerate(alerts)]
    store.write(batch_of("alerts", *records))

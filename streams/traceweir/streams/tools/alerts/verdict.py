"""Says whose fault an alert is, as far as the scores show it."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.alert import AlertSuspect, AlertVerdict


def verdict_of(suspects: Sequence[AlertSuspect], *, judge_moved: bool | None = None) -> AlertVerdict:
    """Returns the verdict of an alert.

    Args:
        suspects: What came into the stream within the interval of the onset, the nearest first.
        judge_moved: Whether the judge has changed on sessions whose verdicts are known; None if nobody knows.

    >>> from datetime import UTC, datetime
    >>> moment = datetime(2026, 11, 1, tzinfo=UTC)
    >>> config, version = (
    ...     AlertSuspect(field=field, value="2", first_seen=moment) for field in ("config_digest", "agent_version")
    ... )
    >>> verdict_of([config]), verdict_of([config, version]), verdict_of([])
    ('config', 'unknown', 'unknown')
    """
    if judge_moved:
        return "judge"
    if suspects and all(each.field == "config_digest" for each in suspects):
        return "config"
    return "unknown"

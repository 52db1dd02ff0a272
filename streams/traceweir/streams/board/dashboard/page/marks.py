"""Names what changed, and alerts, for the marks of the charts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from traceweir.streams.board.dashboard.pushed_configs import first_push
from traceweir.streams.board.store.answers import Change
from traceweir.streams.worker.config_topic import TopicState


class ChartMark(NamedTuple):
    """A time that a chart marks."""

    at: datetime
    """The minute of the first result with what changed; or that for which the scores of an alert speak most."""
    label: str
    """What changed; a config has the name of who pushed it."""
    interval: tuple[datetime, datetime] | None = None
    """Of an alert, the interval that contains the change."""


def marks_of(changes: Sequence[Change], configs: TopicState) -> list[ChartMark]:
    """Returns the marks of what changed; the topic of configs says who pushed one."""
    return [ChartMark(change.first_seen_at, _label(change, configs)) for change in changes]


def _label(change: Change, configs: TopicState) -> str:
    if change.kind == "config_digest":
        pushed = first_push(configs, change.value)
        by = f" by {pushed.pushed_by}" if pushed is not None and pushed.pushed_by else ""
        return f"config {change.value[:8]}{by}"
    if change.kind == "agent_version":
        return f"{change.agent_name or ''} {change.value}".lstrip()
    return f"{change.kind} {change.value}"

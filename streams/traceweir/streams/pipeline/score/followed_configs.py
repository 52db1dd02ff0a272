"""Defines what the score stage needs of the topic `configs`: what it says so far, and the scoring by its configs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.selectors import Configs
from traceweir.streams.scoring.sessions.result import Scoring


@dataclass(frozen=True, slots=True)
class FollowedConfigs:
    """The configs of the topic; all partitions of a process share one value."""

    log: ConfigLog
    """What this process has read of the topic."""
    scoring: Callable[[Configs], Scoring]
    """Returns the scoring by these configs, which `log` can use and of which at least one exists."""
    check: Callable[[str], Awaitable[None]]
    """Calls `log.check` without blocking the event loop."""

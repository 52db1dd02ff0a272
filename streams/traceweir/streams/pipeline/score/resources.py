"""Defines what the score stage uses and does not own, and its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from traceweir.streams.base.stages.base import Record
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.challengers import Challengers
from traceweir.streams.pipeline.score.followed_configs import FollowedConfigs
from traceweir.streams.pipeline.score.judge_retries import ReadRecord
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.sessions.result import Scoring


@dataclass(frozen=True, slots=True)
class ScoringResources:
    """The resources that the score stage uses and does not own; all partitions of a process share one value."""

    score: Scoring
    """Scores a session, which is passed as bytes."""
    pool: WorkPool
    """Limits how many sessions are scored, or wait inside `score`, at the same time.

    Its `failed` receives the error that ends the worker.
    """
    record_spend: Callable[[Paid], object]
    """Receives spending that counts against this process's judge budget; negative when a partition has moved away."""
    read_record: ReadRecord
    """Reads a session from its topic again, by topic, partition and offset."""
    configs: FollowedConfigs | None = None
    """The configs of the topic `configs`; None where no topic is followed."""
    selects: Callable[[Record], bool] = lambda record: True
    """Returns whether a session is scored."""
    challengers: Challengers | None = None
    """The challengers, which score a part of the sessions too; None where none does."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the score stage of a partition."""

    window: int
    """Maximum number of sessions in flight, including those that wait for an earlier revision."""
    revised_within_ms: int
    """Maximum record time between a session and the latest session at which the session can get another revision."""
    records: RecordLimits = field(default_factory=RecordLimits)
    """The largest records that the topics accept."""

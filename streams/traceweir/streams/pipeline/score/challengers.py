"""Defines what the score stage needs of challengers: those that are in effect, and their scoring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from traceweir.scorers.evaluation.plan import Challenger
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.challenger_rows import HeldBytes
from traceweir.streams.pipeline.score.judge_retries import ReadRecord
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.selectors import ANY
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult


@dataclass(frozen=True, slots=True)
class ChallengerScoring:
    """How a process scores by challengers."""

    score: Callable[[Challenger, bytes, Sequence[JudgeVerdict]], Awaitable[ScoringResult]]
    """Scores a session by a challenger, with stored verdicts of judges.

    Raises `SessionRejected`, or `ChallengerUnavailable` if no process scores by the challenger now.
    """
    available: Callable[[Challenger], bool]
    """Returns whether a process can score by a challenger now, so that its sessions are worth reading."""
    writable: Callable[[str], bool]
    """Returns whether scores of the challenger with this name can be written now."""
    record_spend: Callable[[str, Paid], object]
    """Receives, by the id of the challenger, spending of other processes; negative when a partition has moved away."""
    read: ReadRecord
    """Reads a session from its topic again."""
    pool: WorkPool
    """Limits how many sessions of all partitions are scored by challengers at the same time."""


class Challengers:
    """The challengers in effect in a process; all partitions share one object.

    Args:
        file: The challenger in the worker's config file.
        log: The configs of the topic `configs`; None: the file's config scores every session.
        challenger_scoring: By what and within which limits the process scores by them.
    """

    def __init__(self, file: Challenger | None, log: ConfigLog | None, challenger_scoring: ChallengerScoring) -> None:
        self._file = file
        self._log = log
        self.challenger_scoring = challenger_scoring
        self.held_bytes = HeldBytes()
        """Limits the waiting sessions in memory."""

    @property
    def in_effect(self) -> Mapping[str, Challenger]:
        """The challengers of all configs that are in effect, by id."""
        found = {} if self._log is None else dict(self._log.challengers)
        covers_all = self._log is not None and any(selector == ANY for selector, _ in self._log.current)
        if self._file is not None and not covers_all:
            found.setdefault(self._file.id, self._file)
        return found

"""Tells the worker what its scoring process does: requests to judges, batches of the embedder, breakers and budget."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from traceweir.streams.scoring.judges.model_calls import Attempt
from traceweir.streams.scoring.judges.service import Judging


class EmbedderCall(NamedTuple):
    """One call of the embedder."""

    texts: int
    """Number of texts."""
    seconds: float
    """How long the call took, with the wait for its thread."""


class ScoringActivity(msgspec.Struct, array_like=True, gc=False):
    """What a scoring process has done since it last said so, and its present state."""

    attempts: list[Attempt] = []
    """Requests to judges that have ended."""
    batches: list[EmbedderCall] = []
    """Calls of the embedder. An embedder that runs inline, without a model, is not measured."""
    breakers: dict[str, bool] = {}
    """Whether the circuit breaker of a model is open."""
    budget_left: dict[str, float] = {}
    """What is left of each limit of the budget, as `JudgeBudget.left` has it."""
    texts_reused: int = 0
    """Texts that needed no call of the embedder, because an equal text has a vector or gets one."""
    unfit: dict[str, dict[str, bool]] = {}
    """Whether a judge is unfit, by criterion and model; judges that were not checked are left out."""


class ActivityNotes:
    """Collects the activity within the scoring process."""

    def __init__(self) -> None:
        self._attempts: list[Attempt] = []
        self._batches: list[EmbedderCall] = []
        self._texts_reused = 0

    def attempted(self, attempt: Attempt) -> None:
        """Notes a request to a judge."""
        self._attempts.append(attempt)

    def embedded(self, texts: int, seconds: float) -> None:
        """Notes a call of the embedder."""
        self._batches.append(EmbedderCall(texts, seconds))

    def reused(self, texts: int) -> None:
        """Notes texts that needed no call of the embedder."""
        self._texts_reused += texts

    def take(self, judging: Judging | None) -> ScoringActivity:
        """Returns what was noted since the last call, and the present state of the judges."""
        attempts = self._attempts
        self._attempts = []
        batches = self._batches
        self._batches = []
        reused = self._texts_reused
        self._texts_reused = 0
        if judging is None:
            return ScoringActivity(attempts, batches, texts_reused=reused)
        return ScoringActivity(attempts, batches, judging.breakers(), judging.budget.left(), reused, judging.unfit())

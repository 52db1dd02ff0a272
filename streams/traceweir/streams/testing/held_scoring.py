"""Scoring whose end a test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from traceweir.schemas.session import Session
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.scoring.session_scoring import Measure


class HeldScoring:
    """Scores each session only when the test releases it: so a test decides in which order sessions finish.

    Hand the class itself to `Flow(hold=HeldScoring)`; the object is then `flow.scoring`.
    """

    def __init__(self, inner: Measure) -> None:
        self._inner = inner
        self._waiting: list[tuple[str, asyncio.Event]] = []
        self.begun: list[str] = []
        """Ids of the sessions that were begun, each as often as it was."""

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        """Score a session once it is released."""
        self.begun.append(session.session_id)
        go = asyncio.Event()
        place = (session.session_id, go)
        self._waiting.append(place)
        try:
            await go.wait()
        finally:
            self._waiting.remove(place)
        return await self._inner(session, known, attempt)

    @property
    def waiting(self) -> list[str]:
        """Ids of the sessions that wait, in the order in which they began."""
        return [name for name, go in self._waiting if not go.is_set()]

    def release(self, session_id: str) -> None:
        """Let all waiting sessions of this id be scored. They are scored when the test awaits next, as in `flow.run_scoring()`."""
        for name, go in self._waiting:
            if name == session_id:
                go.set()

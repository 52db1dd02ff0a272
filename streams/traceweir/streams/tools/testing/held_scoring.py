"""Holds the scoring of sessions until a test releases them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from traceweir.schemas.session import Session
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure


class HeldScoring:
    """Scores each session when the test releases the session, so that a test decides the order in which sessions finish.

    Pass the class itself to `Flow(hold=HeldScoring)`; the object is then `flow.scoring`.
    """

    def __init__(self, inner: Measure) -> None:
        self._inner = inner
        self._waiting: list[tuple[str, asyncio.Event]] = []
        self.begun: list[str] = []
        """Ids of the sessions for which scoring was requested, once per request."""

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        """Scores a session after its release."""
        return await self._held(self._inner, session, known, attempt)

    def around(self, inner: Measure) -> Measure:
        """Returns another scoring whose sessions this object holds too: that by a config of the topic `configs`."""
        return partial(self._held, inner)

    async def _held(
        self, inner: Measure, session: Session, known: Sequence[JudgeVerdict], attempt: int
    ) -> ScoringResult:
        self.begun.append(session.session_id)
        released = asyncio.Event()
        entry = (session.session_id, released)
        self._waiting.append(entry)
        try:
            await released.wait()
        finally:
            self._waiting.remove(entry)
        return await inner(session, known, attempt)

    @property
    def waiting(self) -> list[str]:
        """Ids of the waiting sessions, in the order of the requests."""
        return [name for name, released in self._waiting if not released.is_set()]

    def release(self, session_id: str) -> None:
        """Releases all waiting sessions with this id.

        The event loop scores them when the test awaits next, for example in `flow.run_scoring()`.
        """
        for name, released in self._waiting:
            if name == session_id:
                released.set()

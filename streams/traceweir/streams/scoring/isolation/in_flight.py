"""Holds a scoring that has begun, and tells whether another task that needs the same scoring can take its result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult


class ScoringInFlight(NamedTuple):
    """A scoring that has begun."""

    ended: asyncio.Future[ScoringResult]
    known: Sequence[JudgeVerdict]
    """The verdicts that the session knew at the beginning."""

    def agrees(self, known: Sequence[JudgeVerdict]) -> bool:
        """Returns whether the finished scoring has used the same verdicts as one that begins now with these.

        The former owner of a partition can have known a verdict that was never committed, and the retry of an earlier
        revision can have got another answer to a question that this scoring has asked too. Both would leave two answers.
        """
        if any(verdict not in known for verdict in self.known):
            return False
        error = self.ended.exception()
        judged = error.judged if isinstance(error, SessionRejected) else self.ended.result().judged
        return not judged.contradicts(known)

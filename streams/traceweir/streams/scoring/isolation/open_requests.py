"""Holds the requests to a scoring process that have no answer yet, and passes each answer to the task that waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from traceweir.streams.scoring.isolation import protocol
from traceweir.streams.scoring.judges.verdicts import JudgeUsage
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult

log = logging.getLogger(__name__)


class OpenRequests:
    """The open requests of one process, in the order in which they were asked."""

    def __init__(self) -> None:
        self.asked = 0
        """How many requests there were."""
        self._waiting: dict[int, asyncio.Future[ScoringResult]] = {}

    def __len__(self) -> int:
        """Returns the number of requests without an answer."""
        return len(self._waiting)

    def begin(self) -> tuple[int, asyncio.Future[ScoringResult]]:
        """Begins a request; returns its number, and what gets the answer."""
        self.asked += 1
        answer = self._waiting[self.asked] = asyncio.get_running_loop().create_future()
        return self.asked, answer

    def take(self, answer: protocol.Answer | protocol.ScoringRefusal) -> JudgeUsage | None:
        """Passes an answer on, even if no task waits for it any more; returns what judges cost.

        Returns None, and logs a warning, if no such request is open: a scorer that forks the process makes both answer.
        The second answer must neither be paid again nor end the other sessions in flight.
        """
        waiting = self._waiting.pop(answer.number, None)
        if waiting is None:
            log.warning(
                "the scoring process answered request %d of %d, which is not open; this answer is ignored. Check that no "
                "scorer forks its process (os.fork, or multiprocessing with the method fork)",
                answer.number,
                self.asked,
            )
            return None
        judged = answer.result.judged if isinstance(answer, protocol.Answer) else answer.judged
        # No task waits for the answer any more.
        if waiting.done():
            return judged
        if isinstance(answer, protocol.Answer):
            waiting.set_result(answer.result)
        else:
            waiting.set_exception(SessionRejected(answer.reason, answer.detail, answer.judged))
        return judged

    def end(self) -> Sequence[asyncio.Future[ScoringResult]]:
        """Returns all open requests in the order in which they were asked, and forgets them."""
        waiting = [*self._waiting.values()]
        self._waiting = {}
        return waiting

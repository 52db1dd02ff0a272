"""Delivers a batch: finds the items that a target refuses, and repeats at once what may succeed then."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_result
from tenacity.wait import wait_exponential_jitter

from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Accepted, Answer, Later, Refused, Unfit
from traceweir.streams.tools.export.errors import ExportError

Item = TypeVar("Item")

FIRST_WAIT_S, MAX_WAIT_S = 1.0, 60.0
"""Seconds between two attempts: they double from the first number to the second, plus up to 1 s at random."""
ATTEMPTS = 5
"""Attempts after which a target's own error, such as 500, can be due to the content."""
MAX_LOST_IN_A_ROW = 100
"""Items that are refused one after another, with none accepted between, until the exporter ends: then the target as a
whole does not fit."""


class Delivery(Generic[Item]):
    """Sends items to a target.

    Args:
        send: Sends items as one request.
        trouble: Called with the reason of each attempt after which another one follows, at once or later.
        repeats: Whether a request that can succeed later is repeated in place, so that everything else waits.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Answer]],
        *,
        trouble: Callable[[str], object],
        repeats: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._send = send
        self._trouble = trouble
        self._repeats = repeats
        self._sleep = sleep
        self._lost_in_a_row = 0
        self.acceptance = Acceptance()
        """Whether the target takes what it is sent."""
        self.counts: Counter[str] = Counter()
        """Since the start: `requests`, `repeated`, `sent`, `rejected` (dropped by the target, as it says)."""
        self.last_rejection = ""
        """What the target said when it last dropped items of a request that it accepted; hostile text."""

    async def deliver(self, items: Sequence[Item]) -> list[tuple[Item, Later | Refused]]:
        """Returns the items that the target has not accepted, in order, each with its answer.

        A refused batch is halved until the refused items are alone, so that their neighbours are accepted. So is a batch
        to which the target answers with an error of its own, such as 500, each time.

        Raises:
            ExportError: the target refuses this exporter, or has refused everything for too long.
        """
        waiting: list[Sequence[Item]] = [items] if items else []
        not_accepted: list[tuple[Item, Later | Refused]] = []
        # The last is the first in order.
        while waiting:
            batch = waiting.pop()
            answer = await self._answer(batch)
            if isinstance(answer, Accepted):
                self._accepted(batch, answer)
            elif len(batch) > 1:
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
            else:
                if isinstance(answer, Refused):
                    self._refused(answer.reason)
                not_accepted.append((batch[0], answer))
        return not_accepted

    async def _answer(self, batch: Sequence[Item]) -> Accepted | Later | Refused:
        """Returns `Later` after some attempts only if the content can be the cause; or at once if nothing is repeated."""

        def is_enough(state: RetryCallState) -> bool:
            return not self._repeats or (_result(state).can_be_the_content and state.attempt_number >= ATTEMPTS)

        retrying = AsyncRetrying(
            retry=retry_if_result(lambda answer: isinstance(answer, Later)),
            stop=is_enough,
            wait=_wait_s,
            sleep=self._sleep,
            before_sleep=self._before_sleep,
            retry_error_callback=_result,
        )
        answer: Answer = await retrying(self._one_attempt, batch)
        if isinstance(answer, Unfit):
            raise ExportError(f"{answer.reason}. The exporter ends, and continues at its next start where it stood")
        if isinstance(answer, Later):
            self._trouble(answer.reason)
        return answer

    async def _one_attempt(self, batch: Sequence[Item]) -> Answer:
        self.counts["requests"] += 1
        answer = await self._send(batch)
        self.acceptance.note(batch, answer)
        return answer

    def _before_sleep(self, state: RetryCallState) -> None:
        self.counts["repeated"] += 1
        self._trouble(_result(state).reason)

    def _accepted(self, batch: Sequence[Item], answer: Accepted) -> None:
        rejected = min(max(0, answer.rejected), len(batch))
        self.counts["sent"] += len(batch) - rejected
        if rejected:
            self.counts["rejected"] += rejected
            self.last_rejection = answer.reason
        self._lost_in_a_row = 0

    def _refused(self, reason: str) -> None:
        self._lost_in_a_row += 1
        if self._lost_in_a_row > MAX_LOST_IN_A_ROW:
            self.acceptance.end(f"the target refused {MAX_LOST_IN_A_ROW} items one after another; the exporter ends")
            raise ExportError(
                f"the target refused {MAX_LOST_IN_A_ROW} items one after another and accepted none, lastly because "
                f"{reason}. Check that it is the right target, and start the exporter again: it continues after the last "
                "batch that was dealt with whole"
            )


_backoff = wait_exponential_jitter(initial=FIRST_WAIT_S, max=MAX_WAIT_S, jitter=1.0)


def _wait_s(state: RetryCallState) -> float:
    asked_s = _result(state).after_s
    return float(_backoff(state)) if asked_s is None else asked_s


def _result(state: RetryCallState) -> Later:
    # Tenacity sets it before it calls any of these functions.
    if state.outcome is None:
        raise RuntimeError("an attempt has no outcome")
    answer: Later = state.outcome.result()
    return answer

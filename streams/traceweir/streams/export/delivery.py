"""Delivers a batch whole: repeats what can succeed later, and finds the items that a target refuses for good."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_result
from tenacity.wait import wait_exponential_jitter

from traceweir.streams.export.answers import Accepted, Answer, Later
from traceweir.streams.export.errors import ExportError

Item = TypeVar("Item")

FIRST_WAIT_S, MAX_WAIT_S = 1.0, 60.0
"""Seconds between two attempts: they double from the first number to the second, plus up to 1 s at random."""
ATTEMPTS = 5
"""Attempts after which a target's own error, such as 500, can be due to the content."""
ATTEMPTS_IF_DOWN = 70
"""The same if the target has accepted nothing else since the item was first tried: about an hour."""
MAX_LOST_IN_A_ROW = 100
"""Items that are refused one after another, with none accepted between, until the exporter ends: then the target as a
whole does not fit."""


class Delivery(Generic[Item]):
    """Sends items to a target until each is accepted, or refused by itself.

    Args:
        send: Sends items as one request.
        lost: Called with each item that the target refuses for good, and with the reason.
        trouble: Called with the reason before each repetition.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Answer]],
        *,
        lost: Callable[[Item, str], object],
        trouble: Callable[[str], object],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._send, self._lost, self._trouble, self._sleep = send, lost, trouble, sleep
        self._lost_in_a_row = 0
        self.counts: Counter[str] = Counter()
        """Since the start: `requests`, `repeated`, `sent`, `rejected` (dropped by the target, as it says), `refused`."""
        self.last_rejection = ""
        """What the target said when it last dropped items of a request that it accepted; hostile text."""

    async def deliver(self, items: Sequence[Item]) -> None:
        """Returns when the target has accepted each item or refused it for good.

        A refused batch is halved until the refused items are alone, so that their neighbours are accepted. An item
        that a target answers with an error of its own, such as 500, is tried again after its neighbours: if the target
        has accepted one of them, the item is the cause; otherwise the target can be down, and the item waits longer.

        Raises:
            ExportError: the target has refused everything for too long.
        """
        waiting, unclear = [items] if items else [], list[Sequence[Item]]()
        sent_before = self.counts["sent"]
        while waiting:  # the last is the first in order
            batch = waiting.pop()
            answer = await self._answer(batch, lambda: ATTEMPTS)
            if isinstance(answer, Accepted):
                self._accepted(batch, answer)
            elif len(batch) > 1:
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
            elif isinstance(answer, Later):
                unclear.append(batch)
            else:
                self._refused(batch[0], answer.reason)
        for batch in unclear:
            answer = await self._answer(
                batch, lambda: ATTEMPTS if self.counts["sent"] > sent_before else ATTEMPTS_IF_DOWN
            )
            if isinstance(answer, Accepted):
                self._accepted(batch, answer)
            else:
                self._refused(batch[0], answer.reason)

    async def _answer(self, batch: Sequence[Item], attempts: Callable[[], int]) -> Answer:
        """Repeats a request; returns `Later` only if the content can be the cause, after so many attempts."""

        def is_enough(state: RetryCallState) -> bool:
            return _result(state).can_be_the_content and state.attempt_number >= attempts()

        retrying = AsyncRetrying(
            retry=retry_if_result(lambda answer: isinstance(answer, Later)),
            stop=is_enough,
            wait=_wait_s,
            sleep=self._sleep,
            before_sleep=self._before_sleep,
            retry_error_callback=_result,
        )
        answer: Answer = await retrying(self._one_attempt, batch)
        return answer

    async def _one_attempt(self, batch: Sequence[Item]) -> Answer:
        self.counts["requests"] += 1
        return await self._send(batch)

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

    def _refused(self, item: Item, reason: str) -> None:
        self._lost_in_a_row += 1
        if self._lost_in_a_row > MAX_LOST_IN_A_ROW:
            raise ExportError(
                f"the target refused {MAX_LOST_IN_A_ROW} items one after another and accepted none, lastly because "
                f"{reason}. Check that it is the right target, and start the exporter again: it continues after the last "
                "batch that was dealt with whole"
            )
        self.counts["refused"] += 1
        self._lost(item, reason)


_backoff = wait_exponential_jitter(initial=FIRST_WAIT_S, max=MAX_WAIT_S, jitter=1.0)


def _wait_s(state: RetryCallState) -> float:
    asked_s = _result(state).after_s
    return float(_backoff(state)) if asked_s is None else asked_s


def _result(state: RetryCallState) -> Later:
    if state.outcome is None:  # tenacity sets it before it calls any of these functions
        raise RuntimeError("an attempt has no outcome")
    answer: Later = state.outcome.result()
    return answer

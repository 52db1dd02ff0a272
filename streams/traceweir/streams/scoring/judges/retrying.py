"""Repeats a question to a model, with growing pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from traceweir.schemas.judge_config import Retries
from traceweir.streams.scoring.judges.errors import Transient

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

Sleep = Callable[[float], Awaitable[None]]


def retrying(
    usual: Retries, unreachable: Retries | None, sleep: Sleep, attempt_s: float, ends_at_s: float | None
) -> AsyncRetrying:
    """Returns the attempts of a question; the last one raises its error.

    A provider that names a pause decides it; otherwise each pause is longer than the one before.

    Args:
        usual: The retries of the config.
        unreachable: The retries after no connection could be made; None: the usual ones.
        sleep: Waits this many seconds before a retry.
        attempt_s: The longest time of an attempt.
        ends_at_s: Time of the event loop at which the last attempt must have ended; None: no such time.
    """
    from tenacity import AsyncRetrying, retry_if_exception, wait_exponential, wait_random

    def error_of(state: RetryCallState) -> BaseException | None:
        return state.outcome.exception() if state.outcome else None

    def retries_after(error: BaseException | None) -> Retries:
        is_unreachable = isinstance(error, Transient) and error.unreachable
        return unreachable if is_unreachable and unreachable is not None else usual

    def pause_s(state: RetryCallState) -> float:
        error = error_of(state)
        retries = retries_after(error)
        jitter = wait_random(0, retries.jitter_s)
        # A pause of 0 says nothing: it would ask a busy provider again at once.
        if isinstance(error, Transient) and error.after_s:
            return error.after_s + jitter(state)
        growing = wait_exponential(retries.initial_s, retries.max_s, retries.base) + jitter
        return growing(state)

    def is_last(state: RetryCallState) -> bool:
        if state.attempt_number >= retries_after(error_of(state)).attempts:
            return True
        # tenacity decides the pause first.
        return not fits(attempt_s, ends_at_s, state.upcoming_sleep)

    def is_worth_retrying(error: BaseException) -> bool:
        return isinstance(error, Transient) and (error.after_s or 0.0) <= usual.max_s

    return AsyncRetrying(
        sleep=sleep,
        stop=is_last,
        wait=pause_s,
        retry=retry_if_exception(is_worth_retrying),
        reraise=True,
    )


def fits(attempt_s: float, ends_at_s: float | None, pause_s: float = 0.0) -> bool:
    """Returns whether an attempt of this length that begins after a pause ends in time."""
    return ends_at_s is None or asyncio.get_running_loop().time() + pause_s + attempt_s <= ends_at_s

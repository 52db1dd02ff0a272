"""Repeats a question to a model, with growing pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from traceweir.schemas.judge_config import Retries
from traceweir.streams.scoring.judges.errors import Transient

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

Sleep = Callable[[float], Awaitable[None]]


def retrying(usual: Retries, unreachable: Retries | None, sleep: Sleep) -> AsyncRetrying:
    """Returns the attempts of a question; the last one raises its error.

    Args:
        usual: The retries of the config.
        unreachable: The retries after no connection could be made; None: the usual ones.
        sleep: Waits this many seconds before a retry.
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
        growing = wait_exponential(retries.initial_s, retries.max_s, retries.base) + wait_random(0, retries.jitter_s)
        after_s = error.after_s if isinstance(error, Transient) else None
        return max(growing(state), after_s or 0.0)

    def is_last(state: RetryCallState) -> bool:
        return state.attempt_number >= retries_after(error_of(state)).attempts

    def is_worth_retrying(error: BaseException) -> bool:
        return isinstance(error, Transient) and (error.after_s or 0.0) <= usual.max_s

    return AsyncRetrying(
        sleep=sleep,
        stop=is_last,
        wait=pause_s,
        retry=retry_if_exception(is_worth_retrying),
        reraise=True,
    )

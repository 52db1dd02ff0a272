"""Waits for several pieces of work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def together(work: Iterable[Awaitable[T]]) -> list[T]:
    """Waits for the end of all work, also after a failure or a cancellation, so that nothing goes on behind the caller.

    Returns:
        The results, in the order of the work.

    Raises:
        BaseException: what the first of the failed work raised, in this order.
    """
    found = await asyncio.gather(*work, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if not isinstance(each, BaseException)]

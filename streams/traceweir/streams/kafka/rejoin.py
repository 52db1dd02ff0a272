"""Rejoins the consumer group after an error that aiokafka does not handle.

aiokafka raises such an error at the next fetch, and stops coordinating until then. Faust does not fetch before it has
partitions, so the worker would never join its group again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.errors import GroupAuthorizationFailedError

from traceweir.streams.errors import WorkerError

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5
TROUBLE_S = 120.0
"""Duration in seconds of a series of errors after which the worker stops.

A longer pause between two errors starts a new series.
"""


class GroupRefusedError(WorkerError):
    """The worker is not allowed to join its consumer group, or fails to join it."""


def rejoin_on_error(
    coordinator: Any, give_up: Callable[[GroupRefusedError], object]
) -> Callable[[BaseException], Awaitable[None]]:
    """Returns a replacement for aiokafka's `GroupCoordinator._push_error_to_user`, which joins the group again.

    The replacement calls `give_up` if the worker is not allowed to join, or if errors continue. The watchdogs detect a
    join that hangs.

    Args:
        coordinator: The `GroupCoordinator`.
        give_up: Ends the worker.
    """

    loop = asyncio.get_running_loop()
    began = last = -math.inf

    async def answer(error: BaseException) -> None:
        nonlocal began, last
        now = loop.time()
        began, last = began if now - last <= TROUBLE_S else now, now
        if isinstance(error, GroupAuthorizationFailedError):
            give_up(
                GroupRefusedError(
                    f"Kafka does not allow this worker to join the consumer group {coordinator.group_id!r}: "
                    "grant its user Read on that group, and start the worker again"
                )
            )
            await coordinator._closing
            return
        if now - began > TROUBLE_S:
            give_up(
                GroupRefusedError(
                    f"the consumer group {coordinator.group_id!r} has answered with errors for {TROUBLE_S:g} s, the last error: {error}"
                )
            )
            await coordinator._closing
            return
        log.warning("the consumer group answered with an error, and the worker joins it again: %s", error)
        await asyncio.wait([coordinator._closing], timeout=AGAIN_AFTER_S)
        coordinator.request_rejoin()

    return answer

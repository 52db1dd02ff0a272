"""What a worker does when its consumer group answers with an error that aiokafka has no answer to.

aiokafka hands such an error to whoever asks for records next, and coordinates nothing until then. Faust asks for none before it has
partitions: the worker would stay outside its group for ever.
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
"""For how long errors may follow each other, none later than this after the one before, until the worker gives up."""


class GroupRefusedError(WorkerError):
    """The worker may not be a member of its group, or cannot."""


def rejoin_on_error(
    coordinator: Any, give_up: Callable[[GroupRefusedError], object]
) -> Callable[[BaseException], Awaitable[None]]:
    """Give what takes the place of aiokafka's `GroupCoordinator._push_error_to_user`.

    It joins the group again; joining that stands still is the watchdogs' business. Where the worker may not, or errors go on, it gives up.

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
                    f"Kafka does not let this worker into the consumer group {coordinator.group_id!r}: "
                    "allow its user Read on that group, and start it again"
                )
            )
            await coordinator._closing
            return
        if now - began > TROUBLE_S:
            give_up(
                GroupRefusedError(
                    f"the consumer group {coordinator.group_id!r} has answered with errors for {TROUBLE_S:g} s, the last one: {error}"
                )
            )
            await coordinator._closing
            return
        log.warning("the consumer group answered with an error, joining it again: %s", error)
        await asyncio.wait([coordinator._closing], timeout=AGAIN_AFTER_S)
        coordinator.request_rejoin()

    return answer

"""What a worker does when its consumer group answers with an error that aiokafka has no answer to.

aiokafka hands such an error to whoever asks for records next, and coordinates nothing until then. Faust asks for none before it has
partitions: the worker would stay outside its group for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.errors import GroupAuthorizationFailedError

from tracegate.streams.failure import WorkerFailure

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5


class GroupRefusedError(WorkerFailure):
    """The worker may not be a member of its group."""


def rejoins(
    coordinator: Any, give_up: Callable[[GroupRefusedError], object]
) -> Callable[[BaseException], Awaitable[None]]:
    """Give what takes the place of aiokafka's `GroupCoordinator._push_error_to_user`.

    It joins the group again, which the watchdogs bound. Where the worker may not, it gives up.

    Args:
        coordinator: The `GroupCoordinator`.
        give_up: Ends the worker.
    """

    async def answer(error: BaseException) -> None:
        if isinstance(error, GroupAuthorizationFailedError):
            give_up(
                GroupRefusedError(
                    f"Kafka does not let this worker into the consumer group {coordinator.group_id!r}: "
                    "allow its user Read on that group, and start it again"
                )
            )
            await coordinator._closing
            return
        log.warning("the consumer group answered with an error, joining it again: %s", error)
        await asyncio.wait([coordinator._closing], timeout=AGAIN_AFTER_S)
        coordinator.request_rejoin()

    return answer

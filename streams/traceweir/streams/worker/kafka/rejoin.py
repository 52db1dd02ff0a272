"""Rejoins the consumer group after an error that aiokafka does not handle.

aiokafka raises such an error at the next fetch, and stops coordinating until then. Faust does not fetch before it has
partitions, so the worker would never join its group again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiokafka.errors import GroupAuthorizationFailedError

from traceweir.streams.base.errors import WorkerError

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5
TROUBLE_S = 120.0
"""Duration in seconds of a series of errors after which the worker stops.

A longer pause between two errors starts a new series.
"""


class GroupRefusedError(WorkerError):
    """The worker is not allowed to join its consumer group, or fails to join it."""


class StaticPlace(Protocol):
    """The place of this process in the group, as a static member."""

    def joined(self, member_id: str) -> None:
        """Notes the id that Kafka has given to this process."""

    def successor(self) -> WorkerError | None:
        """Returns why this process must not join its group again, None if it can; blocks while it asks the brokers."""


def end_if_replaced(coordinator: Any, place: StaticPlace, give_up: Callable[[WorkerError], object]) -> None:
    """Lets a static member that Kafka does not know any more end if another process has its place.

    Otherwise both would join again and again, each in the place of the other.

    Args:
        coordinator: The `GroupCoordinator`.
        place: Its place.
        give_up: Ends the worker.
    """
    join = coordinator._do_rejoin_group
    forget = coordinator.reset_generation
    joined = False

    def note() -> None:
        nonlocal joined
        if coordinator.member_id:
            joined = True
            place.joined(coordinator.member_id)

    def note_and_forget() -> None:
        note()
        forget()

    async def join_unless_replaced(subscription: Any) -> bool:
        if joined and not coordinator.member_id and await _is_replaced(coordinator, place, give_up):
            return False
        success: bool = await join(subscription)
        note()
        return success

    coordinator._do_rejoin_group = join_unless_replaced
    coordinator.reset_generation = note_and_forget


async def _is_replaced(coordinator: Any, place: StaticPlace, give_up: Callable[[WorkerError], object]) -> bool:
    if coordinator.member_id:
        place.joined(coordinator.member_id)
    reason = await asyncio.to_thread(place.successor)
    if reason is None:
        return False
    give_up(reason)
    await coordinator._closing
    return True


def rejoin_on_error(
    coordinator: Any,
    give_up: Callable[[WorkerError], object],
    place: StaticPlace | None = None,
) -> Callable[[BaseException], Awaitable[None]]:
    """Returns a replacement for aiokafka's `GroupCoordinator._push_error_to_user`, which joins the group again.

    The replacement calls `give_up` if the worker is not allowed to join, or if errors continue. The watchdogs detect a
    join that hangs.

    Args:
        coordinator: The `GroupCoordinator`.
        give_up: Ends the worker.
        place: The place of a static member. aiokafka does not know the error with which Kafka refuses a process whose
            place another has.
    """

    loop = asyncio.get_running_loop()
    began = last = -math.inf

    async def answer(error: BaseException) -> None:
        nonlocal began, last
        now = loop.time()
        began = began if now - last <= TROUBLE_S else now
        last = now
        if isinstance(error, GroupAuthorizationFailedError):
            give_up(
                GroupRefusedError(
                    f"Kafka does not allow this worker to join the consumer group {coordinator.group_id!r}: "
                    "grant its user Read on that group, and start the worker again"
                )
            )
            await coordinator._closing
            return
        if place is not None and await _is_replaced(coordinator, place, give_up):
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

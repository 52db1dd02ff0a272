"""Tests how a worker handles errors of its consumer group."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, UnknownError

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.worker.kafka import rejoin
from traceweir.streams.worker.kafka.rejoin import end_if_replaced, rejoin_on_error


class Coordinator:
    """Has the part of aiokafka's group coordinator that the product uses."""

    group_id = "traceweir.assemble"

    def __init__(self) -> None:
        self.closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = self.closing  # the name in aiokafka
        self.rejoined = self.joined = 0
        self.member_id = ""

    async def _do_rejoin_group(self, subscription: object) -> bool:
        self.joined += 1
        self.member_id = f"member {self.joined}"
        return True

    def reset_generation(self) -> None:
        self.member_id = ""

    async def join(self) -> bool:
        """Joins the group, as aiokafka's coordinator does."""
        return await self._do_rejoin_group(None)

    def request_rejoin(self) -> None:
        self.rejoined += 1


class Place:
    """The place of a static member, which another process has if there is a reason to end."""

    def __init__(self, reason: WorkerError | None) -> None:
        self.reason, self.noted = reason, list[str]()

    def joined(self, member_id: str) -> None:
        self.noted.append(member_id)

    def successor(self) -> WorkerError | None:
        return self.reason


async def test_an_error_is_logged_and_the_worker_rejoins_the_group(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejoin, "AGAIN_AFTER_S", 0.0)
    coordinator, given_up = Coordinator(), list[WorkerError]()
    with caplog.at_level(logging.WARNING):
        await rejoin_on_error(coordinator, given_up.append)(UnknownError("what is this"))
    assert (coordinator.rejoined, given_up) == (1, [])
    assert caplog.messages == [
        "the consumer group answered with an error, and the worker joins it again: [Error -1] UnknownError: what is this"
    ]


async def test_errors_for_120_s_end_the_worker_and_separate_errors_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejoin, "AGAIN_AFTER_S", 0.0)
    loop, coordinator = asyncio.get_running_loop(), Coordinator()
    given_up: asyncio.Future[WorkerError] = loop.create_future()
    answer = rejoin_on_error(coordinator, given_up.set_result)
    began = loop.time()
    # The errors are continuous since 200 s. Not 320: the difference of two floats can be more than 120.
    for passed_s in (0, 200, 300, 319):
        monkeypatch.setattr(loop, "time", lambda passed_s=passed_s: began + passed_s)
        await answer(UnknownError("what is this"))
    assert (coordinator.rejoined, given_up.done()) == (4, False)
    monkeypatch.setattr(loop, "time", lambda: began + 321)
    last = asyncio.ensure_future(answer(UnknownError("still")))
    assert "has answered with errors for 120 s, the last error: [Error -1] UnknownError: still" in str(await given_up)
    coordinator.closing.set_result(None)
    await last


async def test_a_worker_without_authorization_for_its_group_gives_up_without_rejoining() -> None:
    coordinator = Coordinator()
    given_up: asyncio.Future[WorkerError] = asyncio.get_running_loop().create_future()
    answer = asyncio.ensure_future(
        rejoin_on_error(coordinator, given_up.set_result)(GroupAuthorizationFailedError(coordinator.group_id))
    )
    assert "consumer group 'traceweir.assemble': grant its user Read on that group" in str(await given_up)
    assert not answer.done()
    coordinator.closing.set_result(None)
    await answer
    assert coordinator.rejoined == 0


async def test_a_static_member_with_a_successor_ends_and_does_not_join_in_its_place() -> None:
    coordinator = Coordinator()
    given_up: asyncio.Future[WorkerError] = asyncio.get_running_loop().create_future()
    end_if_replaced(coordinator, Place(WorkerError("another has the place")), given_up.set_result)
    await coordinator.join()  # at its first join, the start of the process has looked
    await coordinator.join()  # still known to Kafka: a rebalance
    coordinator.reset_generation()
    last = asyncio.ensure_future(coordinator.join())
    assert str(await given_up) == "another has the place"
    coordinator.closing.set_result(None)
    assert (await last, coordinator.joined) == (False, 2)


async def test_a_member_that_kafka_has_expelled_joins_again_if_nobody_has_its_place() -> None:
    coordinator, place, given_up = Coordinator(), Place(None), list[WorkerError]()
    end_if_replaced(coordinator, place, given_up.append)
    await coordinator.join()
    coordinator.reset_generation()
    assert (await coordinator.join(), coordinator.joined, given_up) == (True, 2, [])
    assert set(place.noted) == {"member 1", "member 2"}


async def test_an_error_of_the_group_ends_a_static_member_that_has_a_successor() -> None:
    coordinator = Coordinator()
    given_up: asyncio.Future[WorkerError] = asyncio.get_running_loop().create_future()
    answer = rejoin_on_error(coordinator, given_up.set_result, Place(WorkerError("another has the place")))
    last = asyncio.ensure_future(answer(UnknownError("82")))
    assert str(await given_up) == "another has the place"
    coordinator.closing.set_result(None)
    await last
    assert coordinator.rejoined == 0

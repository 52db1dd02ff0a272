"""Tests how a worker handles errors of its consumer group."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, UnknownError

from traceweir.streams.kafka import rejoin
from traceweir.streams.kafka.rejoin import GroupRefusedError, rejoin_on_error


class Coordinator:
    """Has the part of aiokafka's group coordinator that the product uses."""

    group_id = "traceweir.assemble"

    def __init__(self) -> None:
        self.closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = self.closing  # the name in aiokafka
        self.rejoined = 0

    def request_rejoin(self) -> None:
        self.rejoined += 1


async def test_an_error_is_logged_and_the_worker_rejoins_the_group(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejoin, "AGAIN_AFTER_S", 0.0)
    coordinator, given_up = Coordinator(), list[GroupRefusedError]()
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
    given_up: asyncio.Future[GroupRefusedError] = loop.create_future()
    answer = rejoin_on_error(coordinator, given_up.set_result)
    began = loop.time()
    for passed_s in (0, 200, 300, 320):  # the errors are continuous since 200 s
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
    given_up: asyncio.Future[GroupRefusedError] = asyncio.get_running_loop().create_future()
    answer = asyncio.ensure_future(
        rejoin_on_error(coordinator, given_up.set_result)(GroupAuthorizationFailedError(coordinator.group_id))
    )
    assert "consumer group 'traceweir.assemble': grant its user Read on that group" in str(await given_up)
    assert not answer.done()
    coordinator.closing.set_result(None)
    await answer
    assert coordinator.rejoined == 0

"""During a rebalance Faust seeks in partitions that are gone; the worker does not warn of it, and hides nothing else."""

from __future__ import annotations

from typing import Any

import faust
import pytest
from aiokafka.errors import IllegalStateError
from faust.transport.drivers import aiokafka as driver

from traceweir.streams.kafka.faust_adapter import install


class _Intake:
    inputs: dict[str, object] = {}


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a consumer whose seek finds no assignment."""

    async def no_assignment(self: object) -> None:
        raise IllegalStateError("No current assignment for partition")

    monkeypatch.setattr(driver.Consumer, "perform_seek", no_assignment)
    app = faust.App("seeks")
    install(app, _Intake(), "changelog")  # type: ignore[arg-type]
    return app.transport.Consumer.__new__(app.transport.Consumer)


async def test_a_seek_in_a_revoked_partition_does_nothing_while_records_do_not_flow(consumer: Any) -> None:
    consumer.flow_active = False
    await consumer.perform_seek()


async def test_a_seek_that_fails_while_records_flow_is_an_error(consumer: Any) -> None:
    consumer.flow_active = True
    with pytest.raises(IllegalStateError):
        await consumer.perform_seek()

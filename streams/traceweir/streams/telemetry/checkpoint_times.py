"""Measures how long checkpoints take, and whether one is stuck."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from aiokafka import TopicPartition

from traceweir.streams.runtime.delivery import Delivery, Offsets, RowsByPlace
from traceweir.streams.stages.base import Output
from traceweir.streams.telemetry import catalogue
from traceweir.streams.telemetry.measured import Measured


class CheckpointTimes:
    """Measures the deliveries of a worker."""

    def __init__(self, measured: Measured, clock: Callable[[], float] = monotonic) -> None:
        self._measured, self._clock = measured, clock
        self._began: dict[_Timed, float] = {}
        measured.add(catalogue.CHECKPOINT_FAILURES, 0)

    def timed(self, delivery: Delivery) -> Delivery:
        """Returns a delivery that is measured."""
        return _Timed(delivery, self)

    def age_s(self) -> float:
        """Returns the seconds since the oldest checkpoint in work began; 0 if none is in work."""
        return max(0.0, self._clock() - min(self._began.values())) if self._began else 0.0

    async def send(
        self, timed: _Timed, rows: RowsByPlace, outputs: Sequence[Output], offsets: Offsets
    ) -> Mapping[TopicPartition, int]:
        """Sends a checkpoint, and measures it."""
        began = self._began[timed] = self._clock()
        try:
            end = await timed.delivery.send(rows, outputs, offsets)
        except BaseException:
            self._measured.add(catalogue.CHECKPOINT_FAILURES, 1)
            raise
        finally:
            self._began.pop(timed, None)
        self._measured.record(catalogue.CHECKPOINT_DURATION, self._clock() - began)
        return end


class _Timed:
    """A delivery whose checkpoints are measured."""

    def __init__(self, delivery: Delivery, times: CheckpointTimes) -> None:
        self.delivery, self._times = delivery, times

    async def start(self) -> None:
        await self.delivery.start()

    async def send(
        self, rows: RowsByPlace, outputs: Sequence[Output], offsets: Offsets
    ) -> Mapping[TopicPartition, int]:
        return await self._times.send(self, rows, outputs, offsets)

    async def stop(self) -> None:
        await self.delivery.stop()

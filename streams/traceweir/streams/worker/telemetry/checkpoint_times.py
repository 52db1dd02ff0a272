"""Measures how long checkpoints take, and whether one is stuck."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from aiokafka import TopicPartition

from traceweir.streams.base.stages.base import Output
from traceweir.streams.worker.runtime.batches import RowsByPlace
from traceweir.streams.worker.runtime.delivery import CheckpointDelivery, Further, Offsets
from traceweir.streams.worker.telemetry import catalogue
from traceweir.streams.worker.telemetry.measured import Measured


class CheckpointTimes:
    """Measures the delivery of a worker, which sends one checkpoint at a time."""

    def __init__(self, measured: Measured, clock: Callable[[], float] = monotonic) -> None:
        self._measured = measured
        self._clock = clock
        self._began: float | None = None
        measured.add(catalogue.CHECKPOINT_FAILURES, 0)

    def timed(self, delivery: CheckpointDelivery) -> CheckpointDelivery:
        """Returns a delivery that is measured."""
        return _Timed(delivery, self)

    def age_s(self) -> float:
        """Returns the seconds since the checkpoint in work began; 0 if none is in work."""
        return 0.0 if self._began is None else max(0.0, self._clock() - self._began)

    async def send(
        self,
        delivery: CheckpointDelivery,
        rows: RowsByPlace,
        outputs: Sequence[Output],
        offsets: Offsets,
        further: Further | None = None,
    ) -> Mapping[TopicPartition, int]:
        """Sends a checkpoint, and measures it."""
        began = self._began = self._clock()
        try:
            ends = await delivery.send(rows, outputs, offsets, further)
        except BaseException:
            self._measured.add(catalogue.CHECKPOINT_FAILURES, 1)
            raise
        finally:
            self._began = None
        self._measured.record(catalogue.CHECKPOINT_DURATION, self._clock() - began)
        return ends


class _Timed:
    """A delivery whose checkpoints are measured."""

    def __init__(self, delivery: CheckpointDelivery, times: CheckpointTimes) -> None:
        self._delivery = delivery
        self._times = times

    async def start(self) -> None:
        await self._delivery.start()

    async def send(
        self, rows: RowsByPlace, outputs: Sequence[Output], offsets: Offsets, further: Further | None = None
    ) -> Mapping[TopicPartition, int]:
        return await self._times.send(self._delivery, rows, outputs, offsets, further)

    async def stop(self) -> None:
        await self._delivery.stop()

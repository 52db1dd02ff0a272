"""Follows a shadow while one of its processes runs: its progress over all processes, its end, and requests to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import aclosing
from time import monotonic
from typing import Any, Literal

from mode import Service

from traceweir.streams.base.service_tasks import service_task
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.log import stop_requests
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.consumer_group import GroupOffsets
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
LINE_EVERY_S = 10.0
Outcome = Literal["finished", "stopped", "interrupted"]
Progress = Callable[[int, int], object]
"""Receives the number of offsets that are done, over all processes, and the number of all offsets of the range."""


class ShadowWatch(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Ends the process when the whole range is scored and gated, or when somebody asks for it.

    Args:
        settings: Where Kafka is.
        definition: The shadow.
        progress: Receives the progress after each look.
        requests_from: The first offset of requests to stop that are meant for this process.
        kwargs: Arguments of the service.
    """

    def __init__(
        self, settings: Settings, definition: Definition, progress: Progress, requests_from: int, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._settings = settings
        self._definition = definition
        self._progress = progress
        self._requests_from = requests_from
        self._names = ShadowNames.of(settings, definition.name)
        self.outcome: Outcome = "interrupted"
        """How the process has ended; `interrupted` by a signal, or by a failure."""
        self._logged_at = monotonic()

    @service_task("checks whether the range of the shadow is finished")
    async def _look(self) -> None:
        offsets = await asyncio.to_thread(
            GroupOffsets, self._settings, self._names.application, self._names.topics.sessions
        )
        try:
            while not self.should_stop:
                try:
                    if await self._is_finished(offsets):
                        self._end("finished")
                        return
                except (ShadowError, KafkaUnreachableError) as error:
                    # The watchdog of the worker counts the silence.
                    log.debug("the progress is unknown: %s", error)
                await self.sleep(LOOK_EVERY_S)
        finally:
            await asyncio.to_thread(offsets.close)

    @service_task("reads requests to stop")
    async def _listen(self) -> None:
        try:
            requests = stop_requests(self._settings, self._definition.name, self._requests_from)
            async with aclosing(requests) as found:
                async for why in found:
                    log.info("the process ends, because %s", why)
                    self._end("stopped")
                    return
        except (ShadowError, KafkaUnreachableError) as error:
            log.warning("requests to stop are not read any more: %s; stop this process with a signal", error)

    async def _is_finished(self, offsets: GroupOffsets) -> bool:
        done = done_of(self._definition, await asyncio.to_thread(offsets.committed))
        size = self._definition.size
        self._progress(done, size)
        if monotonic() - self._logged_at >= LINE_EVERY_S:
            self._logged_at = monotonic()
            log.info("shadow %s: %.1f %% of the range is scored", self._definition.name, 100 * done / size)
        return done == size and not await self._has_candidates()

    async def _has_candidates(self) -> bool:
        """Returns whether a candidate waits for the gate. No further one can come, because every session is scored."""
        topic = self._names.topics.candidates
        offsets = await asyncio.to_thread(GroupOffsets, self._settings, self._names.application, topic)
        try:
            decided = await asyncio.to_thread(offsets.committed)
        finally:
            await asyncio.to_thread(offsets.close)
        # The offset of the last session and its candidates are one transaction, but the offset can be visible first.
        async with BoundedReader(self._settings, topic, ShadowError, up_to_all=True) as reader:
            begins = {number: decided.get(number, begin) for number, begin in reader.begins.items()}
            async with aclosing(reader.records(begins)) as records:
                async for _ in records:
                    return True
        return False

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        # An orderly end: last checkpoints, then the worker leaves its group.
        os.kill(os.getpid(), signal.SIGTERM)


def done_of(definition: Definition, committed: Mapping[int, int]) -> int:
    """Returns the number of offsets of the range that are done; the same number as its size if all are.

    Args:
        definition: The shadow.
        committed: The committed offsets by partition; a partition without one has not begun.
    """
    return sum(
        min(end, max(definition.begins[number], committed.get(number, 0))) - definition.begins[number]
        for number, end in definition.ends.items()
    )

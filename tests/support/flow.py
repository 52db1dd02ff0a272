"""Contains what the flow tests share in addition to `traceweir.streams.testing`."""

from __future__ import annotations

import asyncio
from typing import Any

from traceweir.streams.stages.errors import RecordUnavailable
from traceweir.streams.testing import Flow, Message
from traceweir.streams.topics import Topics

TOPICS = Topics.of()


class RereadFlow(Flow):
    """A flow in which a record that is read again can be deleted, slow to arrive, or unavailable."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.first_offset = 0
        """Records below this offset are deleted."""
        self.read_again: list[int] = []
        """Offsets of the records that were read again, in order."""
        self.hold_reading: asyncio.Event | None = None
        """If set, reading waits for this event."""
        self.brokers_fail = False
        super().__init__(*arguments, **options)

    async def read_record(self, topic: str, partition: int, offset: int) -> Message | None:
        self.read_again.append(offset)
        if self.hold_reading is not None:
            await self.hold_reading.wait()
        if self.brokers_fail:
            raise RecordUnavailable
        return None if offset < self.first_offset else await super().read_record(topic, partition, offset)

"""Contains what the flow tests share in addition to `traceweir.streams.testing`."""

from __future__ import annotations

import asyncio
from typing import Any

from traceweir.streams.base.stages.errors import RecordUnavailable
from traceweir.streams.base.topics import Topics
from traceweir.streams.testing import START_S, Flow, Message, event

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


def assemble_only(**options: Any) -> Flow:
    """Returns a flow with the assemble stage alone."""
    return Flow(stages=("assemble",), **options)


def published_events(flow: Flow) -> list[tuple[int, int, str]]:
    """Returns the segment, revision and joined event ids of each session, in the order of publication."""
    return [(s["segment"], s["revision"], "".join(e["event_id"] for e in s["events"])) for s in flow.sessions()]


async def send_event(flow: Flow, event_id: str, at: float, **fields: Any) -> None:
    """Sends an event that occurred and was recorded `at` seconds after the start, and runs the stages."""
    flow.send(TOPICS.invocations, event(event_id=event_id, at=at, **fields), at=at)
    await flow.settle()


async def advance_to(flow: Flow, at: float) -> None:
    """Sets the clock to `at` seconds after the start, and runs the stages."""
    flow.pass_time(START_S + at - flow.now)
    await flow.settle()

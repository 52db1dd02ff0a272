"""Transports in place of Kafka, which tests lead: they acknowledge at once, later or never, or have no room."""

from __future__ import annotations

import json
import threading
from typing import Any

from traceweir.client.delivery import Done


class FakeTransport:
    """Keeps what it takes, and acknowledges it at the next poll."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes, bytes]] = []
        self.taken: list[Done] = []
        self.is_closed = False

    def send(self, topic: str, key: bytes, value: bytes, done: Done) -> None:
        self.records.append((topic, key, value))
        self.taken.append(done)

    def poll(self, timeout_s: float) -> None:
        taken, self.taken = self.taken, []
        for done in taken:
            done("")

    def close(self) -> None:
        self.is_closed = True

    def documents(self, topic: str = "traceweir.invocations") -> list[dict[str, Any]]:
        return [json.loads(value) for name, _, value in self.records if name == topic]


class HeldTransport(FakeTransport):
    """Acknowledges nothing until `release` is set, as a broker that is slow or not there."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    def poll(self, timeout_s: float) -> None:
        if self.release.wait(timeout_s):
            super().poll(timeout_s)


class FullTransport(FakeTransport):
    """Has no room for the first records, as librdkafka with a full buffer, and refuses those of one kind."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def send(self, topic: str, key: bytes, value: bytes, done: Done) -> None:
        if self.refusals:
            self.refusals -= 1
            raise BufferError
        if b"too large" in value:
            raise ValueError("the record is too large")
        super().send(topic, key, value, done)

"""Starts the OTLP endpoint in the test's process, with a writer that keeps the records in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.otlp.json_requests import Signal
from traceweir.streams.tools.endpoint.receiver import Receiver, WriteError
from traceweir.streams.tools.endpoint.server import ListenAddresses, serving

SETTINGS: dict[str, Any] = {"otlp_http_port": 0, "otlp_grpc_port": 0, "otlp_grpc": "off"}


@dataclass
class MemoryWriter:
    """Keeps records in memory, in place of Kafka."""

    max_record_bytes: int = 1_000_000
    problem: str | None = None
    written: dict[Signal, list[bytes]] = field(default_factory=lambda: {"spans": [], "logs": []})
    is_down: bool = False
    """Whether every write fails."""
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether Kafka answers; before, a write waits."""
    called: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether a write has begun."""

    def __post_init__(self) -> None:
        self.answers.set()

    async def write(self, signal: Signal, values: Sequence[bytes]) -> None:
        self.called.set()
        await self.answers.wait()
        if self.is_down:
            raise WriteError("otlp_spans: no broker answers")
        self.written[signal] += values


@dataclass
class Endpoint:
    """A running endpoint."""

    receiver: Receiver
    addresses: ListenAddresses
    writer: MemoryWriter


@asynccontextmanager
async def endpoint(writer: MemoryWriter | None = None, **settings: Any) -> AsyncIterator[Endpoint]:
    """Runs an endpoint on a free port within the block."""
    writer = writer or MemoryWriter()
    async with serving(Settings(**{**SETTINGS, **settings}), writer) as (receiver, addresses):
        yield Endpoint(receiver, addresses, writer)

"""A local HTTP server that stands for the target of an exporter: it keeps what it receives, and answers as it is told."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Request:
    """A request as it arrived, decompressed."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def events(self) -> list[Any]:
        """The log records of an OTLP request."""
        found = ExportLogsServiceRequest.FromString(self.body)
        return [each for resource in found.resource_logs for scope in resource.scope_logs for each in scope.log_records]

    @property
    def spans(self) -> list[Any]:
        """The spans of an OTLP request."""
        found = ExportTraceServiceRequest.FromString(self.body)
        return [each for resource in found.resource_spans for scope in resource.scope_spans for each in scope.spans]


@dataclass(frozen=True)
class Said:
    """What the server answers."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


OK = Said(headers={"Content-Type": "application/x-protobuf"}, body=ExportLogsServiceResponse().SerializeToString())


@dataclass
class HttpTarget:
    """A running server."""

    url: str
    answer: Callable[[Request], Said] = lambda _: OK
    arrived: list[Request] = field(default_factory=list)
    """All requests, in order."""
    accepted: list[Request] = field(default_factory=list)
    """The requests that were answered with success."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """Unset, no request is answered."""

    async def until(self, holds: Callable[[HttpTarget], bool], within_s: float = 60.0) -> None:
        """Waits until a condition of what arrived holds."""
        async with asyncio.timeout(within_s):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()

    @property
    def ids(self) -> list[str]:
        """The result ids of the accepted events, in order, repetitions included."""
        return [text(event, "traceweir.result_id") for request in self.accepted for event in request.events]


def attributes(item: Any) -> dict[str, Any]:
    """Returns the attributes of an event or a span."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in item.attributes}


def text(item: Any, name: str) -> str:
    """Returns an attribute that is a text."""
    return str(attributes(item)[name])


@asynccontextmanager
async def http_target(answer: Callable[[Request], Said] | None = None) -> AsyncIterator[HttpTarget]:
    """Runs a server on a free port of this machine within the block."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.read()  # aiohttp decompresses it
        found = Request(request.path, dict(request.headers), gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
        target.arrived.append(found)
        target.changed.set()
        await target.held.wait()
        said = target.answer(found)
        if said.status < 300:
            target.accepted.append(found)
        target.changed.set()
        return web.Response(status=said.status, headers=dict(said.headers), body=said.body)

    app = web.Application(client_max_size=64_000_000)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    target = HttpTarget(f"http://127.0.0.1:{port}")
    target.held.set()
    if answer is not None:
        target.answer = answer
    try:
        yield target
    finally:
        target.held.set()
        await runner.cleanup()

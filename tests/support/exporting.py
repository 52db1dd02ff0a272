"""Runs `traceweir export`, in this process or as one of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from traceweir.streams.clock import utc_now
from traceweir.streams.export.http_post import HttpPost
from traceweir.streams.export.otlp_environment import read_otlp_environment
from traceweir.streams.export.otlp_target import OtlpTarget
from traceweir.streams.export.problems import Problems
from traceweir.streams.export.relay import Relay
from traceweir.streams.settings import Settings

LIMIT_S = 60.0
"""Time limit in seconds of an exporter that stops."""


@contextmanager
def export_process(settings: Settings, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command within the block, and then kills it if it still runs."""
    servers = {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers}
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", "export", *arguments]
    with subprocess.Popen(command, env={**os.environ, **servers, **environment}, stderr=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                running.kill()


async def at_once(seconds: float) -> None:
    """Stands for a wait between two attempts."""
    await asyncio.sleep(0)


@asynccontextmanager
async def exporting(
    settings: Settings,
    url: str,
    *,
    group: str = "export",
    only_new: bool = False,
    stop_within_s: float = 10.0,
    lost_after_s: float = 60.0,
) -> AsyncIterator[Relay]:
    """Runs an exporter within the block, and then stops it in order."""
    environment = read_otlp_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url}, "logs")
    stop = asyncio.Event()
    async with HttpPost(environment.url, timeout_s=10.0) as post:
        target = OtlpTarget(
            environment,
            "logs",
            post,
            content="redacted",
            version="1",
            problems=Problems("traceweir.results", lambda: 0.0),
            now=utc_now,
            sleep=at_once,
        )
        relay = Relay(settings, target, group=group, only_new=only_new, lost_after_s=lost_after_s)
        running = asyncio.create_task(relay.run(stop, stop_within_s))
        try:
            yield relay
        finally:
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)

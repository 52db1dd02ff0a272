"""Runs `traceweir export` as a process of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from traceweir.streams.settings import Settings


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

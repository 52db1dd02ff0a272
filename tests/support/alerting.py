"""Runs `traceweir alerts`, in this process or as one of its own, and reads what it has written."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from traceweir.schemas.alert import Alert
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts.state_topic import AlertsError
from traceweir.streams.tools.alerts.watcher import Watcher
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

LIMIT_S = 60.0


@asynccontextmanager
async def watching(settings: Settings, now: Callable[[], float] | None = None) -> AsyncIterator[Watcher]:
    """Watches within the block, and then stops in order."""
    stop = asyncio.Event()
    watcher = Watcher(settings) if now is None else Watcher(settings, now=now)
    running = asyncio.create_task(watcher.run(stop))
    try:
        yield watcher
    finally:
        stop.set()
        await asyncio.wait_for(running, LIMIT_S)


@contextmanager
def alerts_process(settings: Settings, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `traceweir alerts run` within the block, and then kills it if it still runs."""
    environment = {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
        "TRACEWEIR_TOPIC_PREFIX": settings.topic_prefix,
        "TRACEWEIR_SESSION_TIMEOUT_S": f"{settings.session_timeout_s:g}",
        "TRACEWEIR_TRANSACTION_TIMEOUT_S": f"{settings.transaction_timeout_s:g}",
    }
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", "alerts", "run", *arguments]
    with subprocess.Popen(command, env={**os.environ, **environment}) as running:
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                running.kill()


async def written_alerts(settings: Settings) -> list[Alert]:
    """Returns the alerts on the topic, in the order of each partition."""
    found: list[Any] = []
    async with BoundedReader(settings, settings.topics.alerts, AlertsError) as reader:
        async for record in reader.records():
            found.append(Alert.model_validate_json(record.value))
            assert record.key.decode() == found[-1].alert_id
    return found


async def until(settings: Settings, wanted: Callable[[Counter[str]], bool]) -> list[Alert]:
    """Waits until the alerts that were written are as wanted; `wanted` gets their number by state."""
    async with asyncio.timeout(2 * LIMIT_S):
        while True:
            alerts = await written_alerts(settings)
            if wanted(Counter(each.state for each in alerts)):
                return alerts
            await asyncio.sleep(0.2)


def last_of_each(alerts: list[Alert]) -> dict[str, Alert]:
    """Returns the alerts by id, and requires that none was raised or resolved twice."""
    said = Counter((each.alert_id, each.state) for each in alerts)
    assert set(said.values()) <= {1}, said
    return {each.alert_id: each for each in sorted(alerts, key=lambda each: each.state)}


def listed(text: str) -> Any:
    """Returns what `traceweir alerts list --json` has printed."""
    return json.loads(text)

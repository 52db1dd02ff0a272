"""Runs `traceweir export`, in this process or as one of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.support.scoring import NOW

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.http_post import HttpPost
from traceweir.streams.tools.export.otlp_environment import read_otlp_environment
from traceweir.streams.tools.export.otlp_target import OtlpTarget
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.relay import Relay
from traceweir.streams.tools.export.source import ExportSource, alerts_of, scores_of
from traceweir.streams.tools.export.webhook_event import OF_ALERTS, EventType, alert_events, score_events
from traceweir.streams.tools.export.webhook_target import WebhookTarget
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

SECRET = "c2VjcmV0" * 4
"""What signs the events of webhooks."""
SESSION_TIMEOUT_S = 4.0
"""The embedded broker lets a group wait for 1 s less after a member has left or was killed, so 9 s by default."""
LIMIT_S = 60.0
"""Time limit in seconds of an exporter that stops."""


def exporter_settings(broker: EmbeddedBroker) -> Settings:
    """Returns the settings of exporters on an embedded broker, whose topics exist then."""
    settings = Settings(
        kafka_bootstrap_servers=broker.bootstrap_servers,
        session_timeout_s=SESSION_TIMEOUT_S,
    )
    create_topics(settings)
    return settings


@contextmanager
def export_process(settings: Settings, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command within the block, and then kills it if it still runs."""
    servers = {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
        "TRACEWEIR_SESSION_TIMEOUT_S": f"{settings.session_timeout_s:g}",
    }
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
    now: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Relay[FoundScore]]:
    """Runs an exporter within the block, and then stops it in order."""
    environment = read_otlp_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url}, "logs")
    stop, problems = asyncio.Event(), ProblemLog("traceweir.results", lambda: 0.0)
    async with HttpPost(environment.url, timeout_s=10.0) as post:
        target = OtlpTarget(
            environment,
            "logs",
            post,
            content="redacted",
            version="1",
            problems=problems,
            now=utc_now,
            sleep=at_once,
        )
        relay = Relay(
            settings,
            scores_of(settings.topics),
            target,
            group=group,
            problems=problems,
            only_new=only_new,
            lost_after_s=lost_after_s,
            now=now,
        )
        running = asyncio.create_task(relay.run(stop, stop_within_s))
        try:
            yield relay
        finally:
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)


class Clock:
    """A clock that goes forward each time it is read."""

    def __init__(self, step_s: float) -> None:
        self.step_s, self.passed_s = step_s, 0.0

    def __call__(self) -> datetime:
        self.passed_s += self.step_s
        return NOW + timedelta(seconds=self.passed_s)


@dataclass
class Exporter:
    """An exporter that runs."""

    relay: Relay[Any]
    running: asyncio.Task[None]
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def crash(self) -> None:
        """Ends it where it stands."""
        self.running.cancel()


@asynccontextmanager
async def webhook_exporting(
    settings: Settings,
    url: str,
    *,
    group: str = "hook",
    events: Collection[EventType] = ("decision", "failed"),
    metrics: Collection[str] = (),
    now: Callable[[], datetime] = utc_now,
    connections: int = 4,
    version: str = "1",
) -> AsyncIterator[Exporter]:
    """Runs `export webhook` within the block, and then stops it in order."""
    of_alerts = OF_ALERTS.issuperset(events)
    source: ExportSource[Any] = (alerts_of if of_alerts else scores_of)(settings.topics)
    event: Any = (alert_events if of_alerts else score_events)(events, metrics, "redacted")
    stop, problems = asyncio.Event(), ProblemLog(source.topic, lambda: 0.0, source.what)
    async with HttpPost(f"{url}/hook", timeout_s=10.0, connections=connections) as post:
        target: WebhookTarget[Any] = WebhookTarget(
            post,
            [SECRET],
            event=event,
            version=version,
            problems=problems,
            now=utc_now,
            connections=connections,
        )
        relay = Relay(settings, source, target, group=group, problems=problems, now=now)
        exporter = Exporter(relay, asyncio.create_task(relay.run(stop, 10.0)))
        exporter.running.add_done_callback(lambda _: exporter.ended.set())
        try:
            yield exporter
        finally:
            stop.set()
            with suppress(asyncio.CancelledError):
                await asyncio.wait_for(exporter.running, LIMIT_S)

"""Runs `traceweir alerts run`: watches until a signal, and serves the health pages."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AbstractAsyncContextManager, nullcontext, suppress

from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.process_setup import event_loop, tune_gc
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts.pages import alerts_health
from traceweir.streams.tools.alerts.watcher import Watcher
from traceweir.streams.worker.runtime.activity import in_key_values
from traceweir.streams.worker.runtime.health import bind

log = logging.getLogger(__name__)


def run_alerts(settings: Settings, *, port: int | None = None) -> None:
    """Watches until SIGTERM or Ctrl-C.

    Args:
        settings: Where Kafka is.
        port: Port of `/healthz`, `/readyz` and `/metrics` on the worker's web address; None: nothing is served.

    Raises:
        PortTakenError: the port cannot be bound.
        KafkaUnreachableError: no broker answers.
        AlertsError: a topic is missing or wrong, or a right is missing.
        NotReadyError: the settings require transactions that the broker lacks.
    """
    log_to_stderr(settings.log_options)
    # With 10,000 streams, collections took as much CPU as all else together.
    tune_gc()
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(_run(settings, port))


async def _run(settings: Settings, port: int | None) -> None:
    taken = bind(settings.web_host, port, named="--port") if port is not None else None
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows; there Ctrl-C cancels this coroutine.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    watcher = Watcher(settings)
    pages: AbstractAsyncContextManager[object] = nullcontext() if taken is None else alerts_health(taken, watcher, stop)
    try:
        async with pages:
            await watcher.run(stop)
    finally:
        log.info(
            "since the start: %s", in_key_values(dict(sorted((watcher.counts + watcher.written).items()))) or "no score"
        )

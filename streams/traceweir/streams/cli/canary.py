"""`traceweir canary`: sends a known session again and again, and says how long it took to its decision."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime

from aiohttp import web

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.canary import Beat, CanaryError, beat
from traceweir.streams.worker.runtime.health import bind
from traceweir.streams.worker.telemetry import tool_catalogue
from traceweir.streams.worker.telemetry.measured import Point
from traceweir.streams.worker.telemetry.prometheus import exposition

log = logging.getLogger(__name__)


def run(*, once: bool, interval_s: float, timeout_s: float, port: int | None) -> int:
    """Sends sessions until SIGTERM or Ctrl-C; returns the exit code.

    Args:
        once: Whether one session is enough.
        interval_s: Seconds between the starts of two sessions.
        timeout_s: Seconds that a session has.
        port: Port of `/metrics` on the worker's web address; None: nothing is served.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        PortTakenError: the port cannot be bound.
    """
    settings = kafka_settings()
    log_to_stderr(settings.log_options)
    return asyncio.run(_run(settings, once=once, interval_s=interval_s, timeout_s=timeout_s, port=port))


async def _run(settings: Settings, *, once: bool, interval_s: float, timeout_s: float, port: int | None) -> int:
    watch = _Watch()
    if once:
        return 0 if await watch.look(settings, timeout_s) else FAILED
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows; there Ctrl-C cancels this coroutine.
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = await _serve(watch, settings, port) if port is not None else None
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            pause = asyncio.create_task(asyncio.sleep(interval_s))
            looking = asyncio.create_task(watch.look(settings, timeout_s))
            for work in (looking, pause):
                await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for work in (looking, pause):
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work
    finally:
        stopping.cancel()
        if runner is not None:
            await runner.cleanup()
    return 0


class _Watch:
    """Says how each session went, and remembers the last ones."""

    def __init__(self) -> None:
        self._last: Beat | None = None
        self._last_success: datetime | None = None

    async def look(self, settings: Settings, timeout_s: float) -> bool:
        """Sends a session; returns whether it was decided in time."""
        try:
            found = await beat(settings, timeout_s)
        except CanaryError as why:
            self._last = None
            log.error("the canary failed: %s", why)  # noqa: TRY400  # the message says everything
            return False
        self._last = found
        self._last_success = utc_now()
        sys.stdout.write(f"{found.session_id}: decided after {found.seconds:.2f} s, {found.scores} scores\n")
        sys.stdout.flush()
        return True

    def metrics(self) -> bytes:
        """Returns the metrics in the text format of Prometheus."""
        points = [Point(tool_catalogue.CANARY_SUCCESS, (), int(self._last is not None))]
        if self._last is not None:
            points.append(Point(tool_catalogue.CANARY_DURATION, (), self._last.seconds))
        if self._last_success is not None:
            points.append(Point(tool_catalogue.CANARY_LAST_SUCCESS, (), self._last_success.astimezone(UTC).timestamp()))
        return exposition(points, tool_catalogue.CANARY)


async def _serve(watch: _Watch, settings: Settings, port: int) -> web.AppRunner:
    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=watch.metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics)])
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    taken = bind(settings.web_host, port, named="--port")
    await web.SockSite(runner, taken).start()
    log.info("metrics: http://%s:%d/metrics", *taken.getsockname()[:2])
    return runner

"""Serves the health pages of a worker or an exporter.

`/healthz` reports problems of the process, `/readyz` whether it owns its partitions and does its work, and `/metrics` has
the metrics for Prometheus. No other page exists. The answers contain states, numbers, sentences about what is wrong, and
names of topics and metrics, and no text from records.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import orjson
from aiohttp import web
from mode import Service

from traceweir.streams.base.errors import WorkerError

log = logging.getLogger(__name__)

LIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
Phase = Literal["starting", "joining", "catching up", "ready", "stopping"]
"""The phases of a process with partitions: it connects, joins its consumer group, restores partitions, processes records,
and stops."""


class PortTakenError(WorkerError):
    """The web port cannot be bound; the message contains the reason and the way out."""


def bind(host: str, port: int, *, named: str = "TRACEWEIR_WEB_PORT") -> socket.socket:
    """Binds the port; requests wait until `Health` starts. Port 0 binds any free port.

    Args:
        host: The address to listen on.
        port: The port.
        named: The setting or option from which the port comes.

    Raises:
        PortTakenError: the port cannot be bound.
    """
    try:
        return listening_socket(host, port)
    except OSError as error:
        raise PortTakenError(
            f"the web port {port} on {host} cannot be bound ({error.strerror or error}): set {named} to another port, or to "
            "0 for any free port, which the log then names; several processes on one machine need one port each. "
            "TRACEWEIR_WEB_HOST is the address to listen on"
        ) from error


def listening_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on the port; 0 is any free port.

    Raises:
        OSError: the port is taken, or the host has no address here.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except UnicodeError as error:
        # A part of the host name is too long or empty.
        raise OSError(str(error)) from error
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        # Before listen() another process can bind the same port.
        taken.listen()
    except OSError:
        taken.close()
        raise
    return taken


class Health(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Serves the pages, from before the process joins its consumer group until it has left the group."""

    def __init__(
        self,
        taken: socket.socket,
        problems: Callable[[], Sequence[str]],
        state: Callable[[], Mapping[str, object]],
        metrics: Callable[[], bytes],
        *,
        obstacles: Callable[[], Sequence[str]] = tuple,
        **kwargs: Any,
    ) -> None:
        """Stores the arguments; the service starts later.

        Args:
            taken: The bound socket.
            problems: Returns a sentence for each problem; the process is healthy without problems.
            state: Returns the `Phase` of the process as `phase`, and further details; the process is ready in the phase
                `ready` without problems and obstacles.
            metrics: Returns the metrics in the text format of Prometheus.
            obstacles: Returns a sentence for each thing outside of a healthy process that keeps it from its work.
            kwargs: Arguments of the service.
        """
        super().__init__(**kwargs)
        self._socket = taken
        self._problems = problems
        self._state = state
        self._metrics = metrics
        self._obstacles = obstacles
        application = web.Application()
        application.add_routes(
            [web.get(LIVE, self._live), web.get(READY, self._ready), web.get(METRICS, self._measured)]
        )
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False)

    @property
    def ready(self) -> bool:
        """Whether the process does its work, as `/readyz` says."""
        return self._is_ready(self._state(), [*self._problems(), *self._obstacles()])

    @staticmethod
    def _is_ready(state: Mapping[str, object], problems: Sequence[str]) -> bool:
        return state["phase"] == "ready" and not problems

    async def on_start(self) -> None:
        """Starts answering requests."""
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()
        host, port = self._socket.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        log.info("health: http://%s:%d%s and %s; metrics: %s", address, port, LIVE, READY, METRICS)

    async def on_stop(self) -> None:
        """Stops answering requests."""
        await self._runner.cleanup()

    async def _live(self, request: web.Request) -> web.Response:
        problems = self._problems()
        return _answer({"healthy": not problems, "problems": problems}, good=not problems)

    async def _ready(self, request: web.Request) -> web.Response:
        problems = [*self._problems(), *self._obstacles()]
        state = self._state()
        ready = self._is_ready(state, problems)
        named = {"problems": problems} if problems else {}
        return _answer({"ready": ready, **state, **named}, good=ready)

    async def _measured(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"}
        return web.Response(body=self._metrics(), headers=headers)


def _answer(document: Mapping[str, object], *, good: bool) -> web.Response:
    return web.Response(
        body=orjson.dumps(document),
        status=200 if good else 503,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )

"""Runs the endpoint: opens its ports, receives until a signal, and ends when all accepted requests are acknowledged."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

from aiohttp import web

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.process_setup import event_loop
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.endpoint.errors import EndpointError
from traceweir.streams.tools.endpoint.http_server import HEALTH, http_runner
from traceweir.streams.tools.endpoint.kafka_writer import KafkaWriter
from traceweir.streams.tools.endpoint.receiver import Receiver, Writer
from traceweir.streams.worker.runtime.activity import in_key_values
from traceweir.streams.worker.runtime.health import listening_socket

log = logging.getLogger(__name__)

LOG_EVERY_S = 60.0
STOP_WITHIN_S = 10.0
"""Seconds that the requests in work have to end after a stop signal; then their connections are closed."""


class ListenAddresses(NamedTuple):
    """Where the endpoint listens."""

    http: str
    """The base URL of OTLP/HTTP, for `OTEL_EXPORTER_OTLP_ENDPOINT`."""
    grpc: str | None
    """The URL of OTLP/gRPC; None if the endpoint serves no gRPC."""


def run_endpoint(settings: Settings, ready: Callable[[ListenAddresses], None]) -> None:
    """Receives until SIGTERM or Ctrl-C.

    Args:
        settings: Where Kafka is, where to listen, and every limit.
        ready: Called with the addresses when the endpoint receives.

    Raises:
        InvalidSettingsError: the endpoint would listen on a network without a token, or gRPC is on without grpcio.
        KafkaUnreachableError: no broker answers.
        EndpointError: a topic is missing or wrong, or a port is taken.
    """
    log_to_stderr(settings.log_options)
    check_settings(settings)
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(_run(settings, ready))


def check_settings(settings: Settings) -> None:
    """Checks what the endpoint alone requires of the settings.

    Raises:
        InvalidSettingsError: the endpoint would listen on a network without a token, or gRPC is on without grpcio.
    """
    if settings.otlp_token is None and not is_loopback(settings.otlp_host):
        raise InvalidSettingsError(
            f"TRACEWEIR_OTLP_HOST={settings.otlp_host} is not a loopback address, so that others can send spans: set "
            "TRACEWEIR_OTLP_TOKEN to a secret that clients send, or listen on 127.0.0.1"
        )
    if settings.otlp_grpc == "on" and not _has_grpc():
        raise InvalidSettingsError(
            "TRACEWEIR_OTLP_GRPC=on needs grpcio: run `pip install '.[grpc]'`, or set TRACEWEIR_OTLP_GRPC=auto"
        )


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches the host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "example.org")]
    [True, True, True, False, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def serving(settings: Settings, writer: Writer) -> AsyncIterator[tuple[Receiver, ListenAddresses]]:
    """Receives within the block; at its end, waits for the requests in work.

    Raises:
        EndpointError: a port is taken.
    """
    receiver = Receiver(settings, writer)
    taken = _bound(settings)
    runner = http_runner(receiver, settings.otlp_read_timeout_s, STOP_WITHIN_S)
    grpc: Any = None
    try:
        grpc, grpc_port = await _grpc(settings, receiver)
        await runner.setup()
        await web.SockSite(runner, taken).start()
        http_port = taken.getsockname()[1]
        host = f"[{settings.otlp_host}]" if ":" in settings.otlp_host else settings.otlp_host
        yield (
            receiver,
            ListenAddresses(f"http://{host}:{http_port}", f"http://{host}:{grpc_port}" if grpc is not None else None),
        )
    finally:
        receiver.stopping = True
        stopping = [runner.cleanup()] if grpc is None else [runner.cleanup(), grpc.stop(STOP_WITHIN_S)]
        await asyncio.gather(*stopping)
        taken.close()


async def _run(settings: Settings, ready: Callable[[ListenAddresses], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with KafkaWriter(settings) as writer:
        # Until here a signal ends the process at once, because nothing was received yet.
        for number in (signal.SIGINT, signal.SIGTERM):
            # Windows; there Ctrl-C cancels this coroutine.
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, stop.set)
        async with serving(settings, writer) as (receiver, addresses):
            _log_start(settings, addresses)
            ready(addresses)
            logging_counts = asyncio.create_task(_log_counts(receiver))
            try:
                await stop.wait()
            finally:
                logging_counts.cancel()
            log.info("received a stop signal; %d requests are in work", receiver.in_flight.requests)
        log.info(
            "the endpoint has ended in order: %s", in_key_values(dict(sorted(receiver.counts.items()))) or "no request"
        )


async def _grpc(settings: Settings, receiver: Receiver) -> tuple[Any, int]:
    """Returns the gRPC server and its port; None and 0 if gRPC is off or grpcio is not installed."""
    if settings.otlp_grpc == "off" or not _has_grpc():
        return None, 0
    from traceweir.streams.tools.endpoint.grpc_server import grpc_server

    server = grpc_server(receiver, settings.otlp_read_timeout_s)
    host = f"[{settings.otlp_host}]" if ":" in settings.otlp_host else settings.otlp_host
    try:
        port = server.add_insecure_port(f"{host}:{settings.otlp_grpc_port}")
    except RuntimeError as error:
        raise EndpointError(
            f"the OTLP/gRPC port {settings.otlp_grpc_port} on {settings.otlp_host} cannot be bound: set "
            "TRACEWEIR_OTLP_GRPC_PORT to another port, or TRACEWEIR_OTLP_GRPC=off"
        ) from error
    await server.start()
    return server, port


def _has_grpc() -> bool:
    return find_spec("grpc") is not None


def _bound(settings: Settings) -> socket.socket:
    try:
        return listening_socket(settings.otlp_host, settings.otlp_http_port)
    except OSError as error:
        raise EndpointError(
            f"the OTLP/HTTP port {settings.otlp_http_port} on {settings.otlp_host} cannot be bound "
            f"({error.strerror or error}): set TRACEWEIR_OTLP_HTTP_PORT to another port, or to 0 for any free port; "
            "perhaps an OpenTelemetry Collector runs on this machine. TRACEWEIR_OTLP_HOST is the address to listen on"
        ) from error


def _log_start(settings: Settings, addresses: ListenAddresses) -> None:
    topics = settings.topics
    log.info("OTLP/HTTP on %s, health on %s%s", addresses.http, addresses.http, HEALTH)
    if addresses.grpc is not None:
        log.info("OTLP/gRPC on %s", addresses.grpc)
    elif settings.otlp_grpc == "auto":
        log.info("no OTLP/gRPC, because grpcio is not installed: pip install '.[grpc]'")
    log.info("spans go to topic %s, log records to %s", topics.otlp_spans, topics.otlp_logs)
    if not is_loopback(settings.otlp_host):
        log.warning("connections are not encrypted: let a proxy with TLS stand before %s", settings.otlp_host)


async def _log_counts(receiver: Receiver) -> None:
    former = dict(receiver.counts)
    while True:
        await asyncio.sleep(LOG_EVERY_S)
        new = {name: count - former.get(name, 0) for name, count in sorted(receiver.counts.items())}
        former = dict(receiver.counts)
        if changed := {name: count for name, count in new.items() if count}:
            log.info("in the last %.0f s: %s", LOG_EVERY_S, in_key_values(changed))

"""Runs an exporter: reads and sends until a signal, logs once a minute what was sent, and serves its health pages."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from time import monotonic
from typing import Protocol, TypeAlias

from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.process_setup import event_loop
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.forwarding import Target
from traceweir.streams.tools.export.pages import ReportedTarget, exporter_health
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.relay import Relay
from traceweir.streams.tools.export.source import ExportSource, Found, Sent
from traceweir.streams.worker.runtime.activity import in_key_values
from traceweir.streams.worker.runtime.health import bind

log = logging.getLogger(__name__)

LOG_EVERY_S = 60.0
STOP_WITHIN_S = 10.0
"""Seconds that the scores in work have after a stop signal; then they are left, and sent after the next start."""


class ReportingTarget(Target[Sent], ReportedTarget, Protocol[Sent]):
    """A target that counts what it has done, and says whether it takes anything."""


OpenTarget: TypeAlias = Callable[[ProblemLog], AbstractAsyncContextManager[ReportingTarget[Found]]]
"""Opens a target; its block closes the connections."""


def default_group(prefix: str, name: str) -> str:
    """Returns the consumer group of an exporter.

    >>> default_group("traceweir.", "otlp")
    'traceweir.export-otlp'
    """
    return f"{prefix}export-{name}"


def run_export(
    settings: Settings,
    source: ExportSource[Found],
    open_target: OpenTarget[Found],
    *,
    group: str,
    only_new: bool,
    port: int | None = None,
) -> None:
    """Exports until SIGTERM or Ctrl-C.

    Args:
        settings: Where Kafka is.
        source: What is read.
        open_target: Opens the target.
        group: The consumer group, which keeps the offsets.
        only_new: Whether a group without offsets begins with the next score, in place of the oldest one.
        port: Port of `/healthz`, `/readyz` and `/metrics` on the worker's web address; None: nothing is served.

    Raises:
        PortTakenError: the port cannot be bound.
        KafkaUnreachableError: no broker answers.
        ExportError: the topic is missing or wrong, or the target does not fit.
    """
    log_to_stderr(settings.log_options)
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(_run(settings, source, open_target, group, only_new=only_new, port=port))


async def _run(
    settings: Settings,
    source: ExportSource[Found],
    open_target: OpenTarget[Found],
    group: str,
    *,
    only_new: bool,
    port: int | None,
) -> None:
    taken = bind(settings.web_host, port, named="--port") if port is not None else None
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows; there Ctrl-C cancels this coroutine.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    problems = ProblemLog(source.topic, monotonic, source.what)
    async with open_target(problems) as target:
        relay = Relay(settings, source, target, group=group, problems=problems, only_new=only_new)
        pages: AbstractAsyncContextManager[object] = (
            nullcontext() if taken is None else exporter_health(taken, group, relay, target, stop)
        )
        log.info("reading %s in the consumer group %s", source.topic, group)

        def counts() -> dict[str, int]:
            return dict(sorted((relay.counts + target.counts).items()))

        logging_counts = asyncio.create_task(_log_counts(relay, counts))
        try:
            async with pages:
                await relay.run(stop, STOP_WITHIN_S)
        finally:
            logging_counts.cancel()
            log.info("since the start: %s", in_key_values(counts()) or f"no {source.what}")


async def _log_counts(relay: Relay[Found], counts: Callable[[], dict[str, int]]) -> None:
    former: dict[str, int] = {}
    while True:
        await asyncio.sleep(LOG_EVERY_S)
        now = counts()
        if changed := {name: count - former.get(name, 0) for name, count in now.items() if count != former.get(name)}:
            log.info("in the last %.0f s: %s; waiting now: %d", LOG_EVERY_S, in_key_values(changed), relay.waiting)
        former = now

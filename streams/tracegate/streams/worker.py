"""Runs a worker: checks first what it needs, then hands the process to Faust."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

from tracegate.scorers.plan import Plan
from tracegate.streams.admin import KafkaUnreachable, check_topics, create_topics, reach
from tracegate.streams.embedded import is_embedded
from tracegate.streams.embedders import load_embedder
from tracegate.streams.settings import Settings
from tracegate.streams.topics import StageName

log = logging.getLogger(__name__)

LOST_AFTER_S = 60.0
"""How long no broker may answer before the worker ends. Its clients would try again for ever, and look alive meanwhile."""
EXIT_LOST = 1
STOP_WITHIN_S = 10.0
"""How long an orderly end may take. In the middle of a rebalance with a member that has frozen Faust's own may hang for minutes."""
EXIT_HARD = 70
_ASK_EVERY_S = 5.0
_REPEATED_EVERY_S = 30.0


class NotReadyError(RuntimeError):
    """What the worker needs is not there; the message lists it, and what mends it."""


def run_worker(settings: Settings, plan: Plan, stages: Sequence[StageName]) -> int:
    """Run until a signal comes, or something fails. Returns the exit code: 0 after SIGTERM or Ctrl-C.

    On an embedded broker missing topics are made: it is always new, and has no say in how they are.

    Raises:
        KafkaUnreachable: no broker answers.
        NotReadyError: a topic is missing or wrong.
        EmbedderUnavailable: the embedder that the settings name cannot be loaded.
    """
    _log_to_stderr()
    embedded = is_embedded(reach(settings))
    problems = create_topics(settings, stages).wrong if embedded else check_topics(settings, stages)
    if problems:
        raise NotReadyError("\n".join(problems))
    embedder = load_embedder(settings.embedder)
    if embedded and settings.delivery == "exactly_once":
        raise NotReadyError(
            "delivery is exactly_once, but the embedded broker has no transactions; "
            "use Apache Kafka, or set TRACEGATE_DELIVERY=auto"
        )
    transactions = settings.delivery == "exactly_once" or (settings.delivery == "auto" and not embedded)
    _use_uvloop()  # before anything is made that belongs to an event loop
    from tracegate.streams.app import create_app

    app, _ = create_app(settings, plan, embedder, stages, transactions=transactions)
    log.info(
        "worker %s: stages %s, %s, embedder %s",
        app.conf.id,
        ", ".join(stages),
        "exactly once" if transactions else "at least once" + (" (the embedded broker has no transactions)" * embedded),
        embedder.id if embedder else "none: novelty is 0.5",
    )

    async def watch() -> None:
        log.error("%s", await _lost(settings))
        # Nothing more can be committed, and an orderly end would talk to the lost broker. This is as safe as to be killed.
        os._exit(EXIT_LOST)

    app.task(watch)
    spare_the_collector()
    return _run(app)


def spare_the_collector() -> None:
    """Leave what was imported out of garbage collection, and collect seldom: it stops all lanes, and there is next to nothing for it.

    What the stages make has no cycles and is freed as it falls out of use. With Python's own thresholds collecting took a twentieth of
    the time, and made the slowest hundredth of all sessions wait a fifth longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


async def _lost(settings: Settings) -> KafkaUnreachable:
    """Wait until no broker has answered for a minute."""
    answered = monotonic()
    while True:
        await asyncio.sleep(_ASK_EVERY_S)
        try:
            await asyncio.to_thread(reach, settings, _ASK_EVERY_S)
        except KafkaUnreachable:
            if monotonic() - answered > LOST_AFTER_S:
                return KafkaUnreachable(
                    f"no Kafka broker has answered at {settings.kafka_bootstrap_servers} for {LOST_AFTER_S:g} s; "
                    "see that it runs, and start the worker again: it goes on where its last checkpoint was"
                )
        else:
            answered = monotonic()


def _run(app: Any) -> int:
    import faust

    class Worker(faust.Worker):  # type: ignore[misc]  # Faust is untyped
        def _setup_logging(self) -> None:
            """Left out: Faust would write every line twice and set every logger to DEBUG, for its spinner."""

        def _schedule_shutdown(self, received: Any) -> None:
            hard_exit = threading.Timer(STOP_WITHIN_S, _exit_hard)
            hard_exit.daemon = True
            hard_exit.start()
            super()._schedule_shutdown(received)

    worker = Worker(app, loglevel="WARN", quiet=True, override_logging=False, redirect_stdouts=False)
    worker.spinner = None  # it hides and shows the cursor, also where stdout is a file
    try:
        worker.execute_from_commandline()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def _exit_hard() -> None:
    log.error("did not stop within %g s and ends hard, which is as safe as a kill", STOP_WITHIN_S)
    os._exit(EXIT_HARD)


def _use_uvloop() -> None:
    try:
        import uvloop  # noqa: F401
    except ImportError:  # there is none for Windows
        return
    import mode.loop

    mode.loop.use("uvloop")


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Sparing())
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[handler]
    )
    logging.getLogger("tracegate").setLevel(logging.INFO)


class _Sparing(logging.Filter):
    """Lets a client's complaint pass once in a while, not a hundred times a second, and no service's start and stop."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING and record.getMessage().startswith("[^"):
            return False
        if record.name.startswith("tracegate"):
            return True
        what = record.name, str(record.msg)
        if record.created - self._last.get(what, 0.0) < _REPEATED_EVERY_S:
            return False
        self._last[what] = record.created
        return True

"""Runs a worker: checks first what it needs, then hands the process to Faust."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

from tracegate.scorers.plan import Plan
from tracegate.streams.admin import KafkaUnreachable, check_topics, create_topics, reach
from tracegate.streams.embedded import is_embedded
from tracegate.streams.process import log_to_stderr, spare_the_collector
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
    log_to_stderr()
    embedded = is_embedded(reach(settings))
    problems = create_topics(settings, stages).wrong if embedded else check_topics(settings, stages)
    if problems:
        raise NotReadyError("\n".join(problems))
    if embedded and settings.delivery == "exactly_once":
        raise NotReadyError(
            "delivery is exactly_once, but the embedded broker has no transactions; "
            "use Apache Kafka, or set TRACEGATE_DELIVERY=auto"
        )
    transactions = settings.delivery == "exactly_once" or (settings.delivery == "auto" and not embedded)
    _use_uvloop()  # before anything is made that belongs to an event loop
    from tracegate.streams.app import create_app

    app, _, embedder_id = create_app(settings, plan, stages, transactions=transactions)
    log.info(
        "worker %s: stages %s, %s%s",
        app.conf.id,
        ", ".join(stages),
        "exactly once" if transactions else "at least once" + (" (the embedded broker has no transactions)" * embedded),
        f", embedder {embedder_id or 'none: novelty is 0.5'}" if "score" in stages else "",
    )

    async def watch() -> None:
        log.error("%s", await _lost(settings))
        # Nothing more can be committed, and an orderly end would talk to the lost broker. This is as safe as to be killed.
        os._exit(EXIT_LOST)

    app.task(watch)
    spare_the_collector()
    return _run(app)


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

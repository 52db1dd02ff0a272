"""Runs the Faust app of a worker until a signal or a failure. `run` checks its preconditions before."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.process_setup import tune_gc
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName
from traceweir.streams.pipeline.application import Application
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.worker.kafka.consumer_group import members
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.silence import ASK_EVERY_S
from traceweir.streams.worker.kafka.static_member import StaticMember
from traceweir.streams.worker.kafka.topic_admin import reach
from traceweir.streams.worker.runtime.activity import Activity, in_key_values
from traceweir.streams.worker.runtime.checkpoint import Checkpoints
from traceweir.streams.worker.runtime.health import Health
from traceweir.streams.worker.runtime.state_directory import MEMBER
from traceweir.streams.worker.runtime.watchdog import Watch
from traceweir.streams.worker.telemetry.worker_metrics import WorkerMetrics

if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans
    from traceweir.streams.worker.app import WorkerApp

# One name for all that the worker says of itself.
log = logging.getLogger("traceweir.streams.worker")

STOP_WITHIN_S = 10.0
"""Limit of an orderly stop, in seconds.

During a rebalance with a frozen member, Faust's own stop can hang for minutes.
"""
EXIT_HARD = 70


def run_app(
    settings: Settings,
    plan: Plan,
    stages: Sequence[StageName],
    port: socket.socket,
    spans: SessionSpans | None,
    *,
    transactions: bool,
    embedded: bool,
    launched: LaunchedProcess | None,
    application: Application | None = None,
    beside: Callable[[WorkerApp, Activity], Sequence[Any]] = lambda built, activity: (),
) -> int:
    """Runs until a signal or a failure; returns the exit code, which is 0 after SIGTERM or Ctrl-C.

    Args:
        settings: Where Kafka is, and every limit.
        plan: The metrics, and the requirements of the gate.
        stages: The stages that this process runs.
        port: The bound web port.
        spans: Writes what the stages do as spans; None: traces are off.
        transactions: Whether checkpoints are transactions.
        embedded: Whether the broker is the embedded one, for the log.
        launched: A Python process for the scorers that was launched before; None launches one if a stage needs it.
        application: The application of the worker; None: the live one of these stages.
        beside: Returns further services, which run as long as the worker.

    Raises:
        EmbedderUnavailableError: the embedder that the settings name cannot be loaded.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
        InstanceTakenError: another process has the place of this static member in the group.
    """
    # Before any object that belongs to an event loop is created.
    _use_uvloop()
    from traceweir.streams.worker.app import create_app

    application = application or Application.live(settings, stages)
    member = None if embedded else _static_member(settings, application.id)
    metrics = WorkerMetrics(application.topics.results)
    built = create_app(
        settings,
        plan,
        stages,
        spans=spans,
        timed=metrics.times.timed,
        transactions=transactions,
        launched=launched,
        application=application,
        member=member,
    )
    app, checkpoints, clock, embedder_id, scoring, configs, challengers = built
    log.info(
        "worker %s: stages %s, %s%s",
        app.conf.id,
        ", ".join(stages),
        "exactly once" if transactions else "at least once" + (" (the embedded broker has no transactions)" * embedded),
        f", embedder {embedder_id or 'none: novelty is 0.5'}" if "score" in stages else "",
    )

    async def answers() -> bool:
        try:
            await asyncio.to_thread(reach, settings, ASK_EVERY_S)
        except KafkaUnreachableError:
            return False
        return True

    watch = Watch(built.duties, checkpoints.fail, answers, settings.kafka_bootstrap_servers, settings.stuck_after_s)

    def problems() -> list[str]:
        return [*watch.problems, *checkpoints.problems]

    def config_problems() -> list[str]:
        return configs.problems if configs is not None else []

    def challenger_problems() -> list[str]:
        return challengers.problems if challengers is not None else []

    def state() -> dict[str, object]:
        # Present only if there are any, so that the document stays as it was where nobody pushes configs.
        named = {"config_problems": config_problems(), "challenger_problems": challenger_problems()}
        return checkpoints.state() | {name: found for name, found in named.items() if found}

    services = metrics.services(
        checkpoints, scoring, problems, config_problems, challenger_problems, lambda: clock.ahead_s
    )
    health = Health(port, problems, state, metrics.exposition)
    activity = Activity(list(checkpoints.inputs), checkpoints.ready_partitions, checkpoints.unread.lag)
    checkpoints.rounds.committed = (*checkpoints.rounds.committed, activity.committed, metrics.work.committed)
    tune_gc()
    code = _run(app, checkpoints, health, watch, activity, *services, *beside(built, activity))
    if code == 0 and not checkpoints.problems:
        _log_orderly_end(activity, checkpoints.rounds.not_committed)
    return code


def _static_member(settings: Settings, application: str) -> StaticMember | None:
    if settings.group_instance_id is None:
        return None
    note = settings.state_dir / application / MEMBER
    member = StaticMember(settings.group_instance_id, note, lambda: members(settings, application) or [])
    member.require_place(settings.session_timeout_s)
    return member


def _log_orderly_end(activity: Activity, not_committed: Sequence[int]) -> None:
    did = in_key_values(dict(sorted(activity.totals.items()))) or "no record"
    if not_committed:
        log.warning(
            "the worker has ended in order; committed since its start: %s. The last checkpoint of partitions %s was not sent: "
            "their last records are read again",
            did,
            ", ".join(map(str, not_committed)),
        )
        return
    log.info("the worker has ended in order; everything that it processed since its start is committed: %s", did)


def _run(app: Any, checkpoints: Checkpoints, *services: Any) -> int:
    import faust

    class Worker(faust.Worker):  # type: ignore[misc]  # Faust is untyped
        def _setup_logging(self) -> None:
            """Does nothing: Faust would write every line twice and set every logger to DEBUG, for its spinner."""

        async def start(self) -> None:
            try:
                await super().start()
            except Exception as error:
                # A part of the worker did not start.
                checkpoints.report_end(error)
                raise

        def _schedule_shutdown(self, received: Any) -> None:
            if self._signal_stop_time:
                log.info(
                    "received another stop signal; the worker stops within %g s of the first signal", STOP_WITHIN_S
                )
                return
            log.info("received %s; the worker takes its last checkpoints and leaves its group", received.name)
            hard_exit = threading.Timer(STOP_WITHIN_S, _exit_hard)
            hard_exit.daemon = True
            hard_exit.start()
            super()._schedule_shutdown(received)

        async def _sentinel_task(self) -> None:
            """Waits for tasks that were cancelled last; mode waits one second, in which no partition is read."""
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others, timeout=1.0)

    worker = Worker(app, *services, loglevel="WARN", quiet=True, override_logging=False, redirect_stdouts=False)
    # The spinner writes cursor control codes, also where stdout is a file.
    worker.spinner = None
    try:
        worker.execute_from_commandline()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def _exit_hard() -> None:
    log.error("did not stop within %g s and exits at once, which is as safe as a kill", STOP_WITHIN_S)
    os._exit(EXIT_HARD)


def _use_uvloop() -> None:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        # uvloop does not exist for Windows.
        return
    import mode.loop

    mode.loop.use("uvloop")

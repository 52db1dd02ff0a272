"""Runs the dashboard: opens the store and the port, feeds the one and serves the other until a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import uvicorn

from traceweir.schemas.judge_config import Budget
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.access import Tokens
from traceweir.streams.board.dashboard.anchor_look import anchor_look
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.challengers import PushedChallengers
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.eval_folder import EvalFolder
from traceweir.streams.board.dashboard.feed import Feed
from traceweir.streams.board.dashboard.health import HealthWatch
from traceweir.streams.board.dashboard.label_topic import LabelTopic
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.paced_state import PacedState
from traceweir.streams.board.dashboard.retention import Retention
from traceweir.streams.board.dashboard.saved_views import SavedViews
from traceweir.streams.board.dashboard.token_settings import tokens_of
from traceweir.streams.board.dashboard.trust_metrics import trust_look
from traceweir.streams.board.dashboard.watched_streams import streams_look
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.opening import SCHEMES, Store, open_store
from traceweir.streams.board.store.tables import TableName
from traceweir.streams.lab.evals.configs import read_config_file
from traceweir.streams.tools.endpoint.server import is_loopback
from traceweir.streams.worker.runtime.health import listening_socket

log = logging.getLogger(__name__)

STOP_WITHIN_S = 5.0
"""Seconds that requests in work have to end after a stop signal; then their connections are closed."""


def run_dashboard(settings: Settings, ready: Callable[[str], None]) -> None:
    """Feeds the store and serves it until SIGTERM or Ctrl-C.

    Args:
        settings: Where Kafka and the store are, and where to listen.
        ready: Called with the address when the dashboard answers.

    Raises:
        InvalidSettingsError: the dashboard would listen on a network without a token, or its tokens cannot be used.
        ConfigError: the config of TRACEWEIR_DASHBOARD_CONFIG cannot be used.
        InputError: this config cannot be read.
        StoreError: the store cannot be used, or the port is taken.
    """
    log_to_stderr(settings.log_options)
    tokens = tokens_of(settings)
    if not tokens and not is_loopback(settings.dashboard_host):
        raise InvalidSettingsError(
            f"TRACEWEIR_DASHBOARD_HOST={settings.dashboard_host} is not a loopback address, so that others can read sessions "
            "and scores: set TRACEWEIR_DASHBOARD_TOKEN to a secret that clients send, or listen on 127.0.0.1"
        )
    budget = read_config_file(settings.dashboard_config).judge.budget if settings.dashboard_config is not None else None
    # DuckDB creates its log and its temporary files anew, and they contain agents' texts too.
    os.umask(0o077)
    bound = _bound(settings)
    try:
        store = open_store(settings.store, f"process {os.getpid()} on {socket.gethostname()}", utc_now())
        try:
            asyncio.run(_serve(settings, store, bound, ready, budget, tokens))
        finally:
            store.close()
    finally:
        bound.close()


class _Server(uvicorn.Server):
    """Leaves signals to the dashboard; uvicorn would raise each again after its end, and the exit code would be 130."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signal."""
        yield


async def _serve(
    settings: Settings,
    store: Store,
    bound: socket.socket,
    ready: Callable[[str], None],
    budget: Budget | None,
    tokens: Tokens,
) -> None:
    retention = Retention(
        texts=timedelta(days=settings.store_sessions_days),
        results=timedelta(days=settings.store_results_days),
        figures=timedelta(days=settings.store_figures_days),
    )
    keep: dict[TableName, timedelta] = {
        "results": retention.results,
        "sessions": retention.texts,
        "dead_letters": retention.texts,
        "replays": retention.texts,
        "alerts": retention.results,
    }
    live = Live()

    def note_change() -> None:
        # It needs the feed, and the feed needs it.
        paced.changed()

    feed = Feed(
        settings,
        store,
        keep=keep,
        keep_figures=retention.figures,
        now=utc_now,
        changed=note_change,
        is_watched=lambda: live.is_watched,
    )
    health = HealthWatch.of(settings, store, utc_now, feed.present, feed.last_answer, live.changed)
    paced = PacedState(feed.present, live.changed, health.parts)
    challengers = PushedChallengers(settings)
    trust = trust_look(store, utc_now)
    watched = streams_look(settings, lambda: live.is_watched, utc_now)
    anchors = anchor_look(settings, lambda: live.is_watched, utc_now)
    label_topic = LabelTopic(settings)
    options = DashboardOptions(
        paced.state,
        settings.dashboard_content,
        utc_now,
        trace_url=settings.dashboard_trace_url,
        evalset=settings.dashboard_evalset,
        evals=EvalFolder(settings.dashboard_evals) if settings.dashboard_evals is not None else None,
        views=_saved_views(settings),
        budget=budget,
        challengers=challengers,
        configs=lambda: challengers.configs,
        retention=retention,
        write_labels=label_topic.write,
        health=health.parts,
        trust_points=lambda: trust.known,
        watched_streams=lambda: watched.known,
        anchors=lambda: anchors.known,
    )
    server = _Server(
        uvicorn.Config(
            create_application(
                Dashboard(store, options, live),
                tokens,
                lambda: (paced.key(), watched.known.read_at, watched.known.problem),
            ),
            log_config=None,
            # Its lines would have ids of sessions.
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=int(STOP_WITHIN_S),
        )
    )
    serving = asyncio.create_task(server.serve([bound]))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        live.end()
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows; there Ctrl-C cancels this coroutine.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    feeding = asyncio.create_task(feed.run())
    looking = {
        asyncio.create_task(each)
        for each in (challengers.run(), health.run(), trust.run(), watched.run(), anchors.run())
    }
    host = f"[{settings.dashboard_host}]" if ":" in settings.dashboard_host else settings.dashboard_host
    ready(f"http://{host}:{bound.getsockname()[1]}")
    try:
        # The server ends with SIGTERM or Ctrl-C, and the feed with an error that needs a person.
        await asyncio.wait({serving, feeding}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        feeding.cancel()
        for each in looking:
            each.cancel()
        stop()
        with suppress(asyncio.CancelledError):
            await feeding
        await asyncio.wait(looking)
        await serving


def _saved_views(settings: Settings) -> SavedViews | None:
    """Returns the views in the file of the settings, or else beside the store; None if the store is no file."""
    if settings.dashboard_views is not None:
        return SavedViews(settings.dashboard_views)
    if settings.store.partition(":")[0] in SCHEMES:
        return None
    return SavedViews(Path(settings.store).with_name("views.json"))


def _bound(settings: Settings) -> socket.socket:
    try:
        return listening_socket(settings.dashboard_host, settings.dashboard_port)
    except OSError as error:
        raise StoreError(
            f"port {settings.dashboard_port} on {settings.dashboard_host} cannot be bound ({error.strerror or error}): set "
            "TRACEWEIR_DASHBOARD_PORT to another port, or to 0 for any free port"
        ) from error

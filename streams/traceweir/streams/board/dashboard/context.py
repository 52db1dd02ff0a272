"""What the functions that answer requests work with: the store, the options, and news of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from traceweir.schemas.judge_config import Budget
from traceweir.schemas.labels import Label
from traceweir.streams.board.dashboard.anchor_look import AnchorStanding
from traceweir.streams.board.dashboard.challengers import ChallengersInEffect, NoChallengers
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.eval_folder import EvalFolder
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.given_labels import GivenLabels
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.retention import Retention
from traceweir.streams.board.dashboard.saved_views import SavedViews
from traceweir.streams.board.dashboard.watched_streams import NOT_READ, KnownStreams
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.config_topic import TopicState
from traceweir.streams.worker.telemetry.measured import Point

_SCOPE = "traceweir.dashboard"
"""The key of a scope under which the dashboard is that answers the request."""


@dataclass(frozen=True)
class DashboardOptions:
    """What the pages and the API need beside the store."""

    state: Callable[[], FeedState]
    """Returns the state of the feed."""
    content: Content
    """How much of the agents' text an answer contains."""
    now: Callable[[], datetime]
    """The clock, at which a span without an end ends."""
    trace_url: str | None = None
    """Address of a trace in another tool, with `{trace_id}` and `{span_id}`; None: there is no link."""
    evalset: Path | None = None
    """Eval set to which sessions can be added; None: pages show the command."""
    evals: EvalFolder | None = None
    """The eval sets and the runs of `traceweir eval`; None: no folder is named."""
    views: SavedViews | None = None
    """The saved views; None: no view can be saved."""
    budget: Budget | None = None
    """The budget of the workers' judges; None: it is not known."""
    challengers: ChallengersInEffect = field(default_factory=NoChallengers)
    """The challengers that are in effect, and the shadows."""
    configs: Callable[[], TopicState] = TopicState
    """Returns what the topic `configs` said a moment ago."""
    retention: Retention | None = None
    """For how long the store keeps rows; None: without an end."""
    write_labels: Callable[[Sequence[Label]], None] | None = None
    """Writes labels to their topic; None: there is no Kafka."""
    health: Callable[[], Sequence[Finding]] = tuple
    """Returns what is known of the brokers, the workers and losses, part by part."""
    trust_points: Callable[[], Sequence[Point]] = tuple
    """Returns the metrics of trust, as they were last computed."""
    watched_streams: Callable[[], KnownStreams] = lambda: NOT_READ
    """Returns the streams that are watched for alerts, as they were last read."""
    anchors: Callable[[], AnchorStanding] = AnchorStanding
    """Returns what anchors say about judges, as it was last read."""


@dataclass(frozen=True)
class Dashboard:
    """The dashboard that answers a request."""

    store: Readable
    """Answers the questions."""
    options: DashboardOptions
    live: Live
    """Tells when the store has changed."""
    given: GivenLabels = field(default_factory=GivenLabels)
    """The labels that were written, which the store may not have yet."""

    def serving(self, application: ASGIApp) -> ASGIApp:
        """Returns an application that lets this one answer with this dashboard; other dashboards can use the same routes."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            await application({**scope, _SCOPE: self}, receive, send)

        return serve


def dashboard_of(request: Request) -> Dashboard:
    """Returns the dashboard that answers a request."""
    found: Dashboard = request.scope[_SCOPE]
    return found


async def _dashboard(request: Request) -> Dashboard:
    # A coroutine, because FastAPI would call a function in another thread.
    return dashboard_of(request)


Serving = Annotated[Dashboard, Depends(_dashboard)]
"""The dashboard that answers the request."""

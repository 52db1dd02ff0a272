"""Runs a worker: checks first what it needs, then hands the process to Faust."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import faust

from tracegate.scorers.plan import Plan
from tracegate.streams.admin import check_topics, reach
from tracegate.streams.app import create_app
from tracegate.streams.embedded import is_embedded
from tracegate.streams.embedders import load_embedder
from tracegate.streams.settings import Settings
from tracegate.streams.topics import StageName

log = logging.getLogger(__name__)


class NotReadyError(RuntimeError):
    """What the worker needs is not there; the message lists it, and what mends it."""


def run_worker(settings: Settings, plan: Plan, stages: Sequence[StageName]) -> int:
    """Run until a signal comes, or something fails. Returns the exit code.

    Raises:
        KafkaUnreachable: no broker answers.
        NotReadyError: a topic is missing or wrong.
        EmbedderUnavailable: the embedder that the settings name cannot be loaded.
    """
    cluster = reach(settings)
    problems = check_topics(settings, stages)
    if problems:
        raise NotReadyError("\n".join(problems))
    embedder = load_embedder(settings.embedder)
    transactions = settings.delivery == "exactly_once" or (settings.delivery == "auto" and not is_embedded(cluster))
    _quiet()
    app, _ = create_app(settings, plan, embedder, stages, transactions=transactions)
    log.info(
        "worker %s: stages %s, %s, embedder %s",
        app.conf.id,
        ", ".join(stages),
        "exactly once" if transactions else "at least once (the embedded broker has no transactions)",
        embedder.id if embedder else "none: novelty is 0.5",
    )
    return _run(app)


def _run(app: Any) -> int:
    worker = faust.Worker(app, loglevel="WARN", quiet=True, override_logging=False, redirect_stdouts=False)
    try:
        worker.execute_from_commandline()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def _quiet() -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("tracegate").setLevel(logging.INFO)

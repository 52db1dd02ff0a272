"""Runs one process of a shadow, until the whole range is scored, or until a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.log import end_of_requests
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.lab.shadow.stage import fitted, selection
from traceweir.streams.pipeline.application import Application
from traceweir.streams.pipeline.gate.presidio import check_presidio
from traceweir.streams.scoring.embedders.loading import check_embedder
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.judges.litellm_setup import check_judge
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.topic_admin import reach
from traceweir.streams.worker.runtime.transactions import usable_transactions

if TYPE_CHECKING:
    from traceweir.streams.lab.shadow.watch import Outcome, Progress

STAGES: tuple[StageName, ...] = ("score", "gate")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process of a shadow has ended."""

    code: int
    """The exit code of the worker: 0 after an orderly end."""
    outcome: Outcome
    totals: dict[str, int]
    """What this process has committed, under the keys `stage.counter`."""


def application_of(settings: Settings, definition: Definition) -> Application:
    """Returns the application of a shadow: its range, its selection, and the only topics that it writes."""
    names = ShadowNames.of(settings, definition.name)
    sessions = names.topics.sessions
    return Application(
        names.application,
        names.topics,
        first_offsets={(sessions, number): begin for number, begin in definition.begins.items()},
        selects=selection(definition),
        fitted=fitted(definition, names.written, sessions),
        follows_configs=False,
    )


def check_needs(settings: Settings, plan: Plan) -> None:
    """Checks that the packages which a shadow needs are installed, before anything is asked or created.

    Raises:
        EmbedderUnavailableError: the embedder that the settings name needs a package that is not installed.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
    """
    if plan.judged:
        check_judge()
    check_presidio(plan.gate.presidio)
    check_embedder(settings.embedder)


def run_shadow(
    settings: Settings, definition: Definition, plan: Plan, progress: Progress, launched: LaunchedProcess | None = None
) -> Ended:
    """Runs the stages score and gate on the range of a shadow.

    The process joins the group of the shadow: several processes share the partitions. It serves its health pages on a
    free port, because a live worker can use the configured one.

    Args:
        settings: Where Kafka is, and every limit.
        definition: The shadow.
        plan: Its plan.
        progress: Receives the progress.
        launched: A Python process for the scorers that was launched before.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the broker lacks the transactions that the settings require.
        ShadowError: the topic of requests to stop cannot be read.
        EmbedderUnavailableError: the embedder that the settings name cannot be loaded.
        PresidioUnavailableError: the gate's Presidio or its model cannot be loaded.
        StateDirectoryError: the state directory is in use, or holds other data.
    """
    # Now, so that a request to stop is heeded that comes before the process has joined its group.
    requests_from = asyncio.run(end_of_requests(settings, definition.name))
    embedded = is_embedded(reach(settings))
    transactions = usable_transactions(settings, embedded=embedded)
    from traceweir.streams.lab.shadow.watch import ShadowWatch
    from traceweir.streams.worker.faust_worker import run_app
    from traceweir.streams.worker.runtime.activity import Activity
    from traceweir.streams.worker.runtime.health import bind
    from traceweir.streams.worker.runtime.state_directory import claimed

    watch = ShadowWatch(settings, definition, progress, requests_from)
    seen: list[Activity] = []

    def beside(built: object, activity: Activity) -> Sequence[Any]:
        seen.append(activity)
        return [watch]

    application = application_of(settings, definition)
    folder = ShadowNames.of(settings, definition.name).folder
    port = bind(settings.web_host, 0)
    with claimed(folder, application.id, settings.partitions):
        code = run_app(
            settings,
            plan,
            STAGES,
            port,
            None,
            transactions=transactions,
            embedded=embedded,
            launched=launched,
            application=application,
            beside=beside,
        )
    return Ended(code, watch.outcome, dict(seen[0].totals) if seen else {})

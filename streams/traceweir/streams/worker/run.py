"""Runs a worker: checks its preconditions, then lets Faust control the process (`faust_worker`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NamedTuple, TypeVar

from traceweir.scorers.evaluation.criteria_text import criteria_text
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.unmeasured import needing_references, never_measured, without_references
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.process_setup import paused_gc
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName, application_id
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.judges.keys import without_key
from traceweir.streams.scoring.judges.litellm_setup import check_judge
from traceweir.streams.scoring.judges.unused_names import unused_names
from traceweir.streams.scoring.tracing.switch import spans_of_environment
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.topic_admin import check_topics, create_topics, reach
from traceweir.streams.worker.runtime.transactions import usable_transactions

# As that of `faust_worker`.
log = logging.getLogger("traceweir.streams.worker")


T = TypeVar("T")


class _Cluster(NamedTuple):
    embedded: bool
    transactions: bool
    """Whether checkpoints are transactions."""


def run_worker(
    settings: Settings,
    plan: Plan,
    stages: Sequence[StageName],
    *,
    config: Path | None = None,
    launched: LaunchedProcess | None = None,
) -> int:
    """Runs until a signal or a failure; returns the exit code, which is 0 after SIGTERM or Ctrl-C.

    On an embedded broker this creates missing topics, because an embedded broker is always new and ignores how topics
    are configured.

    Args:
        settings: Where Kafka is, and every limit.
        plan: The metrics, and the requirements of the gate.
        stages: The stages that this process runs.
        config: The file of the plan, for the log.
        launched: A Python process for the scorers that was launched before, so that this start takes less time; the
            caller closes it. None launches one if a stage needs it.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: a topic is missing or wrong, or the broker lacks the transactions that the settings require.
        EmbedderUnavailableError: the embedder that the settings name cannot be loaded.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
        PortTakenError: the web port is not available.
        StateDirectoryError: the state directory is in use, or holds other data.
        InvalidSettingsError: a variable of OpenTelemetry asks for what the worker does not have.
    """
    log_to_stderr(settings.log_options)
    if plan.judged and "score" in stages:
        check_judge()
    with paused_gc():
        from traceweir.streams.worker.telemetry.worker_metrics import check_metrics
    check_metrics(os.environ)
    spans = spans_of_environment()
    # Faust takes half a second to import, and the brokers some tenths to answer.
    checked = _in_thread(partial(_checked, settings, stages))
    with paused_gc():
        from traceweir.streams.worker.faust_worker import run_app
        from traceweir.streams.worker.runtime.health import bind
        from traceweir.streams.worker.runtime.state_directory import claimed, state_folder
    cluster = checked.result()
    if "score" in stages:
        log_criteria(plan, config, settings, os.environ)
    port = bind(settings.web_host, settings.web_port)
    folder = state_folder(settings, stages)
    application = application_id(settings.topic_prefix, stages)
    with claimed(folder, application, settings.partitions):
        try:
            return run_app(
                settings,
                plan,
                stages,
                port,
                spans,
                transactions=cluster.transactions,
                embedded=cluster.embedded,
                launched=launched,
            )
        finally:
            if spans is not None:
                spans.receiver.close()


def log_criteria(plan: Plan, config: Path | None, settings: Settings, environment: Mapping[str, str]) -> None:
    """Logs which criteria are on, and warns of those that no session will have a value of, also of a challenger."""
    log.info("%s", criteria_text(plan, None if config is None else str(config)))
    _log_unmeasured(plan, settings, environment, "")
    if plan.challenger is not None:
        _log_unmeasured(plan.challenger.plan, settings, environment, "challenger: ")


def _log_unmeasured(plan: Plan, settings: Settings, environment: Mapping[str, str], whose: str) -> None:
    has_key = settings.judge_api_key is not None
    lacking = without_key(plan, environment, has_key=has_key, api_base=settings.judge_api_base)
    for sentence in [*never_measured(plan, lacking), *unused_names(plan, settings.judge_api_base)]:
        log.warning("%s%s", whose, sentence)
    if (nothing := without_references(plan)) is not None:
        log.warning("%s%s", whose, nothing)
    for sentence in needing_references(plan):
        log.info("%s%s", whose, sentence)


def _in_thread(work: Callable[[], T]) -> Future[T]:
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            result.set_exception(error)

    # A signal ends the process without waiting for it.
    Thread(target=run, name="preconditions", daemon=True).start()
    return result


def _checked(settings: Settings, stages: Sequence[StageName]) -> _Cluster:
    embedded = is_embedded(reach(settings))
    # At the same time as the topics: brokers in another region need seconds for either.
    transactions = _in_thread(partial(usable_transactions, settings, embedded=embedded))
    problems = create_topics(settings, stages).wrong if embedded else check_topics(settings, stages)
    if problems:
        raise NotReadyError("\n".join(problems))
    return _Cluster(embedded, transactions.result())

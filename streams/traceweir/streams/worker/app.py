"""Builds the worker: a Faust app with one table, and the stages that the worker runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import faust
from yarl import URL

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.stages.work_pool import WorkCancelledError, WorkPool
from traceweir.streams.base.topics import StageName
from traceweir.streams.pipeline.application import Application
from traceweir.streams.pipeline.gate.presidio import load_entities
from traceweir.streams.pipeline.score.followed_configs import FollowedConfigs
from traceweir.streams.pipeline.score.resources import ScoringResources
from traceweir.streams.pipeline.topology import Resources, Topology, topics_of
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.selectors import Configs
from traceweir.streams.scoring.configs.usable import usable_plan
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.processes import ScoringProcesses, number_of_processes
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.judges.budget import Share
from traceweir.streams.scoring.sessions.result import Scoring
from traceweir.streams.worker.kafka.client_options import aiokafka_options, consumer_options, producer_options
from traceweir.streams.worker.kafka.config_digests import ConfigDigests
from traceweir.streams.worker.kafka.followed_topics import FollowedTopics
from traceweir.streams.worker.kafka.log_facts import LogFacts, log_facts
from traceweir.streams.worker.kafka.record_reader import RecordReader
from traceweir.streams.worker.kafka.row_format_assignor import RowFormatAssignor
from traceweir.streams.worker.kafka.static_member import StaticMember
from traceweir.streams.worker.kafka.worker_challengers import WorkerChallengers
from traceweir.streams.worker.runtime.checkpoint import Checkpoints
from traceweir.streams.worker.runtime.cluster_clock import ClusterClock
from traceweir.streams.worker.runtime.dead_letter_log import DeadLetterLog
from traceweir.streams.worker.runtime.delivery import CheckpointDelivery, Offsets
from traceweir.streams.worker.runtime.ownership import ClaimedPartitions, Ownership, SharedPartitions
from traceweir.streams.worker.runtime.row_formats import ROW_FORMATS, RowFormats
from traceweir.streams.worker.runtime.single_record import write_record
from traceweir.streams.worker.runtime.topic_watch import LOOK_EVERY_S, TopicWatch
from traceweir.streams.worker.runtime.watchdog import Duty

if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans

TABLE = "state"
MAX_REQUESTED_SESSIONS = 512
"""Limit of sessions that the worker has requested from the scoring process and that have no result yet.

The limit counts requests that the scoring process has not started, so that the scoring process never waits for the
worker.
"""


class WorkerApp(NamedTuple):
    """The parts of a worker."""

    app: Any
    checkpoints: Checkpoints
    clock: ClusterClock
    """Compares the clock of the worker with the brokers'."""
    embedder_id: str | None
    """Id of the embedder that computes the vectors for novelty; None: there is no embedder, and novelty is 0.5."""
    scoring: ScoringProcesses | None
    """The scoring processes; None if this worker does not score."""
    configs: ConfigLog | None = None
    """What the worker has read of the topic `configs`; None if it does not score."""
    challengers: WorkerChallengers | None = None
    """The challengers of the worker; None if it does not score, or follows no configs."""

    def duties(self) -> Iterable[Duty]:
        """Returns the work that must make progress now."""
        yield from self.checkpoints.duties()
        if self.scoring is not None and self.scoring.started:
            yield Duty("the watch over the scoring processes", True, self.scoring.looks)


def create_app(
    settings: Settings,
    plan: Plan,
    stages: Sequence[StageName],
    *,
    transactions: bool,
    spans: SessionSpans | None = None,
    timed: Callable[[CheckpointDelivery], CheckpointDelivery] = lambda delivery: delivery,
    launched: LaunchedProcess | None = None,
    application: Application | None = None,
    member: StaticMember | None = None,
    formats: RowFormats = ROW_FORMATS,
) -> WorkerApp:
    """Returns a worker's Faust app and its checkpoints. Starts the scoring process; connects to nothing yet.

    Args:
        settings: Where Kafka is, and every limit.
        plan: The metrics, and the requirements of the gate.
        stages: The stages that this process runs.
        transactions: Whether the broker supports transactions; the embedded broker does not.
        spans: Writes what the stages do as spans; None: traces are off.
        timed: Wraps the delivery of a partition, to measure it.
        launched: A Python process for the scorers that was launched before; None launches one if a stage needs it.
        application: The application of the worker; None: the live one of these stages.
        member: The static member that the worker is; None: a dynamic one.
        formats: The formats of rows of this version.

    Raises:
        EmbedderUnavailableError: the embedder that the settings name cannot be loaded.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
        ScoringProcessDiedError: the scoring process does not start.
    """
    entities = load_entities(plan.gate.presidio) if "gate" in stages else None
    scoring = None
    application = application or Application.live(settings, stages)
    folder = settings.state_dir / application.id
    if "score" in stages:
        setup = replace(Setup.of(settings, plan), settles=True)
        count = number_of_processes(settings.scoring_processes, setup)
        scoring = ScoringProcesses(
            setup, folder / "scoring-attempts.json", count, launched=[launched] if launched else []
        )
    options = aiokafka_options(settings)
    app = _faust_app(settings, application.id, folder, options, formats.newest)
    app.assignor.topics = application.topics.added_to()
    # RocksDB gets 16 MiB of block cache and 8 MiB of memtable per partition; Faust's default is 2 GiB.
    table = app.Table(
        TABLE,
        key_type=bytes,
        value_type=bytes,
        partitions=settings.partitions,
        options={"block_cache_size": 16 << 20, "write_buffer_size": 8 << 20},
    )

    def fail(error: BaseException) -> None:
        if not (isinstance(error, WorkCancelledError) and app.should_stop):
            app.loop.create_task(checkpoints.fail(error))

    reading = consumer_options(settings)
    writing = producer_options(settings)
    records = RecordReader(reading, beacon=app.beacon)
    configs = None
    challengers = None
    if scoring is not None:
        for supervisor in scoring.supervisors:
            app.add_dependency(supervisor)
        scoring.on_failure(fail)
        pool = WorkPool(MAX_REQUESTED_SESSIONS, fail)
        configs = ConfigLog(partial(usable_plan, file=plan)) if application.follows_configs else None
        references_topic, configs_topic = topics_of("score", application.topics).followed
        names = references_topic, configs_topic
        reader = FollowedTopics(scoring, configs, names, settings.partitions, reading, beacon=app.beacon)
        reader.failed = fail
        app.add_dependency(reader)
        if configs is not None:
            challengers = WorkerChallengers.of(
                settings, setup, folder, scoring, configs, pool, records.read, app.beacon
            )
            # After the reader, so that the topic is read to its end when this starts.
            digests = ConfigDigests(
                configs, plan, application.topics.configs, partial(write_record, writing), beacon=app.beacon
            )
            for service in (*challengers.services, digests):
                app.add_dependency(service)
    app.add_dependency(records)
    resources = None
    if scoring is not None:
        resources = ScoringResources(
            scoring,
            pool,
            scoring.record_spend,
            records.read,
            None if configs is None else _followed(scoring, configs),
            application.selects,
            challengers and challengers.challengers,
        )
    limits = RecordLimits(application.topics.dead_letters)
    held = Resources(utc_now, resources, entities=entities, spans=spans, limits=limits)
    topology = Topology.of(settings, plan, held, application.topics)

    async def commit(offsets: Offsets) -> None:
        await app.consumer._thread.commit(dict(offsets))

    clock = ClusterClock()

    def ownership() -> Ownership:
        if transactions:
            return ClaimedPartitions(
                writing,
                app.conf.id,
                table.changelog_topic_name,
                timed,
                clock,
                timeout_s=settings.transaction_timeout_s,
                limits=limits,
            )
        return SharedPartitions(writing, commit, timed, limits)

    specs = [application.fitted(spec) for spec in topology.specs(stages)]
    inputs = [topic for spec in specs for topic in spec.inputs]

    followed = topics_of("score", application.topics).followed if scoring is not None else ()

    written = {topic for spec in specs for topic in spec.outputs}
    if "collect" in stages:
        # Collect moves a turn only as long as its former session fits this topic.
        written.add(application.topics.sessions)

    def writes(topic: str) -> bool:
        return topic in written or topic.startswith(application.topics.shadow_results_prefix)

    async def facts() -> LogFacts:
        asked = partial(log_facts, settings, table.changelog_topic_name, inputs, writes=writes)
        found = await asyncio.to_thread(asked)
        checkpoints.retention_s = found.retention_s
        # Only here: what the stages have pending fits the limits of the takeover.
        limits.learn(found.batch_bytes)
        return found

    async def ids() -> Mapping[str, str]:
        found = await asyncio.to_thread(log_facts, settings, table.changelog_topic_name, inputs, followed)
        checkpoints.retention_s = found.retention_s
        return found.ids

    checkpoints = Checkpoints(
        app,
        table,
        specs,
        ownership,
        facts,
        reading,
        partitions=settings.partitions,
        interval_s=settings.checkpoint_interval_s,
        limit=20_000,
        transaction_timeout_s=settings.transaction_timeout_s,
        formats=formats,
    )
    watch = TopicWatch(
        ids,
        lambda: [lane.offsets.log_ids for lane in checkpoints.lanes.values()],
        [table.changelog_topic_name, *followed],
        checkpoints.lose,
        checkpoints.fail,
        beacon=app.beacon,
    )
    app.add_dependency(watch)
    checkpoints.place = member
    checkpoints.first_offsets = application.first_offsets
    checkpoints.rounds.committed = (DeadLetterLog(topology.topics.dead_letters).committed,)
    if scoring is not None:
        checkpoints.steps_before = lambda: reader.count
        checkpoints.takes_over = lambda partitions: scoring.set_budget_share(Share(partitions, settings.partitions))
    embedder_id = None if scoring is None else scoring.embedder_id
    return WorkerApp(app, checkpoints, clock, embedder_id, scoring, configs, challengers)


def _followed(scoring: ScoringProcesses, log: ConfigLog) -> FollowedConfigs:
    async def check(name: str) -> None:
        await asyncio.to_thread(log.check, name)

    return FollowedConfigs(log, _scoring_by(scoring, log), check)


def _scoring_by(scoring: ScoringProcesses, log: ConfigLog) -> Callable[[Configs], Scoring]:
    # Called for each session, and the configs rarely change.
    @lru_cache(maxsize=8)
    def by(configs: Configs) -> Scoring:
        return scoring.under(configs, log.documents(configs), judged=log.ask_judges(configs))

    return by


def _faust_app(settings: Settings, name: str, folder: Path, options: Mapping[str, Any], row_format: int) -> Any:
    credentials = _credentials(settings, options)
    return faust.App(
        name,
        broker=[URL(f"kafka://{server}") for server in options["bootstrap_servers"]],
        broker_credentials=credentials,
        store="rocksdb://",
        datadir=str(folder),
        topic_partitions=settings.partitions,
        topic_replication_factor=settings.replication_factor,
        # `traceweir topics create` creates the topics, with the right cleanup policy.
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        PartitionAssignor=partial(RowFormatAssignor, newest=row_format),
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=settings.group_instance_id,
        producer_max_batch_size=900_000,
        broker_session_timeout=settings.session_timeout_s,
        # Faust refuses a request timeout below the session timeout; 90 s is its default.
        broker_request_timeout=max(90.0, settings.session_timeout_s),
        broker_heartbeat_interval=settings.heartbeat_interval_s,
        # So soon are partitions noticed that were added to an input.
        consumer_metadata_max_age_ms=int(LOOK_EVERY_S * 1000),
        # Nothing is fetched while partitions are taken over. The watchdogs see what makes no progress.
        broker_max_poll_interval=86_400.0,
        worker_redirect_stdouts=False,
        web_enabled=False,
    )


def _credentials(settings: Settings, options: Mapping[str, Any]) -> Any:
    context = options.get("ssl_context")
    if not settings.kafka_security_protocol.startswith("SASL_"):
        return faust.SSLCredentials(context) if context is not None else None
    if settings.kafka_uses_tokens:
        return faust.OAuthCredentials(oauth_cb=options["sasl_oauth_token_provider"], ssl_context=context)
    password = settings.kafka_sasl_password.get_secret_value() if settings.kafka_sasl_password else None
    return faust.SASLCredentials(
        username=settings.kafka_sasl_username,
        password=password,
        mechanism=settings.kafka_sasl_mechanism,
        ssl_context=context,
    )

"""Checks the cluster: brokers, topics, and the right to run transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from time import monotonic

from confluent_kafka import KafkaException, Producer

from traceweir.schemas.figures import counted
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName, application_id
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.kafka.client_options import confluent_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_admin import check_transactions, inspect_topics, reach
from traceweir.streams.worker.kafka.topic_problems import expected_topics

START_WITHIN_S = 15.0
"""Seconds that the brokers have to start a transactional producer."""


def check_cluster(settings: Settings, stages: Collection[StageName]) -> Iterator[Finding]:
    """Yields what is found about the cluster.

    Raises:
        KafkaUnreachableError: no broker answers; nothing else about the cluster can be checked.
    """
    began = monotonic()
    cluster_id = reach(settings)
    embedded = is_embedded(cluster_id)
    what = "the embedded broker" if embedded else f"cluster {cluster_id or 'without an id'}"
    answered_ms = (monotonic() - began) * 1e3
    yield Finding("broker", "ok", f"{what} at {settings.kafka_bootstrap_servers} answered after {answered_ms:.0f} ms")
    yield from _topics(settings, stages)
    if embedded:
        yield Finding("transactions", "not checked", "the embedded broker has none: workers deliver at least once")
    else:
        yield from _transactions(settings, stages)


def _topics(settings: Settings, stages: Collection[StageName]) -> Iterator[Finding]:
    inspection = inspect_topics(settings, stages)
    yield from (Finding("topics", "failure", problem) for problem in inspection.problems)
    yield from (Finding("topics", "warning", warning) for warning in inspection.warnings)
    yield from (Finding("topics", "ok", remark) for remark in inspection.remarks)
    if not inspection.problems:
        expected = expected_topics(settings, stages)
        yield Finding(
            "topics", "ok", f"{counted(len(expected), 'topic')} with {counted(settings.partitions, 'partition')}"
        )


def _transactions(settings: Settings, stages: Collection[StageName]) -> Iterator[Finding]:
    """Starts a transactional producer, which writes nothing: only brokers know whether this user may do so."""
    try:
        problems = check_transactions(settings)
    except KafkaUnreachableError as error:
        problems = [str(error)]
    yield from (Finding("transactions", "failure", problem) for problem in problems)
    if problems:
        return
    name = f"{application_id(settings.topic_prefix, stages)}-doctor"
    producer = Producer({**confluent_options(settings), "transactional.id": name, "log_level": 0})
    try:
        producer.init_transactions(START_WITHIN_S)
    except KafkaException as error:
        yield Finding(
            "transactions", "failure",
            f"no transaction can be started as {name!r}: {error.args[0].str()}; a worker's user needs Write and Describe "
            "on the transactional ids of its application (docs/access-control.md)",
        )  # fmt: skip
    else:
        yield Finding("transactions", "ok", f"a transactional producer starts as {name!r}")

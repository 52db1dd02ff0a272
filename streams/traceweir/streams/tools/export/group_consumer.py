"""Makes the consumer of an exporter or of the alerts, which stays in its group for as long as a target is away."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

_NEVER_MS = 2**31 - 1
"""The longest time between two reads: a target can be away for days."""


def group_consumer(
    settings: Settings, group: str, *, assignor: AbstractPartitionAssignor | None = None
) -> AIOKafkaConsumer:
    """Returns a consumer that is not started, reads committed records, and neither commits nor sets positions by itself.

    Args:
        settings: Where Kafka is.
        group: The consumer group.
        assignor: Assigns the partitions; None: in turn.
    """
    consumer = AIOKafkaConsumer(
        **consumer_options(settings),
        group_id=group,
        enable_auto_commit=False,
        isolation_level="read_committed",
        # A reset by itself would not say how many records were removed.
        auto_offset_reset="none",
        session_timeout_ms=int(settings.session_timeout_s * 1000),
        heartbeat_interval_ms=int(settings.heartbeat_interval_s * 1000),
        max_poll_interval_ms=_NEVER_MS,
        partition_assignment_strategy=(assignor or RoundRobinPartitionAssignor,),
    )
    install_fast_close(consumer)
    require_broker_list(consumer)
    create_no_topics(consumer)
    return consumer

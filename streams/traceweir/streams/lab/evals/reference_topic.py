"""Writes references to the compacted topic `references`, which score workers follow."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer

from traceweir.schemas.figures import counted
from traceweir.schemas.reference import Reference
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options
from traceweir.streams.worker.kafka.topic_admin import check_partitions

_FLUSH_S = 30.0


def write_references(settings: Settings, records: Mapping[str, Reference | None]) -> None:
    """Writes references by their ids, and waits until Kafka has acknowledged them.

    Args:
        settings: Where Kafka is.
        records: The references by reference id; None removes a reference.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept a record.
    """
    topic = settings.topics.references
    if problems := check_partitions(settings, [topic]):
        raise NotReadyError("\n".join(problems))
    refused: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(error.str())

    producer = Producer({**confluent_options(settings), **IDEMPOTENT, "log_level": 0})
    for reference_id, reference in records.items():
        key = reference_id.encode()
        value = None if reference is None else reference.model_dump_json(by_alias=True, exclude_none=True).encode()
        partition = partition_of(key, settings.partitions)
        while True:
            try:
                producer.produce(topic, value, key, partition=partition, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(_FLUSH_S)
    if left or refused:
        why = refused[0] if refused else f"no answer within {_FLUSH_S:g} s"
        raise NotReadyError(
            f"Kafka did not accept {counted(left + len(refused), 'reference')} on {topic!r}, the first with: {why}. Push "
            "the file again: a reference that is written twice counts once"
        )

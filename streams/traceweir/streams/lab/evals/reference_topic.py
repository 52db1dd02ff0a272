"""Writes references to the compacted topic `references`, which score workers follow."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.schemas.reference import Reference
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.keyed_writer import KeyedWriter


def write_references(settings: Settings, records: Mapping[str, Reference | None]) -> None:
    """Writes references by their ids, and waits until Kafka has acknowledged them.

    Args:
        settings: Where Kafka is.
        records: The references by reference id; None removes a reference.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept a record.
    """
    writer = KeyedWriter(settings, settings.topics.references, noun="reference", again="Push the file again")
    writer.write(
        {
            reference_id.encode(): None
            if reference is None
            else reference.model_dump_json(by_alias=True, exclude_none=True).encode()
            for reference_id, reference in records.items()
        }
    )

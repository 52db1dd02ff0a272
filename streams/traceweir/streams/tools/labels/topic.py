"""Writes labels to the compacted topic `labels`, and reads what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from traceweir.schemas.labels import Label
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.labels.record import label_of_record
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.keyed_writer import KeyedWriter


class LabelsError(Exception):
    """The labels cannot be read; the message states the reason and the way out."""


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """What the topic has."""

    by_id: dict[str, Label] = field(default_factory=dict)
    """The last label of each id."""
    unreadable: list[str] = field(default_factory=list)
    """The place of each record that is no label, as `partition/offset`, and why."""


def labels_writer(settings: Settings, again: str, answer_within_s: float = 30.0) -> KeyedWriter:
    """Returns what writes to the topic; `again` says what a user does if Kafka did not accept a label."""
    return KeyedWriter(settings, settings.topics.labels, noun="label", again=again, answer_within_s=answer_within_s)


def write_labels(writer: KeyedWriter, labels: Iterable[Label]) -> None:
    """Writes labels, and waits until Kafka has acknowledged them. Of several with one id the last one is written.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept a label.
    """
    writer.write({label.label_id.encode(): label.wire() for label in labels})


async def read_labels(settings: Settings, now: Callable[[], datetime] = utc_now) -> KnownLabels:
    """Returns the labels of the topic, the last one of each id; one of a time that has not come is unreadable.

    Raises:
        KafkaUnreachableError: no broker answers.
        LabelsError: the topic is missing or wrong, or cannot be read.
    """
    found = KnownLabels()
    async with BoundedReader(settings, settings.topics.labels, LabelsError) as reader:
        async for record in reader.records():
            key = (record.key or b"").decode(errors="replace")
            if record.value is None:
                found.by_id.pop(key, None)
                continue
            try:
                label = label_of_record(record.key, record.value, record.timestamp, now())
            except ValueError as error:
                found.unreadable.append(f"{record.partition}/{record.offset} ({error})")
            else:
                found.by_id[label.label_id] = label
    return found

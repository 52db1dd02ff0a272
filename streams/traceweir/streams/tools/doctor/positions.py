"""Compares the stored offsets of workers with the logs of their inputs, and says what a worker will do that takes over."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import input_name, place_of
from traceweir.streams.base.topics import StageName, application_id, changelog
from traceweir.streams.pipeline.topology import topics_of
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.stored_offsets import OffsetsUnreadableError, Stored, stored_offsets
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.cluster import Cluster
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.log_facts import WITHIN_S, log_ids
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.runtime.positions import OtherClusterError, start_of

CHECK = "positions"


@dataclass
class TakeoverCheck:
    """What stored offsets and logs say about the next takeover, a sentence each."""

    refused: list[str] = field(default_factory=list)
    """Why workers end when they take over."""
    lost: list[str] = field(default_factory=list)
    """Records that no worker can read any more."""
    changed: list[str] = field(default_factory=list)
    """Inputs that are not read on at their stored offsets."""
    unchecked: list[str] = field(default_factory=list)
    """What could not be compared."""
    compared: int = 0
    """Number of offsets that were compared."""


async def compare_positions(settings: Settings, stages: Collection[StageName]) -> TakeoverCheck:
    """Compares what workers with these stages have stored with the logs of their inputs. This writes nothing.

    An input that is missing, or has too few partitions, is left out: the check of the topics names it.

    Raises:
        KafkaUnreachableError: no broker answers.
    """
    log = changelog(application_id(settings.topic_prefix, stages))
    cluster = await asyncio.to_thread(Cluster, settings, WITHIN_S)
    counts = await asyncio.to_thread(cluster.partition_counts)
    if counts.get(log) != settings.partitions:
        return TakeoverCheck(unchecked=[f"the changelog {log} is missing or has another number of partitions"])
    inputs = {topic for stage in stages for topic in topics_of(stage, settings.topics).inputs}
    usable = sorted(topic for topic in inputs if counts.get(topic, 0) >= settings.partitions)
    ids, _ = await asyncio.to_thread(log_ids, cluster, [log, *usable])
    try:
        stored = await stored_offsets(settings, log, ids)
        known = {place_of(name, number) for number, each in stored.items() for name in each.offsets}
        places = {
            TopicPartition(*place) for place in known if place.topic in usable and place.partition < counts[place.topic]
        }
        begins, ends = await _bounds(settings, places)
    except (OffsetsUnreadableError, KafkaError, OSError) as error:
        return TakeoverCheck(unchecked=[f"the stored offsets cannot be compared with the topics: {error}"])
    return compare(stored, begins, ends, ids)


def compare(
    stored: Mapping[int, Stored],
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    ids: Mapping[str, str],
) -> TakeoverCheck:
    """Compares stored offsets with logs, by the rules of a takeover.

    Args:
        stored: The stored offsets by partition number, of all numbers.
        begins: The first offset that can be read. Places that are missing are not compared.
        ends: The offset after the last record, committed or not.
        ids: By topic, the id of the log.
    """
    found = TakeoverCheck()
    partitions = defaultdict[tuple[str, str], list[int]](list)
    missed: dict[str, int] = defaultdict(int)
    for place in sorted(begins):
        topic, number = place
        each = stored[number % len(stored)]
        name = input_name(topic, number, len(stored))
        offset = each.offsets[name]
        former = each.ids.get(name)
        now = ids.get(topic)
        try:
            start = start_of(f"{topic}/{number}", offset, former, begins[place], ends[place], now)
        except OtherClusterError as error:
            found.refused.append(str(error))
            return found
        found.compared += 1
        if start.missed:
            missed[topic] += start.missed
            partitions["missed", topic].append(number)
        elif start.is_new_log:
            others = None not in (former, now) and former != now
            what = "created" if others else "begin" if None in (former, now) else "end"
            partitions[what, topic].append(number)
    for (what, topic), numbers in partitions.items():
        if what == "missed":
            found.lost.append(_lost(topic, missed[topic], numbers))
        else:
            found.changed.append(f"{topic} {_CHANGES[what]} ({_named(numbers)})")
    if cut := [number for number, each in stored.items() if not each.is_whole]:
        found.unchecked.append(
            f"the changelog was not read far enough within the time limit, so that an input which was created again can be "
            f"overlooked ({_named(cut)})"
        )
    return found


def check_positions(found: TakeoverCheck) -> Iterator[Finding]:
    """Yields what a comparison has found."""
    yield from (Finding(CHECK, "failure", text) for text in (*found.refused, *found.lost))
    yield from (Finding(CHECK, "warning", text) for text in found.changed)
    yield from (Finding(CHECK, "not checked", text) for text in found.unchecked)
    if found.refused or found.lost or found.changed or found.unchecked:
        return
    if found.compared:
        yield Finding(CHECK, "ok", "the stored offsets fit the logs of the inputs")
    else:
        yield Finding(CHECK, "not checked", "no worker has stored offsets yet")


_CHANGES = {
    "created": "was deleted and created again since a worker last read it: a worker reads it from its beginning",
    "begin": "ends before the stored offset, so it was created again: a worker reads it from its beginning",
    "end": "ends before the stored offset, because the log has lost records that were read: a worker reads on from its end",
}


def _lost(topic: str, missed: int, numbers: list[int]) -> str:
    return (
        f"{missed} offsets of {topic} were removed before a worker read them ({_named(numbers)}): workers were down, or "
        "behind, for longer than the topic's retention.ms or retention.bytes allow; a worker reads on after them"
    )


def _named(numbers: list[int]) -> str:
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


async def _bounds(
    settings: Settings, places: Collection[TopicPartition]
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """Returns the first offset and the end of each place; the end is that of all records, committed or not."""
    if not places:
        return {}, {}
    consumer = AIOKafkaConsumer(**consumer_options(settings), enable_auto_commit=False)
    install_fast_close(consumer)
    create_no_topics(consumer)
    try:
        await consumer.start()
        return await consumer.beginning_offsets(places), await consumer.end_offsets(places)
    finally:
        await consumer.stop()

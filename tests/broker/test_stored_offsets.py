"""The stored offsets are found in a changelog wherever their rows are, and without reading more than necessary."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id, changelog
from traceweir.streams.tools.doctor import stored_offsets as module
from traceweir.streams.tools.doctor.stored_offsets import OffsetsUnreadableError, Stored, stored_offsets
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics
from traceweir.streams.worker.runtime.checkpoint_rows import INPUTS_ROW, OFFSETS

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher")]

LOG = changelog(application_id("traceweir.", STAGES))
NOW, FORMER = {"events": "c/now"}, {"events": "c/former"}
NOTHING = Stored({}, {}, is_whole=True)


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(settings)
    return settings


def put(settings: Settings, *rows: tuple[bytes, object]) -> None:
    """Writes rows to partition 0."""
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    for key, value in rows:
        producer.produce(LOG, value if isinstance(value, bytes) else json.dumps(value), key, 0)
        producer.poll(0)
    assert producer.flush(30) == 0


def others(count: int) -> list[tuple[bytes, object]]:
    return [(b"assemble/c%d" % number, {}) for number in range(count)]


async def found(settings: Settings, ids: Mapping[str, str] = NOW, within_s: float = 60.0) -> Stored:
    partitions = await stored_offsets(settings, LOG, ids, within_s)
    assert [partitions[number] for number in (1, 2, 3)] == [NOTHING] * 3
    return partitions[0]


@pytest.mark.parametrize("between", [0, 30], ids=["at the end", "far from the end"])
async def test_the_latest_rows_count(between: int, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_RECORDS", 5)
    for offset, ids in ((3, FORMER), (7, NOW)):
        put(settings, (OFFSETS, {"events": offset}), (INPUTS_ROW, ids), *others(between))

    assert await found(settings) == Stored({"events": 7}, NOW, is_whole=True)


async def test_a_row_with_former_ids_counts_if_no_later_one_follows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LAST_RECORDS", 5)
    put(settings, (INPUTS_ROW, FORMER), *others(30), (OFFSETS, {"events": 7}))

    assert await found(settings) == Stored({"events": 7}, FORMER, is_whole=True)


async def test_a_changelog_without_ids_has_offsets_of_unknown_logs(settings: Settings) -> None:
    put(settings, *others(3), (OFFSETS, {"events": 7}), *others(3))

    assert await found(settings) == Stored({"events": 7}, {}, is_whole=True)


async def test_a_row_with_the_present_ids_ends_the_reading(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_RECORDS", 5)
    put(settings, (INPUTS_ROW, NOW), *others(3_000), (OFFSETS, {"events": 7}))
    read = []
    records = BoundedReader.records

    async def counted(reader: BoundedReader, begins: Mapping[int, int] | None = None):  # type: ignore[no-untyped-def]
        async for record in records(reader, begins):
            read.append(record.offset)
            yield record

    monkeypatch.setattr(BoundedReader, "records", counted)

    assert await found(settings) == Stored({"events": 7}, NOW, is_whole=True)
    assert read == [2997, 2998, 2999, 3000, 3001, 0]


async def test_what_was_not_read_in_time_is_not_whole(settings: Settings) -> None:
    put(settings, (INPUTS_ROW, NOW), *others(3), (OFFSETS, {"events": 7}))

    assert await found(settings, within_s=0.0) == Stored({}, {}, is_whole=False)


async def test_a_row_that_no_worker_has_written_is_named(settings: Settings) -> None:
    put(settings, (OFFSETS, b"[]"))

    with pytest.raises(
        OffsetsUnreadableError, match=r"the row 'checkpoint/offsets' of traceweir\S+, partition 0, is none"
    ):
        await found(settings)

"""The doctor names records that wait behind an open transaction, and how to end the transaction."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.inputs import HANGING_S, OPEN_S, check_inputs

pytestmark = pytest.mark.kafka


async def findings(settings: Settings, now_ms: int) -> list[Finding]:
    return [found async for found in check_inputs(settings, now_ms, 60, spans=False) if found.check == "inputs"]


async def test_records_behind_an_open_transaction_are_named_with_its_age_and_the_command_that_ends_it(
    settings: Settings,
) -> None:
    topic, dated_ms = settings.topics.invocations, int(time.time() * 1000)
    producer = Producer(
        {
            "bootstrap.servers": settings.kafka_bootstrap_servers,
            "transactional.id": settings.topic_prefix,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(2):
        producer.produce(topic, b"{}", b"session", partition=2, timestamp=dated_ms)
    producer.flush(30)

    young, old, hanging = [
        [found for found in await findings(settings, dated_ms + int(age_s * 1000)) if topic in found.text]
        for age_s in (OPEN_S - 1, OPEN_S, HANGING_S)
    ]
    producer.abort_transaction(30)
    ended = [found for found in await findings(settings, dated_ms + 3_000_000) if topic in found.text]

    assert [found.state for found in (*young, *old, *hanging)] == ["not checked", "warning", "failure"]
    text = old[0].text
    assert text.startswith(f"{topic}, partition 2: no worker reads the offsets 0 to 1, because a transaction is open")
    assert f"whose first record is dated {iso(dated_ms)}" in text
    assert f"abort --topic {topic} --partition 2 --start-offset 0" in text
    assert not [found for found in ended if found.state in ("warning", "failure")]

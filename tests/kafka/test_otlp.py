"""The OTLP endpoint on Apache Kafka: its topics and requests that are larger than a record."""

from __future__ import annotations

from io import BytesIO

import aiohttp
import pytest
from confluent_kafka import Consumer
from tests.support.collect import request, span

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES
from traceweir.streams.intake.otlp.slices import span_slices
from traceweir.streams.tools.endpoint.errors import EndpointError
from traceweir.streams.tools.endpoint.kafka_writer import KafkaWriter
from traceweir.streams.tools.endpoint.server import serving
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

SPANS = 600
HEADERS = {"Content-Type": "application/x-protobuf"}


def settings_of(kafka: str, prefix: str) -> Settings:
    return Settings(
        kafka_bootstrap_servers=kafka,
        topic_prefix=prefix,
        otlp_spans_topic=f"{prefix}otlp_spans",
        otlp_logs_topic=f"{prefix}otlp_logs",
        otlp_http_port=0,
        otlp_grpc="off",
    )


async def test_missing_topics_are_named_with_the_command_that_creates_them(kafka: str, prefix: str) -> None:
    with pytest.raises(
        EndpointError, match=r"otlp_spans' does not exist: run `traceweir topics create --stages collect,"
    ):
        async with KafkaWriter(settings_of(kafka, prefix)):
            pass


async def test_a_request_of_several_records_is_acknowledged_when_all_are_there(kafka: str, prefix: str) -> None:
    settings = settings_of(kafka, prefix)
    create_topics(settings, ALL_STAGES)
    sent = [span(1, number, more={"text": "x" * 4_000}) for number in range(SPANS)]
    async with (
        KafkaWriter(settings) as writer,
        serving(settings, writer) as (_, addresses),
        aiohttp.ClientSession() as client,
    ):
        url = f"{addresses.http}/v1/traces"
        for body in (request(*sent[: SPANS // 2]), request(*sent[SPANS // 2 :])):
            assert len(body) > writer.max_record_bytes
            async with client.post(url, data=BytesIO(body), headers=HEADERS) as answer:
                assert (answer.status, await answer.read()) == (200, b"")
    found: list[str] = []
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": prefix, "auto.offset.reset": "earliest"})
    consumer.subscribe([settings.otlp_spans_topic])
    while len(found) < SPANS:
        record = consumer.poll(30)
        assert record is not None
        assert record.error() is None
        found += [each.span_id for each in span_slices(record.value() or b"").slices]
    consumer.close()
    assert sorted(found) == sorted(each.span_id.hex() for each in sent)

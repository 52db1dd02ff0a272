"""Spans of the OpenTelemetry SDK reach Kafka whole, and the exporter keeps to the SDK's specification."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.fake_transport import FakeTransport, FullTransport, HeldTransport

pytest.importorskip(
    "opentelemetry.sdk.trace",
    reason="needs OpenTelemetry's SDK: run `make test-client`, or pip install './client[otel]'",
)

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from traceweir.client import Recorder
from traceweir.client.delivery import Done, Transport
from traceweir.client.otel import KafkaSpanExporter

SUCCESS, FAILURE = SpanExportResult.SUCCESS, SpanExportResult.FAILURE


def spans(traces: int = 1, each: int = 1, **attributes: Any) -> list[ReadableSpan]:
    """Returns finished spans: for each trace a root, and its children."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "desk"}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("tests")
    for _ in range(traces):
        with tracer.start_as_current_span("root", attributes=attributes):
            for _ in range(each - 1):
                tracer.start_span("child", attributes=attributes).end()
    provider.shutdown()
    return list(memory.get_finished_spans())


def exporter(connect: Callable[[], Transport], **options: Any) -> KafkaSpanExporter:
    return KafkaSpanExporter("", connect=connect, **options)


def requests(transport: FakeTransport) -> list[ExportTraceServiceRequest]:
    return [ExportTraceServiceRequest.FromString(value) for _, _, value in transport.records]


def ids(transport: FakeTransport) -> list[bytes]:
    return [
        span.span_id
        for request in requests(transport)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_a_span_that_cannot_be_encoded_costs_no_other_and_its_content_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport = FakeTransport()
    batch = spans(each=4)
    bad = ReadableSpan(name={"card": "4111"}, context=batch[0].context, resource=batch[0].resource)  # type: ignore[arg-type]
    assert exporter(lambda: transport).export([*batch[:2], bad, *batch[2:]]) is FAILURE
    assert sorted(ids(transport)) == sorted(span.context.span_id.to_bytes(8, "big") for span in batch)
    assert "a span cannot be encoded (TypeError)" in caplog.text
    assert "4111" not in caplog.text


def test_a_record_that_the_client_refuses_costs_no_other_and_its_content_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Refusing(FakeTransport):
        def send(self, topic: str, key: bytes, value: bytes, done: Done) -> None:
            if b"4111" in value:
                raise ValueError(f"cannot send {value!r}")
            super().send(topic, key, value, done)

    transport = Refusing()
    batch = [*spans(), *spans(card="4111"), *spans()]
    assert exporter(lambda: transport).export(batch) is FAILURE
    assert ids(transport) == [span.context.span_id.to_bytes(8, "big") for span in (batch[0], batch[2])]
    assert "the Kafka client refused a record: ValueError" in caplog.text
    assert "4111" not in caplog.text


def test_a_record_has_the_spans_of_one_trace_and_its_id_as_key() -> None:
    transport = FakeTransport()
    batch = spans(traces=3, each=2)
    assert exporter(lambda: transport).export(batch) is SUCCESS
    assert len(transport.records) == 3
    for (topic, key, _), request in zip(transport.records, requests(transport), strict=True):
        (resource,) = request.resource_spans
        assert {span.trace_id for scope in resource.scope_spans for span in scope.spans} == {key}
        assert (topic, resource.resource.attributes[0].value.string_value) == ("otlp_spans", "desk")
    assert len(set(ids(transport))) == 6


def test_a_large_trace_is_split_and_whole() -> None:
    transport = FakeTransport()
    batch = spans(each=40, text="x" * 500)
    assert exporter(lambda: transport, max_record_bytes=3_000).export(batch) is SUCCESS
    assert max(len(value) for _, _, value in transport.records) <= 3_000
    assert sorted(ids(transport)) == sorted(span.context.span_id.to_bytes(8, "big") for span in batch)


def test_a_span_that_is_too_large_fails_and_its_neighbours_are_written(caplog: pytest.LogCaptureFixture) -> None:
    transport = FakeTransport()
    small, large = spans(), spans(text="x" * 5_000)
    assert exporter(lambda: transport, max_record_bytes=3_000).export([*large, *small]) is FAILURE
    assert ids(transport) == [small[0].context.span_id.to_bytes(8, "big")]
    assert (
        "above max_record_bytes 3000; limit its attributes with OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT" in caplog.text
    )


def test_a_full_buffer_is_waited_for() -> None:
    transport = FullTransport(refusals=2)
    assert exporter(lambda: transport).export(spans()) is SUCCESS
    assert len(transport.records) == 1


def test_an_export_without_a_broker_ends_at_its_timeout() -> None:
    held = HeldTransport()
    each = exporter(lambda: held, timeout_s=0.01)
    assert each.export(spans()) is FAILURE
    assert not each.force_flush(1)
    held.release.set()
    assert each.force_flush(5_000)


def test_a_buffer_that_stays_full_fails_at_the_timeout() -> None:
    assert exporter(lambda: FullTransport(refusals=10**9), timeout_s=0.01).export(spans()) is FAILURE


def test_options_that_kafka_refuses_fail_the_export_and_not_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    each = KafkaSpanExporter("127.0.0.1:1", kafka={"no.such.option": 1})
    assert each.export(spans()) is FAILURE
    assert 'No such configuration property: \\"no.such.option\\"' in caplog.text or "no.such.option" in caplog.text


def test_after_shutdown_exports_fail() -> None:
    transport = FakeTransport()
    each = exporter(lambda: transport)
    assert each.export(spans()) is SUCCESS
    each.shutdown()
    each.shutdown()
    assert transport.is_closed
    assert each.export(spans()) is FAILURE
    assert len(transport.records) == 1
    assert each.force_flush()


def test_the_sdk_delivers_all_spans_at_its_end() -> None:
    transport = FakeTransport()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter(lambda: transport)))
    for _ in range(1_000):
        provider.get_tracer("tests").start_span("span").end()
    provider.shutdown()
    assert len(set(ids(transport))) == 1_000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_connects_again() -> None:
    made: list[FakeTransport] = []

    def connect() -> Transport:
        made.append(FakeTransport())
        return made[-1]

    each = exporter(connect)
    assert each.export(spans()) is SUCCESS
    child = os.fork()
    if not child:
        is_right = each.export(spans()) is SUCCESS and len(made) == 2
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert each.export(spans()) is SUCCESS
    assert len(made) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout_s": 0}, "timeout_s must be above 0"),
        ({"max_record_bytes": 10**7}, "max_record_bytes must be from 1000"),
    ],
)
def test_an_argument_outside_of_its_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KafkaSpanExporter("127.0.0.1:9092", **options)


def test_a_recorder_tells_the_span_around_an_invocation() -> None:
    transport = FakeTransport()
    recorder = Recorder("", connect=lambda: transport)
    tracer = TracerProvider().get_tracer("tests")
    with tracer.start_as_current_span("request") as span, recorder.invocation("q"):
        pass
    recorder.close(10)
    context = span.get_span_context()
    assert transport.documents()[0]["trace_context"] == {
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
    }

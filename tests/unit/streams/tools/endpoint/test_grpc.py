"""Tests OTLP/gRPC over a socket, with a writer in place of Kafka."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import MagicMock

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.support.collect import agent_trace, log_request, request, span, trace_id
from tests.support.endpoint import Endpoint, MemoryWriter, endpoint

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.endpoint.grpc_server import grpc_server
from traceweir.streams.tools.endpoint.receiver import Receiver

pytestmark = pytest.mark.slow

GOOD = request(*agent_trace(1))
TRACES, LOGS = (
    f"/opentelemetry.proto.collector.{each}/Export" for each in ("trace.v1.TraceService", "logs.v1.LogsService")
)
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
TOKEN = "correct-horse-battery"


async def export(served: Endpoint, body: bytes, method: str = TRACES, **options: Any) -> bytes:
    assert served.addresses.grpc is not None
    async with grpc.aio.insecure_channel(served.addresses.grpc.removeprefix("http://")) as channel:
        return bytes(await channel.unary_unary(method)(body, timeout=20, **options))


async def refusal(served: Endpoint, body: bytes, method: str = TRACES, **options: Any) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await export(served, body, method, **options)
    return refused.value.code().name, refused.value.details()


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_a_request_is_written_as_it_came(compression: grpc.Compression) -> None:
    async with endpoint(otlp_grpc="on") as served:
        assert await export(served, GOOD, compression=compression) == b""
        assert served.writer.written == {"spans": [GOOD], "logs": []}


async def test_log_records_go_to_their_own_topic_and_an_empty_request_to_none() -> None:
    logs = log_request(LogRecord(time_unix_nano=1, trace_id=trace_id(1), body=AnyValue(string_value="said")))
    async with endpoint(otlp_grpc="on") as served:
        assert ExportLogsServiceResponse.FromString(await export(served, logs, LOGS)) == ExportLogsServiceResponse()
        assert await export(served, b"") == b""
        assert served.writer.written == {"spans": [], "logs": [logs]}


async def test_one_bad_span_among_good_ones_is_a_partial_success() -> None:
    async with endpoint(otlp_grpc="on") as served:
        answer = ExportTraceServiceResponse.FromString(await export(served, request(span(1, 1), Span(name="no ids"))))
        assert answer.partial_success.rejected_spans == 1
        assert "spans[1]" in answer.partial_success.error_message


async def test_a_body_that_cannot_be_used_is_refused_for_good() -> None:
    async with endpoint(otlp_grpc="on") as served:
        code, said = await refusal(served, GOOD[:-5])
        assert code == "INVALID_ARGUMENT"
        assert "cut" in said


async def test_with_kafka_down_a_request_is_refused_for_now() -> None:
    async with endpoint(MemoryWriter(is_down=True), otlp_grpc="on") as served:
        code, said = await refusal(served, GOOD)
        assert code == "UNAVAILABLE"
        assert "no broker answers" in said


async def test_without_the_token_a_request_is_refused() -> None:
    async with endpoint(otlp_grpc="on", otlp_token=TOKEN) as served:
        assert (await refusal(served, GOOD))[0] == "UNAUTHENTICATED"
        assert await export(served, GOOD, metadata=[("authorization", f"Bearer {TOKEN}")]) == b""


async def test_without_the_token_a_message_is_not_received() -> None:
    """A message above the limit would be RESOURCE_EXHAUSTED if it were received first."""
    async with endpoint(otlp_grpc="on", otlp_token=TOKEN, otlp_max_request_bytes=100_000) as served:
        assert (await refusal(served, bytes(150_000)))[0] == "UNAUTHENTICATED"
        assert served.receiver.counts["requests"] == served.receiver.counts["refused.unauthenticated"] == 1


async def test_a_call_above_the_limit_is_refused_for_now_before_its_message_is_received() -> None:
    async with endpoint(otlp_grpc="on", otlp_concurrency=1, otlp_max_request_bytes=100_000) as served:
        admission = served.receiver.begin(None)
        assert (await refusal(served, bytes(150_000)))[0] == "UNAVAILABLE"
        admission.release()
        assert await export(served, GOOD) == b""


async def test_a_slow_client_is_refused_for_now_and_holds_nothing_afterwards() -> None:
    async with endpoint(otlp_grpc="on", otlp_read_timeout_s=0.05) as served:
        assert served.addresses.grpc is not None
        async with grpc.aio.insecure_channel(served.addresses.grpc.removeprefix("http://")) as channel:
            silent = channel.stream_unary(TRACES)(timeout=20)
            assert (await silent.code()).name == "DEADLINE_EXCEEDED"
            assert "did not arrive within 0.05 s (TRACEWEIR_OTLP_READ_TIMEOUT_S)" in await silent.details()
        assert served.receiver.in_flight.requests == 0


async def test_an_unforeseen_error_is_told_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: object, **options: object) -> None:
        raise RuntimeError("secret of the endpoint")

    async with endpoint(otlp_grpc="on") as served:
        monkeypatch.setattr(served.receiver, "receive", fail)
        assert await refusal(served, GOOD) == (
            "INTERNAL",
            "the endpoint failed (RuntimeError); its log has the reason",
        )


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_a_large_request_is_refused_also_when_it_is_compressed(
    compression: grpc.Compression, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However late gRPC cancels the call, the endpoint waits for it.
    monkeypatch.setattr("traceweir.streams.tools.endpoint.grpc_server.CANCELLED_WITHIN_S", 20.0)
    async with endpoint(otlp_grpc="on", otlp_max_request_bytes=100_000) as served:
        code, _ = await refusal(served, bytes(30_000_000), compression=compression)
        assert code == "RESOURCE_EXHAUSTED"
        assert await export(served, GOOD) == b""
        assert (served.receiver.in_flight.requests, served.receiver.in_flight.bytes) == (0, 0)
        assert served.receiver.counts["refused.too_large"] == 1
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_call_without_a_message_has_a_reason_of_its_own() -> None:
    async with endpoint(otlp_grpc="on") as served:
        assert served.addresses.grpc is not None
        async with grpc.aio.insecure_channel(served.addresses.grpc.removeprefix("http://")) as channel:
            call = channel.stream_unary(TRACES)(iter(()), timeout=20)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
        assert dict(served.receiver.counts) == {"requests": 1, "refused.no_message": 1}
    assert (refused.value.code().name, refused.value.details()) == (
        "INVALID_ARGUMENT",
        "the call has ended without a message; send one request in each call",
    )


class OverCall:
    """A call that gRPC has ended before the endpoint answers it."""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def read(self) -> object:
        return grpc.aio.EOF

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise grpc.aio.InternalError("the call is over")


async def test_a_call_that_is_over_ends_as_a_cancelled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    methods: list[Any] = []  # gRPC logs a traceback for every other exception
    monkeypatch.setattr(grpc, "stream_unary_rpc_method_handler", methods.append)
    monkeypatch.setattr(grpc, "method_handlers_generic_handler", lambda service, handlers: None)
    monkeypatch.setattr(grpc.aio, "server", lambda **options: MagicMock())
    receiver = Receiver(Settings(), MemoryWriter())
    grpc_server(receiver, read_timeout_s=1.0)
    with pytest.raises(asyncio.CancelledError):
        await methods[0]([], OverCall())
    assert receiver.in_flight.requests == 0


async def test_metrics_are_no_method_here() -> None:
    async with endpoint(otlp_grpc="on") as served:
        assert (await refusal(served, b"", METRICS))[0] == "UNIMPLEMENTED"

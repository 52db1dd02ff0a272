"""Tests OTLP/HTTP as its specification defines it, over a socket, with a writer in place of Kafka."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.support.collect import agent_trace, log_request, request, span, trace_id
from tests.support.endpoint import Endpoint, MemoryWriter, endpoint

from traceweir.streams.intake.otlp.json_requests import Signal
from traceweir.streams.tools.endpoint.http_server import Status

PROTOBUF, JSON = {"Content-Type": "application/x-protobuf"}, {"Content-Type": "application/json"}
GOOD = request(*agent_trace(1))
GOOD_JSON = orjson.dumps(
    {
        "resourceSpans": [
            {"scopeSpans": [{"spans": [{"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": "plan"}]}]}
        ]
    }
)
LOGS = log_request(LogRecord(time_unix_nano=1, trace_id=trace_id(1), body=AnyValue(string_value="said")))
WITHOUT_IDS = Span(name="no ids")
TOKEN = "correct-horse-battery"


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def type(self) -> str:
        return self.headers["Content-Type"]

    @property
    def message(self) -> str:
        """The message of the google.rpc.Status in the body."""
        if self.type == "application/json":
            return str(orjson.loads(self.body)["message"])
        return str(Status.FromString(self.body).message)


async def post(
    served: Endpoint,
    body: Any,
    headers: Mapping[str, str] = PROTOBUF,
    *,
    path: str = "/v1/traces",
    method: str = "POST",
) -> Answer:
    async with (
        aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=["Content-Type"]) as client,
        client.request(method, served.addresses.http + path, data=body, headers=headers) as answer,
    ):
        return Answer(answer.status, await answer.read(), answer.headers)


class FailingWriter(MemoryWriter):
    """A writer that raises."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def write(self, signal: Signal, values: Sequence[bytes]) -> None:
        raise self._error


async def begun(served: Endpoint) -> None:
    """Waits until a request has sent a part of its body."""
    while not served.receiver.in_flight.bytes:  # noqa: ASYNC110 # the product needs no event for this
        await asyncio.sleep(0)


async def released(served: Endpoint) -> None:
    """Waits until no request is in work."""
    while served.receiver.in_flight.requests:  # noqa: ASYNC110 # the product needs no event for this
        await asyncio.sleep(0)


@pytest.fixture
async def served() -> AsyncIterator[Endpoint]:
    async with endpoint() as running:
        yield running


# --- accepted


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    ("body", "headers", "answer"), [(GOOD, PROTOBUF, b""), (GOOD_JSON, JSON, b"{}")], ids=["protobuf", "json"]
)
async def test_a_request_is_written_as_it_came_and_answered_in_its_encoding(
    served: Endpoint, body: bytes, headers: dict[str, str], answer: bytes, compressed: bool
) -> None:
    sent = gzip.compress(body) if compressed else body
    found = await post(served, sent, {**headers, "Content-Encoding": "gzip"} if compressed else headers)
    assert (found.status, found.body, found.type) == (200, answer, headers["Content-Type"])
    assert served.writer.written == {"spans": [body], "logs": []}


async def test_log_records_go_to_their_own_topic(served: Endpoint) -> None:
    found = await post(served, LOGS, path="/v1/logs")
    assert (found.status, ExportLogsServiceResponse.FromString(found.body)) == (200, ExportLogsServiceResponse())
    assert served.writer.written == {"spans": [], "logs": [LOGS]}


async def test_a_content_type_can_have_parameters(served: Endpoint) -> None:
    found = await post(served, GOOD_JSON, {"Content-Type": "application/json; charset=utf-8"})
    assert found.status == 200


@pytest.mark.parametrize(("body", "headers"), [(b"", PROTOBUF), (b"{}", JSON)])
async def test_an_empty_request_is_a_success_and_needs_no_record(
    served: Endpoint, body: bytes, headers: dict[str, str]
) -> None:
    assert (await post(served, body, headers)).status == 200
    assert served.writer.written["spans"] == []


async def test_a_chunked_body_without_a_length_is_read(served: Endpoint) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for begin in range(0, len(GOOD), 100):
            yield GOOD[begin : begin + 100]

    assert (await post(served, chunks())).status == 200
    assert served.writer.written["spans"] == [GOOD]


async def test_one_bad_span_among_good_ones_is_a_partial_success(served: Endpoint) -> None:
    found = await post(served, request(span(1, 1), WITHOUT_IDS))
    partial = ExportTraceServiceResponse.FromString(found.body).partial_success
    assert (found.status, partial.rejected_spans) == (200, 1)
    assert "spans[1]" in partial.error_message
    assert len(served.writer.written["spans"]) == 1


async def test_a_partial_success_in_json_counts_as_json_of_protobuf_does(served: Endpoint) -> None:
    document = orjson.loads(GOOD_JSON)
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].append({"name": "no ids"})
    found = await post(served, orjson.dumps(document), JSON)
    partial = orjson.loads(found.body)["partialSuccess"]
    assert (found.status, partial["rejectedSpans"]) == (200, "1")
    assert "spans[1]" in partial["errorMessage"]


async def test_a_request_larger_than_a_record_is_written_as_several() -> None:
    async with endpoint(MemoryWriter(max_record_bytes=1_000)) as served:
        assert (await post(served, request(*agent_trace(1, tools=20)))).status == 200
        assert len(served.writer.written["spans"]) > 1


# --- refused


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"hello", PROTOBUF, "not OTLP"),
        (GOOD[:-5], PROTOBUF, "cut"),
        (request(WITHOUT_IDS), PROTOBUF, "trace id"),
        (LOGS, PROTOBUF, "log records"),
        (b"{", JSON, "not JSON"),
        (b"", JSON, "empty"),
        (GOOD, JSON, "promises"),
        (GOOD_JSON, PROTOBUF, "promises"),
        (b"no gzip", {**PROTOBUF, "Content-Encoding": "gzip"}, "not gzip data"),
        (gzip.compress(GOOD)[:-4], {**PROTOBUF, "Content-Encoding": "gzip"}, "was cut"),
        (gzip.compress(GOOD) + b"more", {**PROTOBUF, "Content-Encoding": "gzip"}, "not gzip data"),
    ],
    ids=itertools.count(),  # gzip data has the time, and test processes must name their tests alike
)
async def test_a_body_that_cannot_be_used_is_a_400_with_the_reason(
    served: Endpoint, body: bytes, headers: dict[str, str], said: str
) -> None:
    found = await post(served, body, headers)
    assert (found.status, found.type) == (400, headers["Content-Type"])
    assert said in found.message
    assert "Retry-After" not in found.headers
    assert served.writer.written["spans"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/grpc"},
        {},
        {**PROTOBUF, "Content-Encoding": "br"},
        {**PROTOBUF, "Content-Encoding": "gzip, gzip"},
    ],
)
async def test_a_wrong_content_type_or_encoding_is_a_415(served: Endpoint, headers: dict[str, str]) -> None:
    found = await post(served, GOOD, headers)
    assert found.status == 415
    assert "must be" in found.message
    assert served.writer.written["spans"] == []


async def exchange(served: Endpoint, headers: str, body: bytes, times: int = 1) -> bytes:
    """Sends a request on a socket, the body up to `times` times or until the server closes, and returns the answer."""
    host, port = served.addresses.http.removeprefix("http://").split(":")
    answer, out = await asyncio.open_connection(host, int(port))
    out.write(
        f"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n{headers}\r\n\r\n".encode()
    )
    reading = asyncio.create_task(answer.readline())
    with suppress(ConnectionError):
        for _ in range(times):
            out.write(body)
            await out.drain()
            if reading.done():
                break
    with suppress(ConnectionError):
        await reading
    out.close()
    return reading.result()


async def test_a_large_body_is_a_413_before_it_is_read(served: Endpoint) -> None:
    assert b" 413 " in await exchange(served, "Content-Length: 20000001", b"")
    assert served.receiver.counts["refused.too_large"] == 1


@pytest.mark.slow
async def test_a_large_chunked_body_is_a_413_at_the_limit() -> None:
    chunk = b"3e8\r\n" + bytes(1_000) + b"\r\n"
    async with endpoint(otlp_max_request_bytes=10_000) as served:
        assert b" 413 " in await exchange(served, "Transfer-Encoding: chunked", chunk, times=100_000)


@pytest.mark.slow
async def test_a_gzip_bomb_is_refused_without_inflating_it_whole() -> None:
    bomb = gzip.compress(bytes(100_000_000), 1)
    async with endpoint(otlp_max_in_flight_bytes=20_000_000) as served:
        found = await post(served, bomb, {**PROTOBUF, "Content-Encoding": "gzip"})
        assert found.status == 413
        assert "after decompression" in found.message


@pytest.mark.parametrize(("path", "said"), [("/v1/metrics", "OTEL_METRICS_EXPORTER"), ("/v1/profiles", "/v1/traces")])
async def test_another_path_is_a_404_that_names_the_way_out(served: Endpoint, path: str, said: str) -> None:
    found = await post(served, b"", path=path)
    assert found.status == 404
    assert said in found.message


async def test_another_method_is_a_405(served: Endpoint) -> None:
    found = await post(served, None, method="GET")
    assert (found.status, found.headers["Allow"]) == (405, "POST")


# --- Kafka and load


async def test_nothing_is_acknowledged_before_kafka_has_it(served: Endpoint) -> None:
    served.writer.answers.clear()
    answer = asyncio.create_task(post(served, GOOD))
    await served.writer.called.wait()
    assert not answer.done()
    served.writer.answers.set()
    assert (await answer).status == 200


async def test_with_kafka_down_a_request_is_a_503_that_the_client_sends_again() -> None:
    async with endpoint(MemoryWriter(is_down=True)) as served:
        found = await post(served, GOOD)
        assert (found.status, found.headers["Retry-After"]) == (503, "2")
        assert "no broker answers" in found.message
        assert served.receiver.counts["spans"] == 0


async def test_a_silent_kafka_is_a_503_and_its_request_holds_its_memory_until_kafka_answers() -> None:
    writer = MemoryWriter()
    writer.answers.clear()
    async with endpoint(writer, otlp_write_timeout_s=0.05) as served:
        assert (await post(served, GOOD)).status == 503
        assert (served.receiver.in_flight.requests, served.receiver.in_flight.bytes) == (1, len(GOOD))
        writer.answers.set()
        await released(served)
        assert served.receiver.in_flight.bytes == 0


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        ({"otlp_concurrency": 1}, "TRACEWEIR_OTLP_CONCURRENCY"),
        (
            {"otlp_max_in_flight_bytes": len(GOOD) + 500, "otlp_max_request_bytes": 1_000},
            "TRACEWEIR_OTLP_MAX_IN_FLIGHT_BYTES",
        ),
    ],
)
async def test_above_the_limits_a_request_is_a_429_and_later_one_is_accepted(
    settings: dict[str, Any], variable: str
) -> None:
    sent = request(span(1, 1), span(1, 2), span(1, 3))
    async with endpoint(**settings) as served:
        served.writer.answers.clear()
        first = asyncio.create_task(post(served, sent))
        await served.writer.called.wait()
        found = await post(served, GOOD)
        assert (found.status, found.headers["Retry-After"]) == (429, "1")
        assert variable in found.message
        served.writer.answers.set()
        assert (await first).status == 200
        assert (await post(served, sent)).status == 200
        assert served.receiver.in_flight.bytes == 0


async def test_a_slow_client_may_send_its_request_again_and_holds_nothing_afterwards() -> None:
    held = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield GOOD[:100]
        await held.wait()

    async with endpoint(otlp_read_timeout_s=0.05) as served:
        found = await post(served, chunks())
        assert (found.status, found.headers["Retry-After"]) == (503, "1")  # OTLP clients give a 408 up
        assert "TRACEWEIR_OTLP_READ_TIMEOUT_S" in found.message
        assert (served.receiver.in_flight.requests, served.receiver.in_flight.bytes) == (0, 0)


async def test_a_client_that_goes_away_in_its_body_holds_nothing_afterwards(served: Endpoint) -> None:
    host, port = served.addresses.http.removeprefix("http://").split(":")
    _, out = await asyncio.open_connection(host, int(port))
    out.write(
        b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\nabc"
    )
    await out.drain()
    await begun(served)
    out.close()
    await released(served)
    assert (await post(served, GOOD)).status == 200


# --- token, health, end


@pytest.mark.parametrize(
    "given", [None, "", f"Basic {TOKEN}", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", "Bearer \u00e9"]
)
async def test_without_the_token_a_request_is_a_401_and_the_token_is_not_told(given: str | None) -> None:
    headers = PROTOBUF if given is None else {**PROTOBUF, "Authorization": given}
    async with endpoint(otlp_token=TOKEN) as served:
        found = await post(served, GOOD, headers)
        assert (found.status, found.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert TOKEN not in found.message
        assert served.writer.written["spans"] == []


async def test_with_the_token_a_request_is_accepted() -> None:
    async with endpoint(otlp_token=TOKEN) as served:
        assert (await post(served, GOOD, {**PROTOBUF, "Authorization": f"Bearer {TOKEN}"})).status == 200


async def test_health_needs_no_token() -> None:
    async with endpoint(otlp_token=TOKEN) as served:
        found = await post(served, None, method="GET", path="/healthz")
        assert (found.status, orjson.loads(found.body)) == (200, {"healthy": True, "in_flight": 0})


async def test_health_says_no_while_kafka_cannot_be_reached(served: Endpoint) -> None:
    served.writer.problem = "no broker answers"
    found = await post(served, None, method="GET", path="/healthz")
    assert found.status == 503
    assert orjson.loads(found.body) == {"healthy": False, "in_flight": 0, "problem": "no broker answers"}


async def test_another_method_is_told_the_methods_of_the_path(served: Endpoint) -> None:
    found = await post(served, b"", path="/healthz")
    assert (found.status, found.headers["Allow"]) == (405, "GET, HEAD")
    assert found.message == "this path takes GET, HEAD requests only"


async def test_gzip_data_of_several_members_is_one_body(served: Endpoint) -> None:
    cut = len(GOOD) // 2
    found = await post(
        served, gzip.compress(GOOD[:cut]) + gzip.compress(GOOD[cut:]), {**PROTOBUF, "Content-Encoding": "gzip"}
    )
    assert (found.status, served.writer.written["spans"]) == (200, [GOOD])


async def test_an_unforeseen_error_of_kafkas_client_is_refused_for_now(caplog: pytest.LogCaptureFixture) -> None:
    async with endpoint(FailingWriter(RuntimeError("secret of the client"))) as served:
        for _ in range(3):
            found = await post(served, GOOD)
            assert (found.status, found.headers["Retry-After"]) == (503, "2")
            assert found.message == "Kafka has not taken the request (RuntimeError); send the request again"
    assert (
        caplog.text.count("RuntimeError: secret of the client") == 1
    )  # clients repeat the request, and it fails again


async def test_an_unforeseen_error_of_the_endpoint_is_a_status_without_its_text(
    served: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*args: object, **options: object) -> None:
        raise RuntimeError("secret of the endpoint")

    monkeypatch.setattr(served.receiver, "receive", fail)
    for _ in range(3):
        found = await post(served, GOOD)
    assert (found.status, found.type) == (500, "application/x-protobuf")
    assert found.message == "the endpoint failed (RuntimeError); its log has the reason"
    assert caplog.text.count("RuntimeError: secret of the endpoint") == 1


async def test_a_stop_waits_for_the_requests_in_work_and_refuses_new_ones() -> None:
    writer = MemoryWriter()
    writer.answers.clear()
    async with endpoint(writer) as served, aiohttp.ClientSession() as client:
        url = served.addresses.http
        answer = asyncio.create_task(post(served, GOOD))
        await writer.called.wait()
        served.receiver.stopping = True
        async with client.post(f"{url}/v1/traces", data=GOOD, headers=PROTOBUF) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        async with client.get(f"{url}/healthz") as health:
            assert health.status == 503
        asyncio.get_running_loop().call_soon(writer.answers.set)
    assert (await answer).status == 200
    assert writer.written["spans"] == [GOOD]

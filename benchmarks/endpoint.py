"""Measures requests/s, spans/s and CPU a span of `traceweir otlp`, a process of its own on the embedded broker."""

import asyncio
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson
import psutil
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

CONNECTIONS = 8
SPANS = 20_000
"""Spans of a measurement with large requests; a measurement with small requests sends fewer."""
MOST_REQUESTS = 3_000
ROUNDS = 3
TEXT = "a sentence of a question, of an answer or of what a tool has found; " * 3


class Load(NamedTuple):
    """The requests of a measurement."""

    name: str
    spans: int
    """Spans in a request."""
    headers: str
    encode: Callable[[TracesData], bytes]


def run() -> None:
    """Prints a line for each size and encoding of requests."""
    protobuf, json = "Content-Type: application/x-protobuf\r\n", "Content-Type: application/json\r\n"
    loads = [
        Load("protobuf", 1, protobuf, _protobuf),
        Load("protobuf", 50, protobuf, _protobuf),
        Load("protobuf", 500, protobuf, _protobuf),
        Load(
            "protobuf, gzip", 500, f"{protobuf}Content-Encoding: gzip\r\n", lambda data: gzip.compress(_protobuf(data))
        ),
        Load("JSON", 500, json, _json),
    ]
    with EmbeddedBroker() as broker:
        variables = {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "TRACEWEIR_OTLP_HTTP_PORT": "0",
            "TRACEWEIR_OTLP_GRPC": "off",
        }
        command = [sys.executable, "-m", "traceweir.streams.cli.entry", "otlp", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | variables) as process:
            assert process.stdout is not None
            address = urlsplit(orjson.loads(process.stdout.readline())["http"])
            assert address.hostname is not None
            assert address.port is not None
            server = psutil.Process(process.pid)
            for load in loads:
                _measure(load, address.hostname, address.port, server)
            process.terminate()


def _measure(load: Load, host: str, port: int, server: psutil.Process) -> None:
    count = min(MOST_REQUESTS, max(CONNECTIONS, SPANS // load.spans))
    bodies = [load.encode(_request(number, load.spans)) for number in range(CONNECTIONS)]
    requests = [
        f"POST /v1/traces HTTP/1.1\r\nHost: {host}\r\n{load.headers}Content-Length: {len(body)}\r\n\r\n".encode() + body
        for body in bodies
    ]
    asyncio.run(_send(requests, count // 10 + 1, host, port))
    seconds, cpu = [], []
    for _ in range(ROUNDS):
        began, before = time.perf_counter(), sum(server.cpu_times()[:2])
        asyncio.run(_send(requests, count, host, port))
        seconds.append(time.perf_counter() - began)
        cpu.append(sum(server.cpu_times()[:2]) - before)
    spans = count * load.spans
    print(
        f"  {load.name}, {load.spans} spans a request ({len(bodies[0]):,} bytes): {count / min(seconds):,.0f} requests/s, "
        f"{spans / min(seconds):,.0f} spans/s, {min(cpu) / spans * 1e6:.1f} us of CPU a span"
    )


async def _send(requests: Sequence[bytes], count: int, host: str, port: int) -> None:
    left = iter(range(count))
    await asyncio.gather(*(_client(request, left, host, port) for request in requests))


async def _client(request: bytes, left: Iterator[int], host: str, port: int) -> None:
    answers, out = await asyncio.open_connection(host, port)
    for _ in left:
        out.write(request)
        head = await answers.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        await answers.readexactly(int(length.partition(b":")[2]))
    out.close()


def _request(number: int, spans: int) -> TracesData:
    return TracesData(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[_span(number, each) for each in range(spans)])])]
    )


def _span(number: int, each: int) -> Span:
    texts = {"gen_ai.operation.name": "execute_tool", "input.value": TEXT, "output.value": TEXT, "note": TEXT}
    return Span(
        trace_id=(number * 1_000 + each // 10 + 1).to_bytes(16, "big"),
        span_id=(number * 1_000 + each + 1).to_bytes(8, "big"),
        name="execute_tool find",
        start_time_unix_nano=1_767_225_600_000_000_000,
        end_time_unix_nano=1_767_225_600_500_000_000,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in texts.items()],
    )


def _protobuf(data: TracesData) -> bytes:
    return bytes(data.SerializeToString())


def _json(data: TracesData) -> bytes:
    document = MessageToDict(data)
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for found, span in zip(spans, data.resource_spans[0].scope_spans[0].spans, strict=True):
        found["traceId"], found["spanId"] = span.trace_id.hex(), span.span_id.hex()  # OTLP has hexadecimal, not base64
    return orjson.dumps(document)

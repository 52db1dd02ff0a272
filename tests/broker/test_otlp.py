"""Spans that OpenTelemetry's own exporters send to `traceweir otlp` are scored by a worker, on the embedded broker."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from tests.audit.committed import Committed
from tests.support.collect import agent_trace, request
from tests.support.paths import ROOT
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, application_id
from traceweir.streams.tools.endpoint.errors import EndpointError
from traceweir.streams.tools.endpoint.kafka_writer import KafkaWriter
from traceweir.streams.tools.endpoint.receiver import WriteError
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = pytest.mark.broker

DEADLINE_S = 90
TOKEN = "correct-horse-battery"


@contextmanager
def running_endpoint(servers: str, log: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Runs `traceweir otlp` on free ports, and yields the process and the addresses that it prints."""
    variables = {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
        "TRACEWEIR_OTLP_HTTP_PORT": "0",
        "TRACEWEIR_OTLP_GRPC_PORT": "0",
        "TRACEWEIR_OTLP_TOKEN": TOKEN,
    }
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", "otlp", "--json"]
    with (
        log.open("w") as err,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True, env=os.environ | variables) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text()
            yield process, json.loads(line)
        finally:
            process.kill()


def send_agent_run(exporter: SpanExporter, session: str) -> None:
    """Records an agent with a tool call, as an instrumented framework does, and sends the spans."""
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("shop")
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        "gen_ai.conversation.id": session,
        "input.value": "Where is order 7?",
        "output.value": "It ships today.",
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find_order",
        "gen_ai.tool.call.arguments": '{"id": 7}',
        "gen_ai.tool.call.result": '{"state": "packed"}',
    }
    with (
        tracer.start_as_current_span("invoke_agent planner", attributes=agent),
        tracer.start_as_current_span("execute_tool find_order", attributes=tool),
    ):
        pass
    provider.shutdown()


@pytest.mark.slow
def test_spans_of_the_sdk_become_scores_over_http_and_over_grpc(
    embedded_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    servers = embedded_broker.bootstrap_servers
    log = tmp_path / "otlp.log"
    variables = {"TRACEWEIR_TRACE_GRACE_S": "0.2", "TRACEWEIR_IDLE_GAP_S": "0.5"}
    with (
        Fleet(servers, "traceweir.", tmp_path, ROOT / "examples" / "eval.json", variables=variables) as fleet,
        running_endpoint(servers, log) as (process, addresses),
        Committed(servers, "traceweir.", application_id("traceweir.", ALL_STAGES)) as committed,
    ):
        worker = fleet.start("worker", stages=",".join(ALL_STAGES))
        worker.until_ready()  # spans from before its start would wait for later ones
        headers = {"authorization": f"Bearer {TOKEN}"}
        send_agent_run(
            HttpSpanExporter(f"{addresses['http']}/v1/traces", headers=headers, compression=Compression.Gzip), "by-http"
        )
        send_agent_run(GrpcSpanExporter(addresses["grpc"], headers=headers, insecure=True), "by-grpc")
        deadline = time.monotonic() + DEADLINE_S
        scored: set[str] = set()
        while scored != {"by-http", "by-grpc"}:
            assert not worker.ended, worker.log.read_text()
            assert time.monotonic() < deadline, log.read_text() + worker.log.read_text()
            committed.read(0.1)
            scored = {row.document["session_id"] for row in committed.rows["results"]}
        process.terminate()
        assert process.wait(30) == 0
    assert committed.rows["dead-letters"] == []
    started, *_, completed = [row.document for row in committed.rows["invocations"] if "by-http" in str(row.document)]
    assert "Where is order 7?" in str(started)
    assert "It ships today." in str(completed)
    assert "requests=2 spans=4" in log.read_text()


async def test_a_broker_that_is_gone_is_an_error_in_time() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(kafka_bootstrap_servers=broker.bootstrap_servers, otlp_write_timeout_s=0.3)
        writer = KafkaWriter(settings)
        await writer.__aenter__()
        await writer.write("spans", [request(*agent_trace(1))])
    try:
        with pytest.raises(WriteError, match="otlp_spans"):
            await writer.write("spans", [request(*agent_trace(2))])
    finally:
        await writer.__aexit__(None, None, None)


async def test_a_wrong_number_of_partitions_is_reported_at_the_start(embedded_broker: EmbeddedBroker) -> None:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers, partitions=7)
    with pytest.raises(EndpointError, match=r"'otlp_spans' has 4 partitions, expected 7"):
        async with KafkaWriter(settings):
            pass


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_endpoint_that_waits_for_kafka_ends_at_once_after_a_stop_signal(stop: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        variables = {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": address, "TRACEWEIR_OTLP_HTTP_PORT": "0"}
        command = [sys.executable, "-m", "traceweir.streams.cli.entry", "otlp"]
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | variables) as process,
            silent.accept()[0],
        ):
            process.send_signal(stop)
            said = process.communicate(timeout=DEADLINE_S)[1]
    assert process.returncode == 0
    assert said == f"received {stop.name} during the start; the endpoint has received nothing, and ends\n"

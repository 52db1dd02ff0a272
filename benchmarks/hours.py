"""Measures the memory of each process while a light load lasts for hours, on Apache Kafka.

`python -m benchmarks.hours 120` plays 120 minutes. A worker with all stages, the OTLP endpoint, the dashboard on DuckDB
and the exporter of webhooks run with the default limits; 200 records/s arrive, half of them as spans. It needs
`KAFKA_HOME` and the packages of the extra `dashboard`.
"""

import base64
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import orjson
import psutil
from confluent_kafka import Producer
from tests.support.kafka_cluster import KafkaCluster

from benchmarks.collect import request_of
from benchmarks.workload import interleaved, produce, record
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, Topics
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT
from traceweir.streams.worker.kafka.topic_admin import create_topics

RECORDS_A_SECOND = 100
TRACES_A_SECOND = 10
"""Of ten spans each."""
FIRST_REQUEST = 1_000_000_000
"""So that the sessions of the spans have other names than those of the events."""
OPEN_AT_A_TIME = 500
"""Sessions between which the events change, so that a session lasts 55 s."""
LOOK_S = 300
"""Seconds of the load between two looks at the processes."""
CONFIG = {"criteria": {"completeness": 0.3, "no_tool_errors": 1.0, "response_match_score": 0.8}}


def run(home: Path, minutes: float) -> None:
    """Prints the memory and the cores of each process every five minutes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(KafkaCluster(home))
        receiver = stack.enter_context(_receiver())
        servers = cluster.bootstrap_servers
        create_topics(Settings(kafka_bootstrap_servers=servers, partitions=4), ALL_STAGES)
        (folder / "eval.json").write_bytes(orjson.dumps(CONFIG))
        environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
            "TRACEWEIR_PARTITIONS": "4",
            "TRACEWEIR_STATE_DIR": str(folder / "state"),
            "TRACEWEIR_EMBEDDER": "hashing",
            "TRACEWEIR_STORE": str(folder / "store.duckdb"),
            "TRACEWEIR_DASHBOARD_PORT": "0",
            "TRACEWEIR_HEALTH_PORT": "0",
            "TRACEWEIR_OTLP_HTTP_PORT": "0",
            "TRACEWEIR_OTLP_GRPC": "off",
            "TRACEWEIR_WEBHOOK_URL": receiver,
            "TRACEWEIR_WEBHOOK_SECRET": base64.b64encode(bytes(32)).decode(),
        }
        worker = "worker", "--stages", ",".join(ALL_STAGES), "--config", str(folder / "eval.json")
        log = stack.enter_context((folder / "log").open("wb"))
        endpoint = _start(environment, "otlp", "--json", stdout=subprocess.PIPE)
        assert endpoint.stdout is not None
        address = orjson.loads(endpoint.stdout.readline())["http"]
        processes = {"endpoint": endpoint, "worker": _start(environment, *worker, stdout=log, stderr=log)}
        processes["dashboard"] = _start(environment, "dashboard", stdout=log, stderr=log)
        processes["exporter"] = _start(environment, "export", "webhook", stdout=log, stderr=log)
        try:
            _load(servers, address, minutes, {name: psutil.Process(each.pid) for name, each in processes.items()})
        finally:
            for each in processes.values():
                each.send_signal(signal.SIGTERM)
            for name, each in processes.items():
                print(f"  {name} ended with {each.wait(60)}", flush=True)
            print((folder / "log").read_text(errors="replace")[:6_000], flush=True)


def _start(environment: dict[str, str], *arguments: str, **streams: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", *arguments]
    return subprocess.Popen(command, env=environment, **streams)  # type: ignore[call-overload, no-any-return]


def _load(servers: str, address: str, minutes: float, processes: dict[str, psutil.Process]) -> None:
    producer = Producer({**IDEMPOTENT, "bootstrap.servers": servers, "linger.ms": 20})
    topics = Topics.of()
    events = interleaved(1_000_000_000, OPEN_AT_A_TIME)
    begun, second, used = time.monotonic(), 0, dict.fromkeys(processes, 0.0)
    looked = begun
    print("  minute, MB (cores) of: " + ", ".join(processes), flush=True)
    while time.monotonic() - begun < minutes * 60:
        for _ in range(RECORDS_A_SECOND):
            session_id, number = next(events)
            is_trace, value = record(session_id, number, utc_now())
            produce(producer, topics, session_id, is_trace, value, 4)
        producer.poll(0)
        just_ended = utc_now() - timedelta(seconds=1)
        request = request_of(FIRST_REQUEST + second, TRACES_A_SECOND, round(just_ended.timestamp() * 1e9))
        headers = {"Content-Type": "application/x-protobuf"}
        urlopen(Request(f"{address}/v1/traces", request.SerializeToString(), headers), timeout=60).read()
        second += 1
        if second % LOOK_S == 0:
            now = time.monotonic()
            row = []
            for name, process in processes.items():
                family = [process, *process.children(recursive=True)]
                cpu = sum(sum(each.cpu_times()[:2]) for each in family)
                memory = " + ".join(f"{each.memory_info().rss / 1e6:.0f}" for each in family)
                row.append(f"{memory} ({(cpu - used[name]) / (now - looked):.3f})")
                used[name] = cpu
            looked = now
            print(f"  {(now - begun) / 60:.0f}: " + ", ".join(row), flush=True)
        if (left := begun + second - time.monotonic()) > 0:
            time.sleep(left)
    producer.flush(30)


class _Receives(BaseHTTPRequestHandler):
    """Takes each event of a webhook."""

    def do_POST(self) -> None:
        """Answers 204."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@contextmanager
def _receiver() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receives)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


if __name__ == "__main__":
    run(Path(os.environ["KAFKA_HOME"]), float(sys.argv[1]) if len(sys.argv) > 1 else 120)

"""Measures spans per second and CPU per span from OTLP requests on Apache Kafka to committed scores."""

import json
import os
import subprocess
import sys
import tempfile
import time

from confluent_kafka import Producer

from benchmarks.collect import ENCODINGS, SPANS_PER_TRACE, TRACES_PER_REQUEST, request_of
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT
from traceweir.streams.worker.kafka.topic_admin import create_topics

REQUESTS = 60


def run(servers: str, rounds: int = 2) -> None:
    """Prints, for each encoding, the spans per second and the CPU per span of one worker with four stages.

    The time includes the seconds for which the last traces and sessions wait for late records.
    """
    for turn in range(rounds):
        for encoding, encode in ENCODINGS.items():
            prefix = f"bench{time.time_ns()}."
            names = {"otlp_spans_topic": f"{prefix}otlp_spans", "otlp_logs_topic": f"{prefix}otlp_logs"}
            settings = Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix).model_copy(update=names)
            create_topics(settings, ALL_STAGES)
            producer = Producer({**IDEMPOTENT, "bootstrap.servers": servers})
            for number in range(REQUESTS):
                producer.produce(
                    settings.otlp_spans_topic, encode(request_of(number)), partition=number % settings.partitions
                )
            if left := producer.flush(60):
                raise RuntimeError(f"{left} of {REQUESTS} requests could not be sent")
            found = _measured(settings)
            print(f"  {encoding}: {found['rate']:,.0f} spans/s, {found['cpu_us']:.0f} us CPU a span (round {turn + 1})")


def _measured(settings: Settings) -> dict[str, float]:
    traces = REQUESTS * TRACES_PER_REQUEST
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
            "TRACEWEIR_TOPIC_PREFIX": settings.topic_prefix,
            "TRACEWEIR_OTLP_SPANS_TOPIC": settings.otlp_spans_topic,
            "TRACEWEIR_OTLP_LOGS_TOPIC": settings.otlp_logs_topic,
            "TRACEWEIR_STATE_DIR": folder,
            "TRACEWEIR_EMBEDDER": "none",
            "TRACEWEIR_TRACE_GRACE_S": "0.1",
            "TRACEWEIR_IDLE_GAP_S": "1",
        }
        command = [sys.executable, "-m", "benchmarks.timed_worker", ",".join(ALL_STAGES)]
        command += [str(traces * SPANS_PER_TRACE), str(traces)]
        ended = subprocess.run(command, env=environment, capture_output=True, timeout=300, check=False)
    start = ended.stdout.rfind(b'{"rate"')
    if start < 0:
        raise RuntimeError(
            f"the worker failed with {ended.returncode}:\n{ended.stderr.decode(errors='replace')[-2000:]}"
        )
    found: dict[str, float] = json.loads(ended.stdout[start:])
    return found

"""`traceweir otlp`: receives OTLP and writes it to Kafka."""

from __future__ import annotations

import sys

import orjson

from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.endpoint.server import ListenAddresses, run_endpoint

VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


def run_otlp(*, as_json: bool) -> None:
    """Runs the endpoint until SIGTERM or Ctrl-C; prints on stdout what its clients set.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
        EndpointError: a topic is missing or wrong, or a port is taken.
    """
    settings = kafka_settings()

    def ready(addresses: ListenAddresses) -> None:
        topics = settings.topics
        about = {**addresses._asdict(), "topics": [topics.otlp_spans, topics.otlp_logs]}
        sys.stdout.write(f"{orjson.dumps(about).decode()}\n" if as_json else f"export {VARIABLE}={addresses.http}\n")
        sys.stdout.flush()

    run_endpoint(settings, ready)

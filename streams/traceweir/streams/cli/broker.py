"""`traceweir broker`: runs the embedded broker in the foreground."""

from __future__ import annotations

import sys
import threading

import orjson

from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import load_settings
from traceweir.streams.cli.terminal import complain
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS, EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

VARIABLE = "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
NOTICE = """\
The embedded broker is running; Ctrl-C stops the broker. It is librdkafka's broker for tests, not Apache Kafka:
  - the broker stores its records in the memory of this process, and loses them when the process ends;
  - a partition keeps about 5 MB, then drops its oldest records;
  - the broker has no transactions: a worker on it delivers at least once, not exactly once;
  - the broker accepts connections from this machine only.
For records that you want to keep, run Apache Kafka (`docker compose up`)."""


def run_broker(*, as_json: bool) -> None:
    """Runs the broker until Ctrl-C; prints its address on stdout and its limitations on stderr.

    Raises:
        NotReadyError: the environment asks for topics that this broker cannot create.
        InvalidSettingsError: the environment cannot be used.
    """
    settings = load_settings()
    with EmbeddedBroker() as broker:
        settings = settings.model_copy(
            update={"kafka_bootstrap_servers": broker.bootstrap_servers, "kafka_security_protocol": "PLAINTEXT"}
        )
        topics = create_topics(settings)
        if topics.wrong:
            raise NotReadyError("\n".join(topics.wrong))
        complain(NOTICE)
        if as_json:
            about = {"bootstrap_servers": broker.bootstrap_servers, "partitions": PARTITIONS, "topics": topics.created}
            sys.stdout.write(orjson.dumps(about).decode() + "\n")
        else:
            sys.stdout.write(f"export {VARIABLE}={broker.bootstrap_servers}\n")
        sys.stdout.flush()
        threading.Event().wait()

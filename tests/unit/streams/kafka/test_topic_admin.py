"""Tests the error when no Kafka broker can be reached: a single message, and no output on stderr."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from traceweir.streams.kafka.topic_admin import KafkaUnreachableError, check_topics, reach
from traceweir.streams.settings import Settings


@pytest.fixture
def unused_address() -> str:
    """Returns a `host:port` on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"127.0.0.1:{port}"


def test_an_unreachable_broker_is_reported_with_address_reason_and_remedy(
    unused_address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KafkaUnreachableError) as caught:
        reach(Settings(kafka_bootstrap_servers=unused_address), timeout_s=0.5)

    message = str(caught.value)
    assert message.startswith(f"no Kafka broker answered at {unused_address} within 0.5 s (")
    assert "Connection refused" in message
    assert "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS" in message
    assert capfd.readouterr() == ("", "")


def test_a_server_that_never_answers_is_reported_as_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        settings = Settings(kafka_bootstrap_servers=f"127.0.0.1:{silent_server.getsockname()[1]}")
        with pytest.raises(KafkaUnreachableError, match="no Kafka broker answered"):
            reach(settings, timeout_s=0.5)


def test_an_invalid_certificate_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    settings = Settings(kafka_security_protocol="SSL", kafka_ssl_cafile=tmp_path / "ca.pem")

    with pytest.raises(KafkaUnreachableError, match=r"Kafka's client does not start: .*ssl\.ca\.location"):
        check_topics(settings)

"""No broker: one clear message, and nothing on stderr."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from traceweir.streams.kafka.topic_admin import KafkaUnreachableError, check_topics, reach
from traceweir.streams.settings import Settings


@pytest.fixture
def dead_address() -> str:
    """`host:port` where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"127.0.0.1:{port}"


def test_nobody_listening_is_said_with_address_reason_and_way_out(
    dead_address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KafkaUnreachableError) as caught:
        reach(Settings(kafka_bootstrap_servers=dead_address), timeout_s=0.5)

    message = str(caught.value)
    assert message.startswith(f"no Kafka broker answered at {dead_address} within 0.5 s (")
    assert "Connection refused" in message
    assert "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS" in message
    assert capfd.readouterr() == ("", "")


def test_a_listener_that_never_answers_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        settings = Settings(kafka_bootstrap_servers=f"127.0.0.1:{mute.getsockname()[1]}")
        with pytest.raises(KafkaUnreachableError, match="no Kafka broker answered"):
            reach(settings, timeout_s=0.5)


def test_a_certificate_file_that_is_none_is_said_too(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    settings = Settings(kafka_security_protocol="SSL", kafka_ssl_cafile=tmp_path / "ca.pem")

    with pytest.raises(KafkaUnreachableError, match=r"Kafka's client does not start: .*ssl\.ca\.location"):
        check_topics(settings)

"""A prefix of topics, and a fleet of workers on these topics, for each test on Apache Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_admin import create_topics


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid.uuid4().hex[:8]}."


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka)])
def servers(request: pytest.FixtureRequest, prefix: str) -> str:
    """Returns the bootstrap servers of an Apache Kafka, with topics; `EACH_BROKER` adds the embedded broker."""
    broker = request.getfixturevalue(request.param)
    found: str = broker if isinstance(broker, str) else broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=found, topic_prefix=prefix))
    return found


@pytest.fixture
def fleet(kafka: str, prefix: str, tmp_path: Path) -> Iterator[Fleet]:
    assert create_topics(Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix)).wrong == ()
    config = tmp_path / "config.json"
    config.write_text("{}")
    with Fleet(kafka, prefix, tmp_path, config) as fleet:
        yield fleet


@pytest.fixture
def settings(kafka: str, prefix: str) -> Settings:
    """Returns the settings of a prefix of its own, whose topics exist."""
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix)
    assert create_topics(settings).wrong == ()
    return settings

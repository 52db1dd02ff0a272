"""What is read from the spans of an agent that MLflow traces equals what the agent did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents, unused_snippets

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

HTTP = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


@pytest.mark.parametrize("semconv", ["false", "true"])
def test_each_field_is_read(semconv: str, agents: Agents) -> None:
    recording = agents.run("mlflow", environment={**HTTP, "MLFLOW_ENABLE_OTEL_GENAI_SEMCONV": semconv})
    found, misses = recording.differences()
    assert found == {}, misses


def test_the_page_shows_the_code_of_the_agent() -> None:
    assert not unused_snippets("connect-mlflow.md", "mlflow_agent.py")

"""What is read from the spans of agents of CrewAI equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents, unused_snippets

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

Differences = dict[str, tuple[int, int, int]]
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}
HIDDEN = {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}
# Of each field: right, said to be missing, and all. No client of a model is instrumented.
WITHOUT_MODELS: Differences = {"input tokens": (0, 9, 9), "output tokens": (0, 9, 9), "models": (0, 9, 9)}
# The one answer that is right is the absent one of the failed turn. The tasks are not hidden.
WITHOUT_CONTENT: Differences = {"answers": (1, 8, 9), "args": (0, 8, 8), "results": (0, 7, 7)}


@pytest.mark.parametrize(
    ("words", "environment", "differences"),
    [
        pytest.param((), {}, WITHOUT_MODELS, id="content"),
        pytest.param(("alone",), {}, WITHOUT_MODELS, id="agent-without-crew"),
        pytest.param((), HIDDEN, {**WITHOUT_MODELS, **WITHOUT_CONTENT}, id="no-content"),
    ],
)
def test_each_field_is_read_or_said_to_be_missing(
    words: tuple[str, ...], environment: dict[str, str], differences: Differences, agents: Agents
) -> None:
    found, misses = agents.run("crewai", *words, environment={**QUIET, **environment}).differences()
    assert found == differences, misses


def test_the_page_shows_the_code_of_the_agent() -> None:
    assert not unused_snippets("connect-crewai.md", "crewai_agent.py")

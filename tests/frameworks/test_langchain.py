"""What is read from the spans of agents of LangChain and LangGraph equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

Differences = dict[str, tuple[int, int, int]]
OPENINFERENCE = {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}
LANGSMITH = {"LANGSMITH_HIDE_INPUTS": "true", "LANGSMITH_HIDE_OUTPUTS": "true"}
# Of each field: right, said to be missing, and all. The one answer that is right is the absent one of the failed turn.
WITHOUT_CONTENT: Differences = {
    "questions": (0, 10, 10),
    "answers": (1, 9, 10),
    "args": (0, 10, 10),
    "results": (0, 9, 9),
}


@pytest.mark.parametrize(
    "words",
    [
        "openinference",
        "openinference async stream",
        "openinference graph",
        "traceloop",
        "traceloop async stream",
        "traceloop graph",
        "langsmith",
        "langsmith async stream",
        "langsmith graph",
        "openinference traceloop",
    ],
)
def test_each_field_is_read(words: str, agents: Agents) -> None:
    found, misses = agents.run("langchain", *words.split()).differences()
    assert found == {}, misses


@pytest.mark.parametrize(
    ("word", "environment", "differences"),
    [
        ("openinference", OPENINFERENCE, WITHOUT_CONTENT),
        ("openinference", {"OPENINFERENCE_HIDE_INPUTS": "true"}, {"questions": (0, 10, 10)}),
        # The result of a turn's last call is in no later input of a model.
        ("openinference", {"OPENINFERENCE_HIDE_OUTPUTS": "true"}, {"answers": (1, 9, 10), "results": (8, 1, 9)}),
        ("traceloop", {"TRACELOOP_TRACE_CONTENT": "false"}, WITHOUT_CONTENT),
        ("langsmith", LANGSMITH, WITHOUT_CONTENT),
    ],
)
def test_hidden_content_is_said_to_be_missing(
    word: str, environment: dict[str, str], differences: Differences, agents: Agents
) -> None:
    found, misses = agents.run("langchain", word, environment=environment).differences()
    assert found == differences, misses

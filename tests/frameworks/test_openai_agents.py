"""What is read from the spans of agents of OpenAI's Agents SDK equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

Differences = dict[str, tuple[int, int, int]]
HIDDEN = {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}
# Of each field: right, said to be missing, and all. The SDK tells the error of a tool neither to the model nor to spans.
ERROR_UNTOLD: Differences = {"errors": (0, 1, 1)}
WITHOUT_CONTENT: Differences = {
    "questions": (0, 10, 10),
    "answers": (1, 9, 10),
    "args": (0, 10, 10),
    "results": (0, 8, 8),
    **ERROR_UNTOLD,
}


@pytest.mark.parametrize(
    ("words", "differences"),
    [
        ("openinference responses", ERROR_UNTOLD),
        ("openinference responses told", {}),
        ("openinference responses stream", ERROR_UNTOLD),
        ("openinference responses without-session", ERROR_UNTOLD),
        ("openinference chat", ERROR_UNTOLD),
        ("openinference chat stream told", {}),
        ("traceloop responses stream", ERROR_UNTOLD),
        ("traceloop responses told", {}),
        # traceloop writes neither the answers nor the tokens of Chat Completions.
        (
            "traceloop chat told",
            {"answers": (1, 9, 10), "input tokens": (0, 10, 10), "output tokens": (0, 10, 10)},
        ),
    ],
)
def test_each_field_is_read_or_said_to_be_missing(words: str, differences: Differences, agents: Agents) -> None:
    found, misses = agents.run("openai_agents", *words.split()).differences()
    assert found == differences, misses


@pytest.mark.parametrize(
    ("word", "environment", "differences"),
    [
        ("openinference", HIDDEN, WITHOUT_CONTENT),
        # The span of the handoff does not tell the agent that receives it.
        (
            "traceloop",
            {"TRACELOOP_TRACE_CONTENT": "false"},
            {**WITHOUT_CONTENT, "tools": (9, 1, 10), "order": (9, 1, 10), "args": (0, 9, 9)},
        ),
    ],
)
def test_hidden_content_is_said_to_be_missing(
    word: str, environment: dict[str, str], differences: Differences, agents: Agents
) -> None:
    found, misses = agents.run("openai_agents", word, "responses", environment=environment).differences()
    assert found == differences, misses

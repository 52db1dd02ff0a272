"""What is read from the spans of agents of LlamaIndex equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents, unused_snippets

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

HIDDEN = {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}
HIDDEN_MESSAGES = {"OPENINFERENCE_HIDE_INPUT_MESSAGES": "true", "OPENINFERENCE_HIDE_OUTPUT_MESSAGES": "true"}
# Of each field: right, said to be missing, and all. The one answer that is right is the absent one of the failed turn.
# The name of the agent is in the inputs only.
WITHOUT_CONTENT = {
    "questions": (0, 10, 10),
    "answers": (1, 9, 10),
    "args": (0, 10, 10),
    "results": (0, 8, 8),
    "agents": (0, 10, 10),
}


@pytest.mark.parametrize(
    ("words", "environment", "differences"),
    [
        pytest.param((), {}, {}, id="content"),
        pytest.param(("plain",), {}, {}, id="not-streaming"),
        pytest.param(("react",), {}, {}, id="react"),
        pytest.param(("alone",), {}, {}, id="without-workflow"),
        pytest.param((), HIDDEN, WITHOUT_CONTENT, id="no-content"),
        pytest.param((), HIDDEN_MESSAGES, {"questions": (0, 10, 10)}, id="no-messages"),
    ],
)
def test_each_field_is_read_or_said_to_be_missing(
    words: tuple[str, ...],
    environment: dict[str, str],
    differences: dict[str, tuple[int, int, int]],
    agents: Agents,
) -> None:
    found, misses = agents.run("llama_index", *words, environment=environment).differences()
    assert found == differences, misses


def test_the_page_shows_the_code_of_the_agent() -> None:
    assert not unused_snippets("connect-llama-index.md", "llama_index_agent.py")

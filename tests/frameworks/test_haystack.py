"""What is read from the spans of agents of Haystack equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

CONTENT = {"HAYSTACK_CONTENT_TRACING_ENABLED": "true"}
NAMELESS = {"agents": (0, 10, 10)}
# Of each field: right, said to be missing, and all. The one answer that is right is the absent one of the failed turn.
WITHOUT_CONTENT = {
    "questions": (0, 10, 10),
    "answers": (1, 9, 10),
    "args": (0, 10, 10),
    "results": (0, 9, 9),
    "errors": (0, 1, 1),
    "input tokens": (0, 10, 10),
    "output tokens": (0, 10, 10),
    "models": (0, 10, 10),
}


@pytest.mark.parametrize(
    ("words", "environment", "differences"),
    [
        pytest.param((), CONTENT, NAMELESS, id="agent"),
        pytest.param(("async",), CONTENT, NAMELESS, id="async"),
        pytest.param(("pipeline",), CONTENT, {}, id="pipeline"),
        pytest.param((), {}, WITHOUT_CONTENT | NAMELESS, id="no-content"),
    ],
)
def test_each_field_is_read_or_said_to_be_missing(
    words: tuple[str, ...],
    environment: dict[str, str],
    differences: dict[str, tuple[int, int, int]],
    agents: Agents,
) -> None:
    found, misses = agents.run("haystack", *words, environment=environment).differences()
    assert found == differences, misses

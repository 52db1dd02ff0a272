"""What is read from the spans of agents of pydantic-ai equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.mark.parametrize("words", ["", "2", "3", "4", "6", "logfire", "openinference"])
def test_each_field_is_read(words: str, agents: Agents) -> None:
    found, misses = agents.run("pydantic_ai", *words.split()).differences()
    assert found == {}, misses


@pytest.mark.parametrize("words", ["no-content", "2 no-content", "openinference no-content"])
def test_hidden_content_is_said_to_be_missing(words: str, agents: Agents) -> None:
    found, misses = agents.run("pydantic_ai", *words.split()).differences()
    # Of each field: right, said to be missing, and all.
    expected = {
        "questions": (0, 10, 10),
        "answers": (1, 9, 10),
        "args": (0, 10, 10),
        "results": (0, 9, 9),
        "errors": (0, 1, 1),
    }
    assert found == expected, misses

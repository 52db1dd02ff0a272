"""What is read from the spans of agents of Strands equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents, unused_snippets

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST = "gen_ai_latest_experimental"
# Of each field: right, said to be missing, and all. The one answer that is right is the absent one of the failed turn.
WITHOUT_CONTENT = {"questions": (0, 10, 10), "answers": (1, 9, 10), "args": (0, 10, 10), "results": (0, 9, 9)}


@pytest.mark.parametrize(
    ("words", "opt_in", "differences"),
    [
        pytest.param((), "", {}, id="events"),
        pytest.param(("async",), "", {}, id="async"),
        pytest.param(("swarm",), "", {}, id="swarm"),
        pytest.param(("swarm",), LATEST, {}, id="latest"),
        pytest.param(("swarm",), f"{LATEST},gen_ai_span_attributes_only", {}, id="latest-attributes"),
        pytest.param((), "gen_ai_unredacted_attributes=", WITHOUT_CONTENT, id="no-content"),
        pytest.param(("async",), f"{LATEST},gen_ai_unredacted_attributes=", WITHOUT_CONTENT, id="latest-no-content"),
    ],
)
def test_each_field_is_read_or_said_to_be_missing(
    words: tuple[str, ...], opt_in: str, differences: dict[str, tuple[int, int, int]], agents: Agents
) -> None:
    found, misses = agents.run("strands", *words, environment={OPT_IN: opt_in} if opt_in else {}).differences()
    assert found == differences, misses


def test_the_page_shows_the_code_of_the_agent() -> None:
    assert not unused_snippets("connect-strands.md", "strands_agent.py")

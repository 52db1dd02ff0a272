"""What is read from the spans of agents of Google's ADK equals what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SCHEMA_1 = {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"}
# Of each field: right, said to be missing, and all. The one answer that is right is the absent one of the failed turn.
WITHOUT_CONTENT = {
    "questions": (0, 10, 10),
    "answers": (1, 9, 10),
    "args": (0, 10, 10),
    "results": (0, 8, 8),
    "errors": (0, 1, 1),
}


@pytest.mark.parametrize(
    ("words", "environment", "differences"),
    [
        pytest.param((), {CAPTURE: "SPAN_AND_EVENT"}, {}, id="content"),
        pytest.param((), {CAPTURE: "SPAN_ONLY"}, {}, id="content-in-spans"),
        pytest.param((), {CAPTURE: "true"}, {}, id="content-in-logs"),
        pytest.param(("stream",), {CAPTURE: "SPAN_AND_EVENT"}, {}, id="stream"),
        pytest.param((), {}, WITHOUT_CONTENT, id="no-content"),
        pytest.param((), SCHEMA_1, {}, id="schema-1"),
        pytest.param(("stream",), SCHEMA_1, {}, id="schema-1-stream"),
        pytest.param(
            (),
            {**SCHEMA_1, "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"},
            WITHOUT_CONTENT,
            id="schema-1-no-content",
        ),
        # One span has all model calls of an agent, and the last one overwrites the others; the log records have all.
        pytest.param(("openinference",), {}, {}, id="openinference"),
        pytest.param(("openinference",), SCHEMA_1, {}, id="openinference-schema-1"),
    ],
)
def test_each_field_is_read_or_said_to_be_missing(
    words: tuple[str, ...],
    environment: dict[str, str],
    differences: dict[str, tuple[int, int, int]],
    agents: Agents,
) -> None:
    found, misses = agents.run("adk", *words, environment=environment).differences()
    assert found == differences, misses

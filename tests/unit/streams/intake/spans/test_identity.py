"""To whom spans belong: the session, the agent, and the labels of the spans around an invocation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace

AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def test_labels_tags_and_environment_of_the_spans_above_count_for_each_turn_of_a_conversation() -> None:
    above = {"traceweir.label.team": "search", "traceweir.label.tier": "gold", "langfuse.trace.tags": '["beta"]'}
    above |= {"langfuse.environment": "staging"}
    root = span(1, 0, "conversation", above)
    turn = span(2, 1, "invoke_agent desk", AGENT | {"traceweir.label.tier": "silver"})
    event = read_trace([root, turn, span(3, 2, "chat m", CHAT)]).events[0]
    assert event["labels"] == {"team": "search", "tier": "silver", "beta": "true"}
    assert event["environment"] == "staging"
    assert event["trace_context"]["span_id"] == turn.span_id


@pytest.mark.parametrize(
    "key",
    [
        *("lmnr.association.properties.session_id", "langwatch.thread.id", "langwatch.thread_id"),
        *("wandb.thread_id", "gen_ai.thread.id"),
    ],
)
def test_the_session_is_that_which_an_sdk_adds_to_spans_of_other_conventions(key: str) -> None:
    event = read_trace([span(1, 0, "invoke_agent desk", AGENT | {key: "thread-9"}), span(2, 1, "chat m", CHAT)]).events[
        0
    ]
    assert event["session_id"] == "thread-9"


def test_the_operation_before_a_name_is_no_part_of_it_however_often_it_stands_there() -> None:
    named = span(1, 0, "run", AGENT | {"gen_ai.agent.name": "invoke_agent " * 1_000 + "desk"})
    ran = {"gen_ai.operation.name": "execute_tool"}
    events = read_trace([named, span(2, 1, "chat m", CHAT), span(3, 1, "execute_tool " * 1_000 + "look", ran)]).events
    assert events[0]["agent_name"] == "desk"
    assert [each["name"] for each in events if each["type"] == "tool.called"] == ["look"]

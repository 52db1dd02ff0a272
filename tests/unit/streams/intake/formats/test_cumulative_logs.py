"""Tests logs of chats that have the whole history in each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.openai_chat import BOOKING, assistant_message, tool_calls, tool_result, user_message
from tests.support.read_sessions import read_sessions

from traceweir.schemas.turns import turns_of

FIRST = [user_message("q1"), assistant_message("a1")]
SECOND = [*FIRST, user_message("q2"), assistant_message("a2")]
THIRD = [*SECOND, user_message("q3"), assistant_message("a3")]


def line(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"conversation_id": "k", "messages": messages} | more


def read(path: Path, *lines: dict[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns question and answer of each invocation of the only session, and the problems."""
    path.write_text("\n".join(map(json.dumps, lines)))
    sessions, problems = read_sessions(path)
    (session,) = sessions
    assert len(session.current_traces) == 1
    said = [
        (
            turn.invocation.user_content.text if turn.invocation.user_content else "",
            turn.invocation.final_response.text if turn.invocation.final_response else "",
        )
        for turn in turns_of(session)
    ]
    return said, problems


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 1, 2)])
def test_the_longest_transcript_of_a_conversation_replaces_its_beginnings(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    lines = [line(FIRST), line(SECOND), line(THIRD)]
    said, problems = read(tmp_path / "log.jsonl", *(lines[number] for number in order))
    assert (said, problems) == ([("q1", "a1"), ("q2", "a2"), ("q3", "a3")], [])


def test_a_text_that_was_the_answer_of_a_shorter_transcript_is_no_answer_of_the_longer(tmp_path: Path) -> None:
    begun = [user_message("A table?"), assistant_message("Let me look.")]
    whole = [*begun, tool_calls(("c1", "find", "{}")), tool_result("c1", "7"), assistant_message("Table 7.")]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, [line(begun), line(whole)])))
    (session,), problems = read_sessions(tmp_path / "log.jsonl")
    assert problems == []
    assert [event.type for event in session.current_events] == [
        "invocation.started",
        "response.intermediate",
        "tool.called",
        "tool.returned",
        "invocation.completed",
        "session.ended",
    ]


def test_lines_with_other_times_and_models_make_one_conversation(tmp_path: Path) -> None:
    said, problems = read(
        tmp_path / "log.jsonl",
        line(FIRST, created=1772366400, model="m1"),
        line(SECOND, created=1772366300, model="m2"),
    )
    assert (said, problems) == ([("q1", "a1"), ("q2", "a2")], [])


def test_the_tokens_of_each_request_of_a_log_count(tmp_path: Path) -> None:
    def request(messages: list[Any], tokens: int) -> dict[str, Any]:
        *history, answer = messages
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        return line(history, choices=[{"message": answer}], usage=usage)

    whole = [*FIRST, user_message("q2"), tool_calls(("c", "t", "{}")), tool_result("c", "r"), assistant_message("a2")]
    lines = [request(FIRST, 10), request(whole[:4], 20), request(whole, 30)]
    for order in (lines, lines[::-1]):
        (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, order)))
        (session,), _ = read_sessions(tmp_path / "log.jsonl")
        usages = [turn.invocation.token_usage for turn in turns_of(session)]
        assert [each and each.input_tokens for each in usages] == [10, 50]


@pytest.mark.parametrize(
    "other",
    [
        [user_message("q1"), assistant_message("another"), user_message("q2"), assistant_message("a2")],
        [user_message("q2"), assistant_message("a2")],
        [user_message("q1"), assistant_message("a1", tool_calls=tool_calls(("c", "t", "{}"))["tool_calls"])],
        BOOKING,
    ],
)
def test_a_transcript_that_is_no_beginning_of_the_other_is_refused_by_name(tmp_path: Path, other: list[Any]) -> None:
    said, problems = read(tmp_path / "log.jsonl", line(FIRST), line(other), line(SECOND))
    assert said == [("q1", "a1"), ("q2", "a2")]
    (problem,) = problems
    assert "document 2: has the session id 'k' of document 1, which is a different transcript" in problem

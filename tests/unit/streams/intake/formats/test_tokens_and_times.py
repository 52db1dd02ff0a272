"""The tokens and the times that logs, exports and messages have are read; a total alone is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.openai_chat import assistant_message, convert, session_of, user_message
from tests.support.read_sessions import read_sessions

from traceweir.schemas.invocation import Invocation
from traceweir.schemas.turns import turns_of

QUESTION = user_message("Open?")
ANSWER = assistant_message("No.")
TOTAL = "the tokens are not divided into input and output: the total of 12 tokens is all that is there"
MESSAGES = {"messages": [QUESTION], "response": {"choices": [{"message": ANSWER}]}}
LITELLM = {"id": "c", "call_type": "acompletion", **MESSAGES}
BODIES = {
    "request_id": "c",
    "request_created_at": "2026-01-31T12:00:00.000Z",
    "request_body": {"model": "m", "messages": [QUESTION]},
    "response_body": {"choices": [{"message": ANSWER}]},
}
HELICONE = {
    "providerRequest": {"json": {"messages": [QUESTION]}},
    "providerResponse": {"json": {"choices": [{"message": ANSWER}]}, "status": 200},
}


def tokens(found: Invocation) -> tuple[int | None, int | None] | None:
    usage = found.reported_tokens
    return None if usage is None else (usage.input_tokens, usage.output_tokens)


def only(document: dict[str, Any], directory: Path) -> Invocation:
    path = directory / "log.jsonl"
    path.write_bytes(orjson.dumps(document) + b"\n")
    sessions, problems = read_sessions(path)
    assert problems == []
    (session,) = sessions
    return turns_of(session)[-1].invocation


@pytest.mark.parametrize(
    ("log", "seconds"),
    [
        (LITELLM | {"startTime": 1769860800.0, "endTime": 1769860802.5}, 2.5),
        (LITELLM | {"startTime": "2026-01-31T12:00:00Z", "response_time": 1.5}, 1.5),
        (BODIES | {"response_created_at": "2026-01-31T12:00:04.000Z", "latency": 9000}, 4.0),
        (BODIES | {"delay_ms": 3000}, 3.0),
        (BODIES | {"latency": 2000}, 2.0),
        (
            HELICONE
            | {
                "timing": {
                    "startTime": {"seconds": 1769860800, "milliseconds": 100},
                    "endTime": {"seconds": 1769860802, "milliseconds": 300},
                }
            },
            2.2,
        ),
        (BODIES, None),
        (LITELLM | {"startTime": "2026-01-31T12:00:00Z", "endTime": "later"}, None),
        (LITELLM | {"startTime": "2026-01-31T12:00:00Z", "response_time": -1}, None),
        (LITELLM | {"startTime": "2026-01-31T12:00:00Z", "response_time": 2_600_000}, None),
        (BODIES | {"delay_ms": 2_600_000}, 2600.0),
        (BODIES | {"delay_ms": 2_600_000_000}, None),
    ],
)
def test_the_latency_of_a_logged_call_is_read_from_its_times(
    log: dict[str, Any], seconds: float | None, tmp_path: Path
) -> None:
    assert only(log, tmp_path).latency_seconds == seconds


def test_the_newest_turn_of_a_logged_call_alone_has_the_time_of_the_call(tmp_path: Path) -> None:
    history = [user_message("Hi"), assistant_message("Hello."), QUESTION]
    log = LITELLM | {"messages": history, "startTime": 1769860800.0, "endTime": 1769860802.5}
    assert only(log, tmp_path).latency_seconds == 2.5


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        ({"usage": {"input": 10, "output": 2, "total": 12, "unit": "TOKENS"}}, (10, 2)),
        ({"usage": {"promptTokens": 10, "completionTokens": 2}}, (10, 2)),
        ({"usageDetails": {"input": 6, "input_cached_tokens": 4, "output": 2, "total": 12}}, (10, 2)),
        ({"promptTokens": 10, "completionTokens": 2}, (10, 2)),
        ({"usage": {"input": 400, "output": 20, "unit": "CHARACTERS"}}, None),
    ],
)
def test_the_tokens_of_a_trace_of_langfuse_are_those_of_its_generations(
    observation: dict[str, Any], expected: tuple[int, int] | None, tmp_path: Path
) -> None:
    generation = {"id": "g", "type": "GENERATION", "model": "m", "input": [QUESTION], "output": ANSWER, **observation}
    inner = {**generation, "id": "i", "parentObservationId": "g"}
    trace = {"id": "t", "timestamp": "2026-01-31T12:00:00Z", "latency": 2, "input": "Open?", "output": "No."}
    span = {"id": "s", "type": "SPAN", "name": "work"}
    for name in ({}, {"sessionId": "s"}):
        for further in ([], [span]):
            found = only(trace | name | {"observations": [generation, inner, *further]}, tmp_path)
            assert tokens(found) == expected
            assert found.latency_seconds == 2


@pytest.mark.parametrize("place", [{}, {"id": ["g"]}, {"id": "g", "parentObservationId": ["g"]}])
def test_a_model_call_whose_place_is_not_known_keeps_its_tokens(place: dict[str, Any], tmp_path: Path) -> None:
    generation = {"type": "GENERATION", "usageDetails": {"input": 10, "output": 2}, **place}
    trace = {"id": "t", "timestamp": "2026-01-31T12:00:00Z", "input": "Open?", "output": "No."}
    assert tokens(only(trace | {"observations": [generation]}, tmp_path)) == (10, 2)


def test_a_model_call_within_another_one_repeats_its_tokens_however_deep_it_is(tmp_path: Path) -> None:
    usage = {"type": "GENERATION", "usageDetails": {"input": 10, "output": 2}}
    between = {"id": "s", "type": "SPAN", "parentObservationId": "g"}
    observed = [usage | {"id": "g"}, between, usage | {"id": "h", "parentObservationId": "s"}]
    circle = [
        {"id": "x", "type": "SPAN", "parentObservationId": "y"},
        between | {"id": "y", "parentObservationId": "x"},
    ]
    outside = usage | {"id": "z", "parentObservationId": "x"}
    trace = {"id": "t", "timestamp": "2026-01-31T12:00:00Z", "input": "Open?", "output": "No."}
    assert tokens(only(trace | {"observations": observed}, tmp_path)) == (10, 2)
    assert tokens(only(trace | {"observations": [*observed, *circle, outside]}, tmp_path)) == (20, 4)


@pytest.mark.parametrize(
    "document",
    [
        LITELLM | {"startTime": "9999-12-30T23:00:00Z", "response_time": 100_000},
        {"id": "t", "timestamp": "9999-12-30T23:00:00Z", "latency": 100_000, "input": "Open?", "output": "No."}
        | {"sessionId": "s", "observations": []},
    ],
)
def test_a_call_that_ends_behind_the_calendar_is_refused_by_its_time(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(orjson.dumps(document) + b"\n")
    sessions, problems = read_sessions(path)
    assert sessions == []
    assert "ahead of now" in problems[0]


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER | {"usage": {"input_tokens": 10, "output_tokens": 2}},
        ANSWER | {"usage_metadata": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}},
        ANSWER | {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2}},
    ],
)
def test_the_tokens_of_a_message_are_those_of_its_turn(answer: dict[str, Any]) -> None:
    turns = turns_of(session_of(convert([QUESTION, answer, user_message("Why?"), answer])))
    assert [tokens(turn.invocation) for turn in turns] == [(10, 2), (10, 2)]


def test_a_message_in_parts_has_its_tokens_once() -> None:
    usage = {"id": "m1", "usage": {"input_tokens": 10, "output_tokens": 2}}
    (turn,) = turns_of(session_of(convert([QUESTION, assistant_message("Well.") | usage, ANSWER | usage])))
    assert tokens(turn.invocation) == (10, 2)


def test_the_tokens_beside_one_answer_are_its_own() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    (turn,) = turns_of(session_of(convert([QUESTION, ANSWER], usage=usage)))
    assert tokens(turn.invocation) == (10, 2)
    turns = turns_of(session_of(convert([QUESTION, ANSWER, QUESTION, ANSWER], usage=usage)))
    assert [tokens(turn.invocation) for turn in turns] == [None, None]


@pytest.mark.parametrize(
    "further", [{"usage": {name: 12}} for name in ("total_tokens", "total", "tokens")] + [{"total_tokens": 12}]
)
def test_a_total_of_tokens_alone_is_named(further: dict[str, Any]) -> None:
    (turn,) = turns_of(session_of(convert([QUESTION, ANSWER], **further)))
    assert tokens(turn.invocation) is None
    assert TOTAL in (turn.invocation.unread or [])


@pytest.mark.parametrize("further", [{"usage": {"total_tokens": 12}}, {"total_tokens": 12}])
def test_a_total_beside_messages_with_tokens_of_their_own_is_not_all_that_is_there(further: dict[str, Any]) -> None:
    answer = ANSWER | {"usage": {"input_tokens": 5, "output_tokens": 1}}
    turns = turns_of(session_of(convert([QUESTION, answer, QUESTION, answer], **further)))
    assert [tokens(turn.invocation) for turn in turns] == [(5, 1), (5, 1)]
    assert TOTAL not in (turns[-1].invocation.unread or [])


@pytest.mark.parametrize("further", [{"tokens": 12}, {"total": 12}])
def test_a_number_of_a_transcript_that_can_mean_anything_is_no_total_of_tokens(further: dict[str, Any]) -> None:
    (turn,) = turns_of(session_of(convert([QUESTION, ANSWER], **further)))
    assert TOTAL not in (turn.invocation.unread or [])

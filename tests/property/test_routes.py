"""The same session has the same scores by every route."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from tests.support.examples import examples
from tests.support.session_routes import ROUTES, DrawnCall, DrawnSession, DrawnTurn, drawn_sessions

from traceweir.schemas.conversation import conversation_of
from traceweir.schemas.invocation import Content, FunctionCall
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DEFAULT_MAX_SESSION_BYTES
from traceweir.streams.intake.formats.files import read_inputs
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.intake.formats.unread_keys import UnreadKeys
from traceweir.streams.tools.offline.score_documents import assemble_offline

CLOCK = datetime(2030, 1, 1, tzinfo=UTC)
PLAN = read_plan(
    {
        "criteria": {
            "response_match_score": 0.5,
            "tool_trajectory_avg_score": 1.0,
            "trajectory_precision": 0.5,
            "trajectory_recall": 0.5,
            "completeness": 0.5,
            "content_similarity": 0.5,
            "keyword_coverage": 0.5,
            "tool_call_accuracy": {"threshold": 0.5, "expectedTool": "look"},
            "tool_call_count_v1": {},
        }
    }
)


def read_session(documents: list[Any]) -> Session:
    """Returns the only session of documents, and checks that everything in them was understood."""
    unread_keys = UnreadKeys()
    stream = io.BytesIO("\n".join(map(json.dumps, documents)).encode())
    is_otlp = "resourceSpans" in documents[0]
    found = read_inputs(
        [stream],
        input_format("otlp" if is_otlp else "traceweir"),
        task_domain="general",
        max_session_bytes=DEFAULT_MAX_SESSION_BYTES,
        visibility="private",
        unread_keys=unread_keys,
    )
    assembled = assemble_offline(found, read_plan(None), Settings(), clock=lambda: CLOCK)
    assert ([*assembled.problems], [*unread_keys.lines("in")]) == ([], [])
    (value,) = assembled.sessions
    return Session.model_validate_json(value)


def scores_of(session: Session, drawn: DrawnSession) -> list[tuple[Any, ...]]:
    """Returns the scores of the invocations and of the session, in order, without ids."""
    turns = turns_of(session)
    expected = [
        Reference(
            final_response=Content.of("It is rainy in Oslo today", "model"),
            tool_uses=[FunctionCall(name=call.name, args=call.args) for call in turn.calls[:2]],
        )
        for turn in drawn
    ]
    referenced = [replace(turn, reference=each) for turn, each in zip(turns, expected, strict=True)]
    scores = asyncio.run(evaluate(PLAN, session, referenced, now=lambda: CLOCK, timeout_s=60))
    return [
        (each.metric, each.level, each.value, each.status, each.not_evaluated_because)
        for each in scores
        if each.level != "trace"
    ]


def told(session: Session) -> list[Any]:
    """Returns what people read of a session, with results as text."""
    return [
        [each.question, each.answer, [[tool.name, tool.args, _text(tool.response)] for tool in each.tools]]
        for each in conversation_of(session)
    ]


def _text(response: Any) -> Any:
    """Returns the text of a result, which ADK has in an object, and chats have as JSON."""
    if isinstance(response, str) and response.startswith("{"):
        response = json.loads(response)
    return response.get("output", response.get("error")) if isinstance(response, dict) else response


@pytest.mark.parametrize("route", ROUTES)
@settings(max_examples=examples(20))
@given(drawn=drawn_sessions())
@example(drawn=(DrawnTurn("Oslo", (DrawnCall("c0-0", "look", {}, "error"),), "Oslo", "", False),))
def test_a_session_is_the_same_by_every_route(route: str, drawn: DrawnSession) -> None:
    session = read_session(ROUTES[route](drawn))
    calls = [[[call.name, call.args, call.result] for call in turn.calls] for turn in drawn]
    assert told(session) == [[turn.question, turn.answer, each] for turn, each in zip(drawn, calls, strict=True)]


@settings(max_examples=examples(20))
@given(drawn=drawn_sessions())
def test_the_computed_scores_of_a_session_are_the_same_by_every_route(drawn: DrawnSession) -> None:
    found = {name: scores_of(read_session(write(drawn)), drawn) for name, write in ROUTES.items()}
    expected = found["own_events"]
    assert expected
    assert {name: scores for name, scores in found.items() if scores != expected} == {}

"""The readers of this repository accept what the client writes, which is a distribution of its own without the schemas."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fake_transport import FakeTransport
from traceweir.client import Dimensions, ReasoningTraces, Recorder
from traceweir.client import finish_reasons as finish_reasons_of_client

from traceweir.schemas.events import EVENT, TYPES
from traceweir.schemas.finish_reasons import not_whole
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import turns_of
from traceweir.streams.base.topics import Topics

TOPICS = Topics.of()
VALUES: list[Any] = ["text", {"a": [1.5, None]}, float("nan"), object(), b"\xff", "x\ud800", "x" * 200_000, 10**30]


def recorded(value: Any) -> FakeTransport:
    """Returns what a recorder sends if each place of a session holds this value."""
    transport = FakeTransport()
    recorder = Recorder(
        "",
        Dimensions(app_name="desk", labels={"team": "a"}),
        traces=ReasoningTraces("travel"),
        connect=lambda: transport,
    )
    with recorder.session() as session:
        with recorder.invocation(value) as turn:
            with recorder.tool("find", {"value": value}) as call:
                call.result = value
            with recorder.tool("find", value) as call:
                call.error = "not found"
            with recorder.model_call("gemini-2.5-flash") as model:
                model.input_tokens = 3
            turn.said(value)
            turn.retrieved([value, {"content": value, "doc_uri": "https://a/b"}])
            turn.answer = value
        session.end()
    assert recorder.close(10)
    return transport


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__} {str(value)[:8]!r}")
def test_every_document_satisfies_its_schema(value: Any) -> None:
    transport = recorded(value)
    events = [EVENT.validate_json(raw) for topic, _, raw in transport.records if topic == TOPICS.invocations]
    traces = [ReasoningTrace.model_validate_json(raw) for topic, _, raw in transport.records if topic == TOPICS.traces]
    assert len(traces) == 1
    assert {event.type for event in events} == TYPES.keys() - {"invocation.recorded"}


def test_the_events_are_read_as_one_invocation() -> None:
    transport = recorded("Tuesday")
    events = [EVENT.validate_json(raw) for topic, _, raw in transport.records if topic == TOPICS.invocations]
    session = Session.model_validate(
        {
            "session_id": events[0].session_id,
            "segment": 0,
            "revision": 0,
            "closed_because": "session.ended",
            "first_record_at": events[0].occurred_at,
            "last_record_at": events[-1].occurred_at,
            "events": events,
            "traces": [],
        }
    )
    (turn,) = turns_of(session)
    invocation = turn.invocation
    assert invocation.user_content is not None
    assert invocation.final_response is not None
    assert (invocation.user_content.text, invocation.final_response.text) == ("Tuesday", "Tuesday")
    assert [(use.name, use.args) for use in invocation.tool_uses] == [
        ("find", {"value": "Tuesday"}),
        ("find", {"input": "Tuesday"}),
    ]
    assert invocation.model_calls == 1
    assert invocation.latency_seconds is not None
    assert invocation.unread is None


@pytest.mark.parametrize("part", ["question", "arguments", "answer", "result"])
def test_what_is_missing_begins_as_scorers_look_for_it(part: str) -> None:
    transport = recorded(float("nan"))
    said = [each for event in transport.documents() for each in event.get("missing", ())]
    assert any(each.startswith(f"the {part} ") for each in said)


@pytest.mark.parametrize(
    "reason", ["MAX_TOKENS", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "STOP", None]
)
@pytest.mark.parametrize("answer", ["It is", ""])
def test_the_client_says_of_a_cut_answer_what_the_readers_of_files_say(answer: str, reason: str | None) -> None:
    sentence = finish_reasons_of_client.not_whole(answer, reason)

    assert ([sentence] if sentence else []) == not_whole(answer, reason or "")

"""Spans of real agents go through collect, assemble, score and gate, and the scores are those of what the agents did."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import Agents
from tests.support.collect import complete

from traceweir.scorers import read_plan
from traceweir.streams.testing import START_S, Flow

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "words", "environment"),
    [
        ("adk", "", {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT"}),
        ("langchain", "openinference graph", {}),
    ],
)
async def test_the_scores_of_an_agent_are_those_of_what_it_did(
    name: str, words: str, environment: dict[str, str], agents: Agents
) -> None:
    recording = agents.run(name, *words.split(), environment=environment)
    flow = Flow(plan=read_plan(None), stages=("collect", "assemble", "score", "gate"), partitions=2)
    flow.pass_time(max(span.end_ns for span in recording.spans) / 1e9 - START_S + 1)
    for number, request in enumerate(recording.requests):
        flow.send(flow.topics.otlp_spans, request, partition=number % 2)
    for number, logs in enumerate(recording.logs):
        flow.send(flow.topics.otlp_logs, logs, partition=number % 2)
    await complete(flow)
    await flow.finish()

    assert flow.dead_letters() == []
    turns = [turn | {"session": s["session_id"]} for s in recording.truth["sessions"] for turn in s["turns"]]
    expected = {}
    for turn in turns:
        told = [call for call in turn["llm_calls"] if call["input_tokens"] is not None]
        expected[turn["session"], turn["trace_ids"][-1]] = {
            "tool_call_count_v1": len(turn["tool_calls"]),
            "inference_call_count_v1": len(turn["llm_calls"]),
            "token_usage_v1": sum(call["input_tokens"] + call["output_tokens"] for call in told),
        }
    found: dict[tuple[str, str], dict[str, float]] = {key: {} for key in expected}
    for score in flow.results():
        if score["level"] == "invocation" and score["metric"].endswith("_v1") and score["value"] is not None:
            found[score["session_id"], score["invocation_id"]][score["metric"]] = score["value"]
    assert found == expected
    answers = {turn["trace_ids"][-1]: turn["answer"] for turn in turns}
    for session in flow.sessions():
        for event in session["events"]:
            if event["type"] == "invocation.completed":
                parts = (event.get("final_response") or {"parts": [{"text": None}]})["parts"]
                assert parts[0]["text"] == answers.pop(event["invocation_id"])
    assert answers == {}

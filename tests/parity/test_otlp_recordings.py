"""What is read from recorded spans equals what the recorded agents did; each difference is listed here, with its cause."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

import pytest
from tests.support.otlp_recordings import FIELDS, compare, load, names, traces_of
from tests.support.scoring import make_session

from traceweir.schemas.conversation import conversation_of
from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Attributes

DIFFERENCES: dict[str, dict[str, tuple[int, int, int]]] = {
    # Content is off, and every missing part is said so. The one answer that is right is the absent one of a failed turn.
    "adk-2.13-default-nocontent": {
        "questions": (0, 14, 14),
        "answers": (1, 13, 14),
        "args": (0, 24, 24),
        "results": (0, 21, 21),
        "errors": (1, 1, 2),
    },
    # A bare client makes a trace of each model call, so that a turn is several traces without a common id, which is said;
    # a tool that ended the agent has no result, which is said, and a sub-agent's calls are not in the history of the outer agent. That no
    # span tells of an agent is said.
    "openai-responses-openinference": {
        "sessions": (2, 12, 14),
        "turns": (2, 12, 14),
        "tools": (22, 2, 24),
        "order": (13, 1, 14),
        "args": (22, 0, 22),
        "results": (20, 0, 20),
        "errors": (1, 1, 2),
        "agents": (0, 14, 14),
    },
    # traceloop's instrumentation leaves out that Anthropic's API was told of a failure of the tool: its text is the
    # result, and that nobody can tell whether the tool failed is said.
    "anthropic-traceloop-stream": {"errors": (0, 1, 1)},
    # A module of DSPy has no name of an agent, and its spans have no tokens.
    "dspy-openinference": {"agents": (0, 5, 5), "input tokens": (0, 5, 5), "output tokens": (0, 5, 5)},
    "dspy-react-v2": {"input tokens": (0, 3, 3), "output tokens": (0, 3, 3)},
    # AutoGen's own spans have no content and no model calls. The one error that a tool raised is there.
    "autogen-own": {
        "questions": (0, 3, 3),
        "answers": (0, 3, 3),
        "args": (0, 5, 5),
        "results": (0, 4, 4),
        "input tokens": (0, 3, 3),
        "output tokens": (0, 3, 3),
        "models": (0, 3, 3),
    },
    # An agent of Haystack has no name outside of a pipeline, and what is missing says so.
    "haystack-agent": {"agents": (0, 10, 10)},
    "haystack-2.29-agent": {"agents": (0, 10, 10)},
    # A tool that is a node of a workflow has a span with its name alone, as any function has.
    "adk-2.13-workflow": {"tools": (1, 1, 2), "order": (0, 1, 1)},
    # Mastra writes an answer that is JSON without spaces, which is said.
    "mastra-1.71": {"answers": (10, 1, 11)},
    # The agents have no name: LiveKit calls each of them `default_agent`, and what is missing says so.
    "livekit-own": {"agents": (0, 4, 4)},
    # Nor has a pipeline of Pipecat.
    "pipecat-conversation": {"agents": (0, 3, 3)},
    # Google's SDK before 2.0 plays the rounds with tools on one span, which has the tokens of the last call alone.
    "google-genai-1-openinference": {"input tokens": (2, 4, 6), "output tokens": (2, 4, 6)},
    # The loops of these agents have no name of an agent in their spans.
    "agentops-chat": {"agents": (0, 5, 5)},
    "openlit-chat": {"agents": (0, 5, 5)},
    "atomic-agents-oi-both": {"agents": (0, 2, 2)},
    # Instructor's span has no tokens; those are on the span of the client, which is not instrumented here.
    "atomic-agents-oi": {"agents": (0, 2, 2), "input tokens": (0, 2, 2), "output tokens": (0, 2, 2)},
    # OpenInference writes the agent's span alone, with sums of the tokens: of the input rightly, of the output wrongly.
    "claude-agent-sdk-oi": {"agents": (0, 5, 5), "input tokens": (0, 5, 5), "output tokens": (0, 5, 5)},
    # The answer is the schema that the model had to fill in; the truth has one of its fields.
    "langchain-toolstrategy-oi": {"answers": (0, 0, 1)},
    # The provider's result has a field `page_age` that is null, which the instrumentation leaves out.
    "server-tools-anthropic-genai": {"agents": (0, 1, 1), "results": (0, 0, 1)},
}


@pytest.mark.parametrize("name", names())
def test_every_field_of_a_recording_is_read_or_said_to_be_missing(name: str) -> None:
    tally, misses = compare(*load(name))
    total = {field: numbers[2] for field, numbers in tally.items()}
    expected = {field: (total[field], 0, total[field]) for field in FIELDS} | DIFFERENCES.get(name, {})
    assert {field: tuple(numbers) for field, numbers in tally.items()} == expected, "\n".join(misses)
    assert total["questions"] > 0


TEXTS = (".message.content", "ai.response.text")
"""The ends of the keys of texts, which can be JSON that a person or a model wrote."""


def with_maps(attributes: Attributes) -> Attributes:
    """Returns attributes with objects and lists in place of JSON, as exporters that know maps write them."""
    return {key: value if key.endswith(TEXTS) else structure(value, levels=1) for key, value in attributes.items()}


@pytest.mark.parametrize("name", names())
def test_a_recording_is_read_alike_if_its_json_is_maps_and_lists(name: str) -> None:
    truth, spans = load(name)
    mapped = [
        replace(
            each,
            attributes=with_maps(each.attributes),
            events=[event._replace(attributes=with_maps(event.attributes)) for event in each.events],
        )
        for each in spans
    ]
    assert compare(truth, mapped) == compare(truth, spans)


def test_the_traces_of_model_calls_are_the_turns_of_their_session() -> None:
    truth, spans = load("openai-responses-openinference")
    session_of = {
        trace_id: session["session_id"]
        for session in truth["sessions"]
        for turn in session["turns"]
        for trace_id in turn["trace_ids"]
    }
    named = [replace(each, attributes={**each.attributes, "session.id": session_of[each.trace_id]}) for each in spans]
    events: dict[str, list[InvocationEvent]] = defaultdict(list)
    for trace in traces_of(named).values():
        for event in read_trace(trace).events:
            events[event["session_id"]].append(EVENT.validate_json(json.dumps(event)))
    read = {
        session_id: [
            (each.question, each.answer or None, [tool.name for tool in each.tools])
            for each in conversation_of(
                make_session(session_id, events=sorted(found, key=lambda each: each.occurred_at))
            )
        ]
        for session_id, found in events.items()
    }
    # An agent that works for another one has a turn of its own, because no span tells of the other one.
    (handed_over,) = (each["session_id"] for each in truth["sessions"] if each["key"] == "a-refund-handoff")
    inner = read[handed_over].pop(1)
    assert inner[2] == ["lookup_order", "issue_refund"]
    read[handed_over][0][2].extend(inner[2])
    assert read == {
        session["session_id"]: [
            (turn["question"], turn["answer"], [call["name"] for call in turn["tool_calls"]])
            for turn in session["turns"]
        ]
        for session in truth["sessions"]
    }

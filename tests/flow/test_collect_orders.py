"""Collect: interleaving, cuts, repetitions, order and crashes do not change sessions and scores."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.collect import TOPICS, agent_trace, complete, offline, request, span
from tests.support.examples import examples
from tests.support.paths import ROOT

from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import StageName
from traceweir.streams.intake.otlp.files import requests_of
from traceweir.streams.intake.otlp.slices import span_slices
from traceweir.streams.testing import Flow

STAGES: tuple[StageName, ...] = ("collect", "assemble", "score", "gate")
PARTITIONS = 2


def example() -> list[bytes]:
    with (ROOT / "examples/otlp/spans.jsonl").open("rb") as stream:
        return [found.data for each in requests_of(stream) for found in span_slices(each).slices]


# Sessions of several traces depend on the order in which the traces come, so each trace has a session of its own here.
GENERATED = [
    *agent_trace(1, session="s1", tools=1),
    *agent_trace(2, session=None, tools=0),
    span(3, 1, 9, session="s3", more={"gen_ai.operation.name": "chat", "output.value": "no root"}),
]
SPANS = [*example(), *(request(each) for each in GENERATED)]

Step = tuple[tuple[int, ...], int, str]
"""The places of the spans of a request, its partition, and what happens next."""


@st.composite
def stories(draw: st.DrawFn) -> list[Step]:
    order = draw(st.permutations(range(len(SPANS))))
    repeated = draw(st.lists(st.sampled_from(order), max_size=4))
    rest, story = [*order, *repeated], []
    while rest:
        size = draw(st.integers(1, 4))
        then = draw(st.sampled_from(("take", "checkpoint", "crash", "nothing")))
        story.append((tuple(rest[:size]), draw(st.integers(0, PARTITIONS - 1)), then))
        rest = rest[size:]
    return story


async def play(story: list[Step]) -> tuple[list[Any], list[Any]]:
    """Returns the sessions and the scores after a story."""
    flow = new_flow(STAGES)
    for places, partition, then in story:
        flow.send(TOPICS.otlp_spans, b"".join(SPANS[place] for place in places), partition=partition)
        if then != "nothing":
            await flow.take(TOPICS.otlp_spans, partition=partition)
        if then == "checkpoint":
            flow.checkpoint(partition)
        elif then == "crash":
            flow.crash(partition)
    await complete(flow)
    for partition in range(PARTITIONS):
        flow.crash(partition)
    return await results(flow)


async def read_at_once() -> tuple[list[Any], list[Any]]:
    """Returns the sessions and the scores of the documents that all spans give offline."""
    flow = new_flow(STAGES[1:])
    for document in offline(SPANS):
        session = document.get("session_id") or document["metadata"]["session_id"]
        topic = TOPICS.invocations if "session_id" in document else TOPICS.traces
        key = session.encode()
        flow.send(topic, document, key, partition=partition_of(key, PARTITIONS))
    return await results(flow)


def new_flow(stages: tuple[StageName, ...]) -> Flow:
    """Returns a flow after the times of all spans."""
    flow = Flow(stages=stages, partitions=PARTITIONS)
    flow.pass_time(86_400)
    return flow


async def results(flow: Flow) -> tuple[list[Any], list[Any]]:
    await flow.finish()
    assert flow.dead_letters() == []
    sessions = sorted(
        (
            each["session_id"],
            each["revision"],
            sorted(event["event_id"] for event in each["events"]),
            sorted(orjson.dumps(trace, option=orjson.OPT_SORT_KEYS) for trace in each["traces"]),
        )
        for each in flow.sessions()
    )
    scores = sorted(
        orjson.dumps(
            each | {"evaluated_at": None, "occurred_at": None, "segment_opened_at": None}, option=orjson.OPT_SORT_KEYS
        )
        for each in flow.results()
    )
    return sessions, scores


@pytest.mark.slow
@settings(
    max_examples=examples(10),
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(story=stories())
async def test_no_order_cut_repetition_or_crash_changes_sessions_and_scores(story: list[Step]) -> None:
    assert await play(story) == await read_at_once()


async def test_one_request_with_all_spans_gives_the_sessions_and_scores_that_they_give_offline() -> None:
    whole = await play([(tuple(range(len(SPANS))), 0, "checkpoint")])

    assert whole == await read_at_once()
    names = {each[0] for each in whole[0]}
    assert {"s1", "s3"} < names
    assert len(names) >= 4
    assert {orjson.loads(each)["session_id"] for each in whole[1]} == names

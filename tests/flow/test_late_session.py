"""Late spans name the session of a turn that was published under its trace id: the turn moves, and counts once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.collect import TOPICS, agent_trace, complete, offline, request, span, trace_id
from tests.support.late_spans import turns

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import StageName
from traceweir.streams.pipeline.collect.span_rows import TraceHeader
from traceweir.streams.testing import START_S, Flow

pytestmark = pytest.mark.slow

STAGES: tuple[StageName, ...] = ("collect", "assemble", "score", "gate")
OWN = trace_id(1).hex()
"""The session of the turn while no span names one."""
CONFIG: dict[str, Any] = {
    "criteria": {"inference_call_count_v1": {}, "tool_call_count_v1": {}},
    "gate": {"threshold": 0},
}
MODEL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "output.value": "yes"}
EARLY = [span(1, 1, 9, more=MODEL), span(1, 2, 9), span(1, 3, 9, more=MODEL)]
ROOT = span(1, 9, session="s")
IDLE_S = 60


def whole(*, partitions: int = 2, **options: Any) -> Flow:
    """Returns a flow of all stages that publishes each trace whose value it can measure."""
    settings: dict[str, Any] = {"otlp_visibility": "network", "idle_gap_s": 20.0} | options
    return Flow(read_plan(CONFIG), stages=STAGES, partitions=partitions, embedder=HashingEmbedder(), **settings)


async def pass_in_steps(flow: Flow, seconds: float) -> None:
    """Lets the time pass in steps of a second, as in a worker, so that each publication has a time of its own."""
    for _ in range(round(seconds)):
        flow.pass_time(1)
        await flow.settle()


async def publish_under_the_trace_id(flow: Flow) -> None:
    flow.send(TOPICS.otlp_spans, request(*EARLY))
    await flow.settle()
    await pass_in_steps(flow, IDLE_S + 2)
    assert {each["session_id"] for each in current_events(flow)} == {OWN}


async def send_the_root(flow: Flow) -> None:
    flow.send(TOPICS.otlp_spans, request(ROOT))
    await flow.settle()
    await pass_in_steps(flow, 100)


def events(flow: Flow) -> list[dict[str, Any]]:
    return [message.json for message in flow.read(TOPICS.invocations)]


def current_events(flow: Flow) -> list[dict[str, Any]]:
    replaced = {(each["session_id"], name) for each in events(flow) for name in each.get("replaces", ())}
    return [each for each in events(flow) if (each["session_id"], each["event_id"]) not in replaced]


def last(flow: Flow) -> dict[str, dict[str, Any]]:
    """Returns the last revision of each session; none of them has a second segment."""
    found: dict[str, dict[str, Any]] = {}
    for each in flow.sessions():
        assert each["segment"] == 0
        if each["revision"] >= found.get(each["session_id"], each)["revision"]:
            found[each["session_id"]] = each
    return found


def valid(flow: Flow) -> list[dict[str, Any]]:
    """Returns the score of each result id that counts: that with the highest revision."""
    found: dict[str, dict[str, Any]] = {}
    for each in flow.results():
        if each["revision"] >= found.get(each["result_id"], each)["revision"]:
            found[each["result_id"]] = each
    return list(found.values())


def told(flow: Flow, session: str) -> dict[tuple[str, str], tuple[str, Any]]:
    """Returns status and value of each valid score of a session, by metric and level."""
    return {
        (each["metric"], each["level"]): (each["status"], each["value"])
        for each in valid(flow)
        if each["session_id"] == session
    }


def network(flow: Flow) -> set[str]:
    """Returns the ids of the traces that the topic `network` shows in the end."""
    shown: dict[bytes | None, bytes | None] = {message.key: message.value for message in flow.read(TOPICS.network)}
    return {key.decode() for key, value in shown.items() if key and value is not None}


@pytest.fixture(scope="module")
def in_time() -> Flow:
    """Returns a flow in which the same spans came in time, to be read only."""
    flow = whole()

    async def play() -> None:
        flow.send(TOPICS.otlp_spans, request(*EARLY, ROOT))
        await flow.settle()
        await pass_in_steps(flow, 160)

    asyncio.run(play())
    return flow


def check_nothing_counts(flow: Flow) -> None:
    """Checks that no score of the session of the trace id has a value, and the gate's decision is a rejection."""
    left = [each for each in valid(flow) if each["session_id"] == OWN]
    assert {each["status"] for each in left if each["metric"] != "gate"} == {"NOT_EVALUATED"}
    assert [each["details"]["reasons"] for each in left if each["metric"] == "gate"] == [["withdrawn"]]
    assert {each["revision"] for each in left} == {1}


def check_moved(flow: Flow, undisturbed: Flow) -> None:
    assert flow.dead_letters() == []
    assert turns(events(flow)) == turns(events(undisturbed))
    assert last(flow).keys() == {OWN, "s"}
    before, after = told(flow, OWN), told(flow, "s")
    assert after == told(undisturbed, "s")
    assert ("gate", "trace") in after
    assert before.keys() == after.keys()
    check_nothing_counts(flow)
    assert len(network(flow)) == len(network(undisturbed)) == 1
    ids = [(each["result_id"], each["revision"], each["attempt"]) for each in flow.results()]
    assert len(set(ids)) == len(ids)
    names = [each["event_id"] for each in events(flow)]
    assert len(set(names)) == len(names)


async def test_a_turn_moves_from_its_trace_id_to_the_session_that_late_spans_name(in_time: Flow) -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    assert ("inference_call_count_v1", "invocation") in told(flow, OWN)
    assert len(network(flow)) == 1

    await send_the_root(flow)

    check_moved(flow, in_time)
    assert flow.counters("collect")["moved"] == 1
    homes = {message.key: message.partition for message in flow.read(TOPICS.invocations)}
    assert homes == {key: partition_of(key, flow.partitions) for key in (OWN.encode(), b"s")}
    assert len(set(homes.values())) == 2


async def test_a_session_that_loses_its_only_turn_has_no_turn_and_no_trace_that_counts() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    await send_the_root(flow)

    left = last(flow)[OWN]
    assert left["revision"] == 1
    assert [each["metadata"].get("withdrawn") for each in left["traces"]] == [True]
    assert [each["type"] for each in current_events(flow) if each["session_id"] == OWN] == ["session.ended"]
    (decision,) = [each for each in flow.results("gate") if (each["session_id"], each["revision"]) == (OWN, 1)]
    assert decision["details"]["reasons"] == ["withdrawn"]


@pytest.mark.parametrize("step", range(5))
async def test_a_restart_at_any_point_changes_nothing(step: int, in_time: Flow) -> None:
    flow = whole()

    def restart(now: int) -> None:
        if now == step:
            for partition in range(flow.partitions):
                flow.crash(partition)

    flow.send(TOPICS.otlp_spans, request(*EARLY))
    await flow.settle()
    restart(0)
    await pass_in_steps(flow, IDLE_S + 10)
    restart(1)
    flow.send(TOPICS.otlp_spans, request(ROOT))
    for partition in range(flow.partitions):
        await flow.take(TOPICS.otlp_spans, partition=partition)
    restart(2)
    await flow.settle()
    restart(3)
    flow.pass_time(11)
    if step == 4:  # the checkpoint of the move is lost
        assert any(flow.cut(partition).outputs for partition in range(flow.partitions))
    restart(4)
    await pass_in_steps(flow, 160)

    check_moved(flow, in_time)


async def test_the_default_criteria_count_no_more_under_the_trace_id() -> None:
    flow = Flow(stages=STAGES, partitions=2, idle_gap_s=20.0)
    await publish_under_the_trace_id(flow)
    assert {status for status, _ in told(flow, OWN).values()} != {"NOT_EVALUATED"}
    await send_the_root(flow)

    check_nothing_counts(flow)
    assert {status for status, _ in told(flow, "s").values()} != {"NOT_EVALUATED"}


async def test_a_config_of_one_app_takes_its_scores_back_too() -> None:
    flow = whole()
    flow.push_config({"criteria": {"tool_call_count_v1": {}}}, app="shop")
    await publish_under_the_trace_id(flow)
    await send_the_root(flow)

    assert told(flow, OWN).keys() == {
        ("tool_call_count_v1", "invocation"),
        ("tool_call_count_v1", "session"),
        ("trace_value", "trace"),
        ("gate", "trace"),
    }
    check_nothing_counts(flow)


async def test_repeated_spans_after_the_move_change_nothing() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    await send_the_root(flow)
    before = [*events(flow), *flow.results()]

    flow.send(TOPICS.otlp_spans, request(*EARLY, ROOT))
    await pass_in_steps(flow, 60)

    assert [*events(flow), *flow.results()] == before


async def test_a_turn_moves_once_to_the_session_that_was_named_first() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    flow.send(TOPICS.otlp_spans, request(span(1, 4, 9, session="s")))
    await pass_in_steps(flow, 30)
    flow.send(TOPICS.otlp_spans, request(span(1, 9, session="other")))
    await pass_in_steps(flow, 200)

    assert turns(events(flow)).keys() == {"s"}
    assert last(flow).keys() == {OWN, "s"}
    (turn,) = turns(events(flow))["s"]
    whole_turn = next(
        iter(
            turns(
                each for each in offline([request(*EARLY, span(1, 4, 9, session="s"), ROOT)]) if "event_id" in each
            ).values()
        )
    )
    assert [turn.invocation] == [each.invocation for each in whole_turn]
    assert len(network(flow)) == 1


async def test_late_spans_revise_the_turn_in_its_new_session() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    flow.send(TOPICS.otlp_spans, request(span(1, 4, 9, session="s")))
    await pass_in_steps(flow, 30)
    flow.send(TOPICS.otlp_spans, request(ROOT))
    await pass_in_steps(flow, 200)

    (document,) = {
        (each.json["id"], each.json["metadata"]["session_id"])
        for each in flow.read(TOPICS.traces)
        if each.json["metadata"]["session_id"] == "s"
    }
    assert document[0].endswith("~2")
    assert len(last(flow)["s"]["traces"]) == 1
    assert told(flow, "s")["tool_call_count_v1", "invocation"] == ("PASSED", 2)


async def test_a_turn_joins_the_other_turns_of_its_session() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    flow.send(TOPICS.otlp_spans, request(*agent_trace(2, session="s")))
    await flow.settle()
    await send_the_root(flow)

    assert len(turns(events(flow))["s"]) == 2
    assert len([each for each in last(flow)["s"]["traces"] if not each["metadata"].get("withdrawn")]) == 2


async def test_after_an_outage_longer_than_the_grace_a_turn_still_moves() -> None:
    flow = whole()
    flow.send(TOPICS.otlp_spans, request(*EARLY))
    flow.now += 3 * flow.settings.grace_s  # no worker meanwhile
    await pass_in_steps(flow, 120)
    assert {each["session_id"] for each in current_events(flow)} == {OWN}
    assert len(last(flow)) == 1
    flow.send(TOPICS.otlp_spans, request(ROOT))
    await pass_in_steps(flow, 160)

    assert turns(events(flow)).keys() == {"s"}
    assert last(flow).keys() == {OWN, "s"}
    assert told(flow, OWN)["inference_call_count_v1", "invocation"] == ("NOT_EVALUATED", None)


async def test_a_turn_stays_under_its_trace_id_when_its_session_cannot_be_opened_again_in_time() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    await pass_in_steps(flow, 0.95 * flow.settings.grace_s)
    await send_the_root(flow)

    assert turns(events(flow)).keys() == {OWN}
    assert flow.counters("collect").get("moved", 0) == 0
    assert flow.counters("collect")["not_moved"] == 1
    assert len(network(flow)) == 1


@pytest.mark.parametrize(
    "limit", [{"segment_max_events": 9}, {"segment_max_bytes": 5_000}, {"segment_max_revisions": 0}]
)
async def test_a_turn_stays_under_its_trace_id_when_its_session_cannot_be_opened_again(limit: dict[str, int]) -> None:
    flow = whole(**limit)
    await publish_under_the_trace_id(flow)
    await send_the_root(flow)

    assert turns(events(flow)).keys() == {OWN}
    assert flow.counters("collect")["not_moved"] == 1


async def test_a_turn_counts_twice_if_assemble_has_forgotten_its_former_session_early() -> None:
    flow = whole(partitions=1, partition_max_closed_sessions=1)
    await publish_under_the_trace_id(flow)
    flow.send(TOPICS.otlp_spans, request(*agent_trace(2, session="other")))
    await pass_in_steps(flow, 50)
    assert flow.counters("assemble")["forgotten_early"] == 1
    await send_the_root(flow)

    for session in (OWN, "s"):
        assert told(flow, session)["tool_call_count_v1", "invocation"] == ("PASSED", 1)


async def test_a_trace_that_a_former_version_has_published_stays_where_it_is() -> None:
    flow = Flow(stages=("collect",))
    flow.send(TOPICS.otlp_spans, request(*EARLY))
    await complete(flow)
    ((key, row),) = flow.rows(b"collect/t").items()
    flow.table.write(0, [(key, TraceHeader.unpack(row)._replace(published_at=0).pack())])
    flow.crash()
    flow.send(TOPICS.otlp_spans, request(ROOT))
    await complete(flow)

    assert turns(events(flow)).keys() == {OWN}
    assert flow.now > START_S


async def test_a_turn_stays_under_its_trace_id_when_its_session_cannot_grow_on_its_topic() -> None:
    flow = whole()
    flow.limits.learn({TOPICS.sessions: 8_000})
    for partition in range(flow.partitions):
        flow.crash(partition)
    await publish_under_the_trace_id(flow)
    await send_the_root(flow)

    assert turns(events(flow)).keys() == {OWN}
    assert flow.counters("collect")["not_moved"] == 1


async def test_a_turn_stays_under_its_trace_id_when_a_document_would_not_fit_in_its_new_session() -> None:
    flow = whole()
    await publish_under_the_trace_id(flow)
    largest = max(len(message.value or b"") for message in flow.read(TOPICS.invocations))
    # Without the root, a sentence says that it is missing, so that the documents with it are shorter.
    flow.limits.learn({TOPICS.invocations: largest // 2})
    for partition in range(flow.partitions):
        flow.crash(partition)
    await send_the_root(flow)

    assert turns(events(flow)).keys() == {OWN}
    assert flow.counters("collect")["not_moved"] == 1

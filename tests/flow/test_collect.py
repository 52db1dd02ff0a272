"""Collect: spans of a trace become the events and the reasoning trace that the same spans give offline."""

from __future__ import annotations

import struct

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from tests.support.collect import (
    TOPICS,
    advance_to,
    agent_trace,
    collect_only,
    complete,
    log_request,
    offline,
    published,
    request,
    span,
    trace_id,
)
from tests.support.late_spans import current, turns
from tests.support.paths import ROOT

from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.intake.otlp.files import requests_of
from traceweir.streams.pipeline.collect.span_rows import TraceHeader
from traceweir.streams.testing import START_S, Flow

GRACE_S, IDLE_S = 5, 60
ASKED = (
    '[{"role": "assistant", "parts": [{"type": "tool_call", "name": "tool_3", "arguments": {"n": 1}}, '
    '{"type": "tool_call", "name": "tool_2", "arguments": {"n": 1}}]}]'
)


def example(name: str) -> list[bytes]:
    with (ROOT / "examples/otlp" / name).open("rb") as stream:
        return list(requests_of(stream))


async def test_a_trace_is_published_when_its_root_has_come_and_the_grace_is_over() -> None:
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1)), at=0)
    await advance_to(flow, GRACE_S)
    assert published(flow) == []

    await advance_to(flow, GRACE_S + 0.1)

    assert published(flow) == offline([request(*agent_trace(1))])
    assert flow.dead_letters() == []


async def test_a_trace_without_its_root_is_published_when_it_is_idle() -> None:
    flow = collect_only()
    tool, model = span(1, 1, 0), span(1, 2, 0, more={"gen_ai.operation.name": "chat", "output.value": "yes"})
    flow.send(TOPICS.otlp_spans, request(tool), at=0)
    await advance_to(flow, IDLE_S - 1)
    flow.send(TOPICS.otlp_spans, request(model))
    await advance_to(flow, IDLE_S + 10)
    assert published(flow) == []

    await advance_to(flow, 2 * IDLE_S)

    assert published(flow) == offline([request(tool, model)]) != []


async def test_spans_of_traceweir_itself_are_counted_once() -> None:
    flow = collect_only()
    own = TracesData.FromString(request(*agent_trace(1)))
    own.resource_spans[0].scope_spans[0].scope.name = "traceweir"
    flow.send(TOPICS.otlp_spans, own.SerializeToString(), at=0)
    await complete(flow)
    flow.send(TOPICS.otlp_spans, request(span(1, 9, 0)))
    await complete(flow)

    counters = flow.counters("collect")
    assert (counters["published"], counters["own_spans"]) == (2, 3)


@pytest.mark.parametrize("name", ["spans.jsonl", "spans.bin"])
async def test_the_example_gives_the_documents_that_it_gives_offline(name: str) -> None:
    flow = collect_only()
    for each in example(name):
        flow.send(TOPICS.otlp_spans, each, at=0)
    await advance_to(flow, 2 * IDLE_S)

    assert published(flow) == offline(example(name)) != []


async def test_documents_go_to_the_home_of_their_session_with_the_time_when_the_trace_was_due() -> None:
    flow = collect_only(partitions=4)
    for number in range(8):
        flow.send(TOPICS.otlp_spans, request(*agent_trace(number, session=f"s{number}")), partition=number % 4, at=1)
    await advance_to(flow, 20)

    written = [*flow.read(TOPICS.invocations), *flow.read(TOPICS.traces)]
    assert {message.key for message in written} == {f"s{number}".encode() for number in range(8)}
    assert all(message.partition == partition_of(message.key or b"", 4) for message in written)
    # A forwarded span keeps the timestamp of its record.
    assert {message.timestamp for message in written} == {round((START_S + 1 + GRACE_S) * 1000)}


async def test_spans_of_one_trace_on_four_partitions_become_one_trace() -> None:
    flow = collect_only(partitions=4)
    sent = [
        request(*parts)
        for parts in zip(*(agent_trace(number, session=f"s{number}") for number in range(6)), strict=True)
    ]
    for place, each in enumerate(sent):
        flow.send(TOPICS.otlp_spans, each, b"any key", partition=place, at=0)
    await advance_to(flow, 20)

    assert published(flow) == offline(sent)
    counters = flow.counters("collect")
    assert (counters["traces"], counters["spans"]) == (6, 18)
    homes = [partition_of(trace_id(number), 4) for number in range(6)]
    assert counters["forwarded"] == sum(place != home for home in homes for place in range(3))
    assert len(flow.read(TOPICS.spans)) == sum(len({*homes} - {place}) for place in range(3))


async def test_a_forwarded_record_is_limited_in_size() -> None:
    flow = collect_only(partitions=4)
    home = partition_of(trace_id(1), 4)
    large = [span(1, each, 0, more={"gen_ai.tool.call.result": "x" * 400_000}) for each in range(1, 6)]
    flow.send(TOPICS.otlp_spans, request(*large, span(1, 0)), partition=(home + 1) % 4)
    await advance_to(flow, 20)

    assert len(flow.read(TOPICS.spans)) == 3  # the flow fails the test if a record is too large
    assert flow.counters("collect")["spans"] == 6


async def test_repeats_of_spans_change_nothing_before_and_after_the_publication() -> None:
    flow = collect_only()
    for _ in range(2):
        for each in agent_trace(1):
            flow.send(TOPICS.otlp_spans, request(each, each), at=0)
        await complete(flow)
        flow.crash()
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1))])
    assert flow.counters("collect")["duplicate"] == 9


async def test_late_spans_add_their_events_to_the_session_of_the_first_publication() -> None:
    flow = collect_only()
    first = span(1, 1, 5, session="first", more={"gen_ai.operation.name": "chat", "output.value": "yes"})
    late, root = span(1, 2, 5), span(1, 5, session="other")
    flow.send(TOPICS.otlp_spans, request(first), at=0)
    await advance_to(flow, IDLE_S + 1)
    before = published(flow)
    flow.crash()
    flow.send(TOPICS.otlp_spans, request(late, root))
    await complete(flow)

    events = [message.json for message in flow.read(TOPICS.invocations)]
    new = [each for each in events if each not in before]
    assert {each["session_id"] for each in events} == {"first"}
    assert len({each["event_id"] for each in events}) == len(events)
    assert [each["name"] for each in new if each["type"] == "tool.called"] == ["tool_2"]
    assert before != []


async def test_a_late_run_with_the_id_of_another_is_a_call_of_its_own_after_a_restart() -> None:
    flow = collect_only()
    one_id = {"gen_ai.tool.call.id": "call_0"}
    late, early, root = span(1, 1, 5, more=one_id), span(1, 2, 5, more=one_id), span(1, 5, session="s")
    flow.send(TOPICS.otlp_spans, request(early, root), at=0)
    await complete(flow)
    flow.crash()
    flow.send(TOPICS.otlp_spans, request(late))
    await complete(flow)

    events = [message.json for message in flow.read(TOPICS.invocations)]
    assert len({each["event_id"] for each in events}) == len(events)
    for kind in ("tool.called", "tool.returned"):
        assert {each["name"]: each["call_id"] for each in current(events) if each["type"] == kind} == {
            "tool_1": "call_0",
            "tool_2": f"call_0#{1_003:016x}",
        }


@pytest.mark.parametrize(("number", "count"), [(0, 4), (1, 2), (2, 2), (3, 7)])
async def test_what_late_spans_change_is_replaced_also_after_a_restart(number: int, count: int) -> None:
    model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": ASKED}
    spans = [span(1, 1, 4, more=model), span(1, 2, 4), span(1, 3, 4), span(1, 4)]
    late = spans.pop(number)
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, request(*spans), at=0)
    await complete(flow)
    flow.crash()
    flow.send(TOPICS.otlp_spans, request(late))
    await complete(flow)

    events = [message.json for message in flow.read(TOPICS.invocations)]
    expected = offline([request(*spans, late)])
    traces = {each.json["id"]: each.json for each in flow.read(TOPICS.traces)}
    assert turns(events) == turns(each for each in expected if "event_id" in each)
    assert [{**each, "id": ""} for each in traces.values()] == [
        {**each, "id": ""} for each in expected if "event_id" not in each
    ]
    replaced = [name for each in events for name in each.get("replaces", ())]
    withdrawals = [each for each in events if each["event_id"] in each.get("replaces", ())]
    assert flow.counters("collect")["replaced"] == count == len(set(replaced)) - len(withdrawals)
    assert len(replaced) == len(set(replaced))


async def test_a_trace_that_a_former_version_has_published_gets_its_new_events_alone() -> None:
    flow = collect_only()
    first, late, root = span(1, 1, 5), span(1, 2, 5), span(1, 5, session="s")
    flow.send(TOPICS.otlp_spans, request(first, root), at=0)
    await complete(flow)
    before = [message.json for message in flow.read(TOPICS.invocations)]
    ((key, row),) = flow.rows(b"collect/t").items()
    header = TraceHeader.unpack(row)
    flow.table.write(0, [(key, struct.pack(">BqqqIQIIIB", 1, *header._replace(published_parts=0)[:8], header.is_open))])
    flow.crash()
    flow.send(TOPICS.otlp_spans, request(late))
    await complete(flow)

    new = [message.json for message in flow.read(TOPICS.invocations)][len(before) :]
    assert [(each["type"], each["name"]) for each in new] == [("tool.called", "tool_2"), ("tool.returned", "tool_2")]


async def test_a_trace_is_forgotten_after_the_grace_of_sessions() -> None:
    flow = collect_only(grace_s=100, guard_s=200)
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1)), at=0)
    await advance_to(flow, 20)
    assert len(flow.rows(b"collect/t")) == 1
    await advance_to(flow, 130)

    assert [key for key in flow.rows(b"collect/") if key[8:9] in b"tsp"] == []


async def test_the_rows_of_a_trace_are_only_appended() -> None:
    flow = collect_only()
    for each in agent_trace(1):
        flow.send(TOPICS.otlp_spans, request(each), at=0)
        await flow.settle()
    assert len(flow.rows(b"collect/s")) == 3
    flow.crash()
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1))])


@pytest.mark.parametrize("crash_after", range(6))
async def test_a_restart_after_any_checkpoint_changes_nothing(crash_after: int) -> None:
    flow = collect_only()
    sent = [request(each) for number in range(2) for each in agent_trace(number)]
    for place, each in enumerate(sent):
        flow.send(TOPICS.otlp_spans, each, at=0)
        await flow.take(TOPICS.otlp_spans)
        if place == crash_after:
            flow.crash()
        elif place % 2:
            flow.checkpoint()
    await complete(flow)

    assert published(flow) == offline(sent)


async def test_a_crash_during_a_publication_repeats_it_whole() -> None:
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1)), at=0)
    await flow.settle()
    flow.pass_time(20)
    assert flow.cut().outputs != []
    flow.crash()
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1))])


def genai_log(number: int, name: str, **more: object) -> LogRecord:
    message = KeyValueList(values=[KeyValue(key="content", value=AnyValue(string_value="which shoes?"))])
    fields = {"trace_id": trace_id(1), "event_name": name} | more
    return LogRecord(
        span_id=(1_000 + number + 1).to_bytes(8, "big"),
        time_unix_nano=round(START_S * 1e9),
        body=AnyValue(kvlist_value=message),
        **fields,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("partitions", [1, 4])
async def test_log_records_are_joined_to_their_spans(partitions: int) -> None:
    flow = collect_only(partitions=partitions)
    model = span(1, 1, 0, more={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.tool.name": ""})
    spans, logs = request(model, span(1, 0, more={"input.value": ""})), log_request(genai_log(1, "gen_ai.user.message"))
    home = partition_of(trace_id(1), partitions)
    flow.send(TOPICS.otlp_logs, logs, partition=(home + 1) % partitions, at=0)
    flow.send(TOPICS.otlp_spans, spans, partition=(home + 2) % partitions, at=0)
    await advance_to(flow, 20)

    assert published(flow) == offline([spans], [logs]) != offline([spans])
    assert flow.counters("collect")["logs"] == 1


async def test_other_log_records_are_dropped_at_once() -> None:
    flow = collect_only()
    by_attribute = genai_log(
        1, "", attributes=[KeyValue(key="event.name", value=AnyValue(string_value="gen_ai.choice"))]
    )
    mention = genai_log(1, "http", attributes=[KeyValue(key="gen_ai.system", value=AnyValue(string_value="x"))])
    no_trace = genai_log(1, "gen_ai.choice", trace_id=b"")
    flow.send(TOPICS.otlp_logs, log_request(by_attribute, mention, no_trace, genai_log(1, "db.query")))
    await flow.settle()

    counters = flow.counters("collect")
    assert (counters["logs"], counters["other_logs"]) == (1, 3)
    assert flow.dead_letters() == []


async def test_spans_of_no_agent_publish_nothing() -> None:
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, request(span(1, 0, more={"gen_ai.operation.name": "", "gen_ai.agent.name": ""})), at=0)
    web = span(2, 0)
    del web.attributes[:]
    flow.send(TOPICS.otlp_spans, request(web), at=0)
    await advance_to(flow, 20)

    assert [m.json for m in flow.read(TOPICS.invocations) if trace_id(2).hex() in m.json["event_id"]] == []
    assert flow.dead_letters() == []


async def test_the_visibility_of_traces_is_private_unless_configured() -> None:
    found = []
    for settings in ({}, {"otlp_visibility": "network"}):
        flow = collect_only(**settings)
        flow.send(TOPICS.otlp_spans, request(*agent_trace(1)), at=0)
        await advance_to(flow, 20)
        found += [message.json["metadata"]["visibility"] for message in flow.read(TOPICS.traces)]
    assert found == ["private", "network"]


async def test_traces_of_a_backlog_are_scored_and_not_rejected_as_late() -> None:
    flow = Flow(stages=("collect", "assemble", "score", "gate"), guard_s=3_600)
    flow.now += 10 * 3_600
    for number in range(3):
        flow.send(TOPICS.otlp_spans, request(*agent_trace(number, session=f"s{number}")), at=number)
    await flow.settle()
    flow.pass_time(120)
    await flow.finish()
    await flow.finish()

    assert flow.dead_letters() == []
    assert {each["session_id"] for each in flow.sessions()} == {"s0", "s1", "s2"}
    assert flow.results("trace_value") != []

"""Assemble: the records of a session are joined once and in order."""

from __future__ import annotations

from itertools import permutations

import orjson
import pytest
from tests.support.flow import TOPICS, assemble_only

from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.assemble.session_rows import GUARDED
from traceweir.streams.testing import event, trace


def away_from(session_id: str, partitions: int = 4) -> int:
    return (partition_of(session_id.encode(), partitions) + 1) % partitions


async def test_a_stray_is_forwarded_once_unchanged_and_joined_on_its_home_partition() -> None:
    flow = assemble_only(partitions=4)
    home, elsewhere = partition_of(b"s", 4), away_from("s")
    value = b' {"type": "session.ended", "session_id": "s", "occurred_at": "2026-01-01T00:00:00Z", "unknown": 1e2} '
    headers = [("traceparent", b"00-ab-cd-01"), ("ce_id", b"\xff"), ("odd", b"")]

    flow.send(TOPICS.invocations, value, b"some key", partition=elsewhere, headers=headers, at=-7)
    await flow.finish()

    (stray,) = flow.read(TOPICS.strays)
    assert (stray.partition, stray.key, stray.value, stray.timestamp) == (home, b"s", value, 1_767_225_593_000)
    assert list(stray.headers) == [*headers, ("traceweir.origin", TOPICS.invocations.encode())]
    (session,) = flow.read(TOPICS.sessions)
    assert (session.partition, session.key, session.json["events"]) == (home, b"s", [orjson.loads(value)])
    assert flow.counters("assemble") == {"consumed": 2, "forwarded": 1, "joined": 1, "opened": 1, "closed": 1}


async def test_the_key_names_the_session_of_a_trace_without_session_id_on_every_partition() -> None:
    flow = assemble_only(partitions=4)
    for partition in range(4):
        flow.send(TOPICS.traces, trace(partition, None), b"s", partition=partition)

    await flow.finish()

    (session,) = flow.sessions()
    assert session["session_id"] == "s"
    assert [item["id"] for item in session["traces"]] == [f"kp:trace:{number}" for number in range(4)]
    assert len(flow.read(TOPICS.strays)) == 3


@pytest.mark.parametrize("key", [None, b""])
async def test_a_trace_without_session_id_and_key_has_its_own_session(key: bytes | None) -> None:
    flow = assemble_only(partitions=4)
    for partition in range(4):
        flow.send(TOPICS.traces, trace("one", None), key, partition=partition)

    await flow.finish()

    assert [session["session_id"] for session in flow.sessions()] == ["kp:trace:one"]
    assert flow.counters("assemble")["duplicate"] == 3


async def test_a_key_that_is_not_utf8_names_one_session() -> None:
    flow = assemble_only(partitions=4)
    for partition in range(4):
        flow.send(TOPICS.traces, trace(partition, None), b"\xff\x00", partition=partition)

    await flow.finish()

    assert [(s["session_id"], len(s["traces"])) for s in flow.sessions()] == [("ff00", 4)]


@pytest.mark.parametrize("key", [None, b"", b"another", b"\xff"])
async def test_the_session_id_of_an_event_has_precedence_over_the_key(key: bytes | None) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(session_id="s"), key)

    await flow.finish()

    assert [session["session_id"] for session in flow.sessions()] == ["s"]


@pytest.mark.parametrize("name", [b"traceweir.traces", b"\xff", b""])
async def test_a_producer_cannot_pass_an_event_off_as_a_stray_trace(name: bytes) -> None:
    flow = assemble_only(partitions=4)
    headers = [("traceweir.origin", name), ("traceweir.reason", b"mine")]

    flow.send(TOPICS.invocations, event(), partition=away_from("s"), headers=headers)
    flow.send(TOPICS.traces, trace(), partition=away_from("s"), headers=[("traceweir.origin", b"\xff"), *headers])
    await flow.finish()

    (session,) = flow.sessions()
    assert (len(session["events"]), len(session["traces"]), flow.dead_letters()) == (1, 1, [])


async def test_headers_without_a_value_are_forwarded_and_ignored() -> None:
    flow = assemble_only(partitions=4)
    headers = [("ce_id", None), ("traceweir.origin", None)]
    for at, partition in ((0, partition_of(b"s", 4)), (1, away_from("s"))):
        flow.send(TOPICS.invocations, event(at=at), partition=partition, headers=headers)  # type: ignore[arg-type]

    await flow.finish()

    (session,) = flow.sessions()
    assert len(session["events"]) == 2


async def test_events_with_the_same_event_id_are_duplicates() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="e", app_name="first"), headers=[("ce_id", b"1")])
    flow.send(TOPICS.invocations, event(event_id="e", app_name="second"), headers=[("ce_id", b"2")])
    flow.send(TOPICS.invocations, event(event_id="f", app_name="third"), headers=[("ce_id", b"1")])

    await flow.finish()

    (session,) = flow.sessions()
    assert [item["app_name"] for item in session["events"]] == ["first", "third"]
    assert flow.counters("assemble")["duplicate"] == 1


async def test_events_without_event_id_are_duplicates_if_their_ce_id_is_equal() -> None:
    flow = assemble_only()
    for app, ce_id in (("first", b"1"), ("second", b"1"), ("third", b"2")):
        flow.send(TOPICS.invocations, event(app_name=app), headers=[("ce_id", ce_id)])

    await flow.finish()

    (session,) = flow.sessions()
    assert [item["app_name"] for item in session["events"]] == ["first", "third"]


async def test_an_empty_ce_id_is_ignored() -> None:
    flow = assemble_only()
    for app in ("first", "second"):
        flow.send(TOPICS.invocations, event(app_name=app), headers=[("ce_id", b"")])

    await flow.finish()

    (session,) = flow.sessions()
    assert [item["app_name"] for item in session["events"]] == ["first", "second"]


async def test_records_without_any_id_are_duplicates_if_their_content_is_equal() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(args={"a": 1, "b": 2}))
    flow.send(TOPICS.invocations, orjson.dumps(event(args={"b": 2, "a": 1}), option=orjson.OPT_INDENT_2))
    flow.send(TOPICS.invocations, event(args={"a": 1, "b": 3}))
    flow.send(TOPICS.traces, trace())
    flow.send(TOPICS.traces, orjson.dumps(dict(reversed(trace().items()))))

    await flow.finish()

    (session,) = flow.sessions()
    assert (len(session["events"]), len(session["traces"])) == (2, 1)
    assert flow.counters("assemble")["duplicate"] == 2


async def test_events_are_sorted_by_occurred_at_and_by_arrival_if_equal() -> None:
    kinds = [("tool.called", 1.0), ("tool.returned", 1.000001), ("invocation.completed", 3), ("model.called", 3)]
    for order in permutations(range(4)):
        flow = assemble_only()
        for place in order:
            kind, at = kinds[place]
            flow.send(TOPICS.invocations, event(kind, at=at))

        await flow.finish()

        (session,) = flow.sessions()
        arrived = [kinds[place][0] for place in order if place >= 2]
        assert [item["type"] for item in session["events"]] == ["tool.called", "tool.returned", *arrived]


async def test_a_revised_trace_has_its_last_content_and_its_last_place() -> None:
    flow = assemble_only()
    for number, at, summary in ((1, 1, "first"), (2, 2, "only"), (1, 3, "second")):
        flow.send(TOPICS.traces, trace(number, at=at, outcome={"result_summary": summary}))
        flow.checkpoint()
        await flow.take(TOPICS.traces)

    await flow.finish()

    (session,) = flow.sessions()
    assert [item["outcome"]["result_summary"] for item in session["traces"]] == ["only", "second"]
    assert flow.counters("assemble")["joined"] == 3


@pytest.mark.parametrize(
    "name",
    [
        "\x00\n\x1b[31m",
        "🦆" * 256,
        "x" * 1024,
        "ca\x00\x00\x00\x00\x00\x00\x00\x00",
        "w",
        "#",
        "g",
        "checkpoint/offsets",
    ],
)
async def test_a_session_with_an_unusual_id_is_published_under_the_same_id(name: str) -> None:
    flow = assemble_only(partitions=3)
    big = "x" * 5_000  # Each event is a chunk of its own, which leaves memory.
    for partition in range(3):
        flow.send(TOPICS.invocations, event(session_id=name, ballast=f"{partition}{big}"), partition=partition)
        flow.send(TOPICS.invocations, event(session_id="a", ballast=f"{partition}{big}"), partition=partition)
    await flow.settle()
    for partition in range(3):
        flow.crash(partition)

    await flow.finish()

    assert {(s["session_id"], len(s["events"])) for s in flow.sessions()} == {(name, 3), ("a", 3)}
    assert flow.dead_letters() == []


async def test_an_event_of_the_previous_segment_is_a_duplicate_in_the_next() -> None:
    flow = assemble_only(segment_max_events=2)
    for number in (0, 1, 2, 0, 1, 2, 3, 4, 0, 2, 4):
        flow.send(TOPICS.invocations, event(at=number))
        await flow.settle()
        flow.crash()

    await flow.finish()

    places = [(s["segment"], [item["occurred_at"][17:19] for item in s["events"]]) for s in flow.sessions()]
    assert places == [(0, ["00", "01"]), (1, ["02", "03"]), (2, ["04"])]
    assert flow.counters("assemble")["duplicate"] == 6


async def test_the_guard_of_an_endless_session_keeps_only_its_latest_records() -> None:
    flow = assemble_only(segment_max_events=500)
    for number in range(5_001):
        flow.send(TOPICS.invocations, event(event_id=str(number)))
    await flow.settle()

    assert len(flow.rows(b"assemble/gs")[b"assemble/gs"]) < 16 * GUARDED + 100
    flow.send(TOPICS.invocations, event(event_id="1000"))
    flow.send(TOPICS.invocations, event(event_id="999"))
    await flow.settle()
    assert flow.counters("assemble")["duplicate"] == 1

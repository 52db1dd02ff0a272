"""A session knows of its records that became dead letters: what can have been in them is no silence."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.flow import TOPICS, assemble_only
from tests.support.refused_records import VALUES, broken, came_back, completed, refused, started

from traceweir.schemas.base import JsonObject
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.pipeline.assemble.waiting_refusals import MAX_WAITING
from traceweir.streams.testing import Flow, event, trace

CONFIG: JsonObject = {
    "criteria": {
        "response_match_score": 0.5,
        "tool_trajectory_avg_score": 1.0,
        "trajectory_single_tool_use": {"threshold": 1.0, "tool_name": "find"},
        "tool_call_accuracy": {"threshold": 1.0, "expected_tool": "find"},
        "document_recall": 0.5,
        "token_usage_v1": None,
    }
}
AWAY = "traceweir.invocations-0@900"
"""Where a record was before its producer sent it once more."""
PARTS = (
    event("tool.called", "s", invocation_id="i1", at=2, name="find"),
    event("retrieval.returned", "s", invocation_id="i1", at=3, chunks=[{"doc_uri": "d9"}]),
    event("model.called", "s", invocation_id="i1", at=4, model="m", input_tokens=1, output_tokens=1),
)
"""What came of an invocation of which one more record of each kind is refused."""


async def scored(*records: Any) -> Flow:
    flow = Flow(read_plan(CONFIG))
    for record in records:
        flow.send(TOPICS.invocations, record, b"s")
    await flow.finish()
    return flow


def outcomes(flow: Flow, level: str = "invocation", subject: str | None = "i1") -> dict[str, str]:
    return {
        score["metric"].rpartition("/")[2]: score["not_evaluated_because"] or score["status"]
        for score in flow.results()
        if score["level"] == level and score["invocation_id"] == (subject if level == "invocation" else None)
    }


def place(offset: int) -> str:
    return f"the dead letter of {TOPICS.invocations}-0@{offset}"


async def test_an_answer_that_was_refused_is_no_silence() -> None:
    flow = await scored(started(), *PARTS, broken("invocation.completed"))

    found = outcomes(flow)
    assert found["response_match_score"] == outcomes(flow, "session")["response_match_score"] == "missing_input"
    assert (found["tool_trajectory_avg_score"], found["token_usage_v1"]) == ("FAILED", "PASSED")


async def test_the_rationale_names_the_dead_letter_and_its_reason() -> None:
    flow = await scored(started(), broken("invocation.completed"))

    (letter,) = flow.dead_letters()
    sentence = f"the answer can be in a refused record: {place(letter.offset)} (invalid)"
    assert [each["rationale"] for each in flow.results("response_match_score")] == [
        sentence,
        "none of 1 invocations has a value",
    ]


CALLS = {"tool_trajectory_avg_score", "trajectory_single_tool_use", "tool_call_accuracy"}
UNMEASURED: dict[str, set[str]] = {
    "tool.called": CALLS,
    "model.called": {"token_usage_v1"},
    "retrieval.returned": {"document_recall"},
    "invocation.completed": {"response_match_score"},
    "tool.returned": set(),
    "session.ended": set(),
    "invocation.recorded": {*CALLS, "token_usage_v1", "document_recall", "response_match_score"},
    "invocation.exploded": {*CALLS, "token_usage_v1", "document_recall", "response_match_score"},
}


@pytest.mark.parametrize(("kind", "unmeasured"), UNMEASURED.items(), ids=UNMEASURED)
@pytest.mark.parametrize("name", ["i1", None], ids=["known", "unknown"])
async def test_only_what_can_have_been_in_the_record_is_not_evaluated(
    kind: str, unmeasured: set[str], name: str | None
) -> None:
    flow = await scored(started(), *PARTS, broken(kind, name))

    found = outcomes(flow)
    assert {metric for metric, outcome in found.items() if outcome == "missing_input"} == unmeasured
    assert len(found) == len(CONFIG["criteria"])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["invocation.started", "tool.called"])
async def test_a_reference_that_was_refused_is_no_missing_reference(kind: str) -> None:
    flow = await scored(completed(), broken(kind))

    lost = f"the reference can be in a refused record: {place(1)} (invalid)"
    found = {
        each["metric"].rpartition("/")[2]: (each["rationale"], each["cause"])
        for each in flow.results()
        if each["level"] == "invocation" and each["rationale"] == lost
    }
    compared = ("response_match_score", "document_recall", "tool_trajectory_avg_score")
    assert found == dict.fromkeys(compared, (lost, "record_refused"))


async def test_a_reference_that_nobody_sent_is_missing_though_a_record_of_another_invocation_was_refused() -> None:
    flow = await scored(completed(), broken("invocation.started", "i2"))

    rationales = {each["rationale"] for each in flow.results("response_match_score") if each["invocation_id"] == "i1"}
    assert rationales == {"no reference says which final response was expected"}


async def test_a_refused_record_of_one_invocation_leaves_the_others_as_they_are() -> None:
    flow = await scored(started(), broken("invocation.completed"), started("i2"), completed("i2"))

    assert outcomes(flow)["response_match_score"] == "missing_input"
    assert outcomes(flow, subject="i2")["response_match_score"] == "PASSED"
    (total,) = [each for each in flow.results("response_match_score") if each["level"] == "session"]
    assert (total["value"], total["details"]["measured"]) == (1.0, 1)


async def test_a_record_without_a_readable_invocation_can_be_of_each_one() -> None:
    flow = await scored(started(), completed(), started("i2"), b"{")

    assert outcomes(flow)["response_match_score"] == "PASSED"
    assert outcomes(flow, subject="i2")["response_match_score"] == "missing_input"
    assert {outcomes(flow, subject=name)["tool_trajectory_avg_score"] for name in ("i1", "i2")} == {"missing_input"}


async def test_an_invocation_of_which_only_a_refused_record_is_known_has_no_value() -> None:
    flow = await scored(started(), completed(), broken("tool.called", "i2"))

    assert set(outcomes(flow, subject="i2").values()) == {"missing_input"}
    assert outcomes(flow)["response_match_score"] == "PASSED"


async def test_a_valid_event_with_the_same_id_makes_up_for_the_refused_one() -> None:
    flow = await scored(
        started(),
        broken("tool.called", event_id="e1"),
        event("tool.called", "s", invocation_id="i1", at=2, name="find", event_id="e1"),
    )

    assert outcomes(flow)["tool_call_accuracy"] == "PASSED"


async def test_a_session_without_refused_records_has_the_record_that_it_had() -> None:
    flow = await scored(started(), completed())

    assert "refused" not in flow.sessions()[0]


@pytest.mark.parametrize(("value", "key", "reason"), VALUES.values(), ids=VALUES)
async def test_an_open_session_knows_of_a_refused_record_whatever_is_wrong_with_it(
    value: bytes | None, key: bytes | None, reason: str
) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    flow.send(TOPICS.invocations, value, key)
    await flow.finish()

    (session,) = flow.sessions()
    assert [each["reason"] for each in session["refused"]] == [reason]
    assert [letter.reason for letter in flow.dead_letters()] == [reason]


NONE: dict[str, tuple[str, Any, bytes | None]] = {
    "garbage without a session": (TOPICS.invocations, b"{", None),
    "garbage with another key": (TOPICS.invocations, b"{", b"\xff"),
    "a session that is no text": (TOPICS.invocations, b'{"type": "tool.called", "session_id": ["s"]}', None),
    "a trace": (TOPICS.traces, trace("t2", "s", outcome={"confidence": 1.5}), b"s"),
}


@pytest.mark.parametrize(("topic", "value", "key"), NONE.values(), ids=NONE)
async def test_what_names_no_session_or_is_a_trace_is_a_dead_letter_only(
    topic: str, value: Any, key: bytes | None
) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    flow.send(topic, value, key)
    await flow.finish()

    assert refused(flow) == [[]]
    assert len(flow.dead_letters()) == 1


async def test_an_event_that_was_sent_as_a_trace_is_known() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    await flow.settle()
    flow.send(TOPICS.traces, completed())
    await flow.finish()

    assert [[each["type"] for each in session["refused"]] for session in flow.sessions()] == [["invocation.completed"]]


async def test_a_refused_record_opens_no_session_and_keeps_none_open() -> None:
    flow = Flow(idle_gap_s=300)
    flow.send(TOPICS.invocations, broken("tool.called"), b"other", at=0)
    flow.send(TOPICS.invocations, started(), b"s", at=1)
    flow.send(TOPICS.invocations, broken("invocation.completed"), b"s", at=200)
    flow.pass_time(310)
    await flow.finish()

    (session,) = flow.sessions()
    assert session["first_record_at"] == session["last_record_at"]
    assert (flow.counters("assemble")["joined"], flow.counters("assemble")["opened"]) == (1, 1)


async def test_a_note_is_no_record_of_those_that_the_producer_has_announced() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started(), b"s")
    flow.send(TOPICS.invocations, broken("invocation.completed"), b"s")
    flow.send(TOPICS.invocations, event("session.ended", "s", expects={"events": 3, "traces": 0}), b"s")
    await flow.settle()
    assert flow.sessions() == []

    await flow.finish()
    assert refused(flow) == [[place(1)]]


@pytest.mark.parametrize("known_id", [True, False])
@pytest.mark.parametrize("again", [0, 2], ids=["mended", "refused twice again"])
async def test_a_replay_takes_the_refusal_back(known_id: bool, again: int) -> None:
    flow = await scored(started(), broken("tool.called", "i1" if known_id else None))
    (letter,) = flow.dead_letters()
    assert outcomes(flow)["tool_call_accuracy"] == "missing_input"
    where = letter.refused_at
    for _ in range(again):
        flow.send(TOPICS.invocations, broken("tool.called"), b"s", headers=came_back(where))
        await flow.settle()
        where = flow.dead_letters()[-1].refused_at
    mended = event("tool.called", "s", invocation_id="i1", at=1, name="find")
    flow.send(TOPICS.invocations, mended, b"s", headers=came_back(where))
    await flow.finish()

    assert refused(flow) == [[place(1)], []]
    assert [each["revision"] for each in flow.sessions()] == [0, 1]
    (last,) = [
        each for each in flow.results("tool_call_accuracy") if each["invocation_id"] == "i1" and each["revision"] == 1
    ]
    assert last["status"] == "PASSED"


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_crash_changes_nothing(sealed: bool) -> None:
    flow = Flow()
    ballast = "x" * 3_000 if sealed else ""
    flow.send(TOPICS.invocations, {**started(), "ballast": ballast}, b"s")
    await flow.settle()
    flow.send(TOPICS.invocations, broken("tool.called"), b"s")
    flow.send(TOPICS.invocations, broken("invocation.completed"), b"s")
    await flow.settle()
    flow.crash()
    mended = event("tool.called", "s", invocation_id="i1", at=1, name="find")
    flow.send(TOPICS.invocations, mended, b"s", headers=came_back(flow.dead_letters()[0].refused_at))
    await flow.settle()
    flow.crash()
    await flow.finish()

    assert refused(flow) == [[place(2)]]
    assert len(flow.dead_letters()) == 2


FORGED: dict[str, list[tuple[str, bytes]]] = {
    "a long text": came_back("x" * 10_000),
    "a text": came_back("see https://example.com"),
    "no offset": came_back("traceweir.invocations-0@-1"),
    "digits of another script": came_back("traceweir.invocations-0@\u0661"),
    "no replay": came_back("traceweir.invocations-0@7")[1:],
}


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED)
async def test_what_a_producer_writes_as_the_place_is_none(headers: list[tuple[str, bytes]]) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started(), b"s")
    flow.send(TOPICS.invocations, broken("tool.called"), b"s", headers=headers)
    await flow.finish()

    assert refused(flow) == [[place(1)]]
    assert [letter.first_place for letter in flow.dead_letters()] == [None]


async def test_the_end_of_a_session_makes_no_invocation() -> None:
    flow = await scored(started(), completed(), broken("session.ended", "i2"))

    assert refused(flow) == [[place(2)]]
    assert {each["invocation_id"] for each in flow.results("response_match_score")} == {"i1", None}


async def test_a_session_of_traces_only_knows_of_its_refused_records() -> None:
    flow = Flow(read_plan(CONFIG))
    flow.send(TOPICS.traces, trace("t1", "s"), b"s")
    flow.send(TOPICS.invocations, broken("tool.called"), b"s")
    await flow.finish()

    assert refused(flow) == [[place(0)]]
    (found,) = [each for each in flow.results("tool_call_accuracy") if each["level"] == "invocation"]
    assert found["not_evaluated_because"] == "missing_input"


@pytest.mark.parametrize("crashes", [False, True])
async def test_a_producer_of_broken_records_neither_fills_a_session_nor_makes_endless_invocations(
    crashes: bool,
) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started(), b"s")
    for number in range(150):
        flow.send(TOPICS.invocations, broken("tool.called", f"{number}-" + "x" * 900), b"s")
        if crashes and number in {60, 120}:
            await flow.settle()
            flow.crash()
    flow.send(TOPICS.invocations, completed(), b"s")
    await flow.finish()

    assert refused(flow) == [[place(1 + number) for number in range(100)]]
    assert len(flow.sessions()[0]["events"]) == 2
    assert len(flow.dead_letters()) == 150


async def test_a_refused_record_with_endless_ids_takes_little_room() -> None:
    flow = await scored(started(), completed(), broken("tool.called", "\x01" * 1_000, event_id="\x01" * 1_000))

    assert [each.keys() for each in flow.sessions()[0]["refused"]] == [{"place", "reason", "type"}]
    assert outcomes(flow)["tool_call_accuracy"] == "missing_input"


async def test_a_flood_of_refused_records_has_one_sentence_for_each_part() -> None:
    flow = await scored(started(), *[orjson.dumps(broken("invocation.completed")) for _ in range(50)])

    (found,) = [each for each in flow.results("response_match_score") if each["level"] == "invocation"]
    assert found["rationale"] == (f"the answer can be in a refused record: {place(1)} (invalid), or in 49 more")


async def test_a_full_session_takes_no_note_and_stays_whole() -> None:
    flow = Flow(segment_max_bytes=2_000)
    flow.send(TOPICS.invocations, {**started(), "ballast": "x" * 1_000}, b"s")
    for _ in range(20):
        flow.send(TOPICS.invocations, b"{", b"s")
    await flow.finish()

    (session,) = flow.sessions()
    assert 0 < len(session["refused"]) < 20
    assert len(flow.dead_letters()) == 20


async def test_a_refused_record_waits_for_its_session_for_the_idle_gap_and_the_grace() -> None:
    flow = Flow(idle_gap_s=300, grace_s=200)
    for at in (0, 100):
        flow.send(TOPICS.invocations, broken("tool.called"), b"s", at=at)
    flow.send(TOPICS.invocations, started(), b"s", at=550)
    flow.pass_time(560)
    await flow.finish()

    assert refused(flow) == [[place(1)]]
    assert (flow.counters("assemble")["joined"], flow.counters("assemble")["opened"]) == (1, 1)


@pytest.mark.parametrize("refused_first", [False, True])
@pytest.mark.parametrize("at_rest_between", [False, True])
async def test_it_does_not_count_whether_the_record_or_its_session_was_read_first(
    refused_first: bool, at_rest_between: bool
) -> None:
    flow = Flow(idle_gap_s=300, grace_s=600)
    flow.pass_time(800)

    async def send(*, refuse: bool) -> None:
        if refuse:
            flow.send(TOPICS.invocations, broken("tool.called"), b"s", at=0)
        else:
            flow.send(TOPICS.traces, trace("t", "s"), b"s", at=500)
        if at_rest_between:
            await flow.settle()

    await send(refuse=refused_first)
    await send(refuse=not refused_first)
    await flow.finish()

    assert refused(flow)[-1] == [place(0)]
    assert {each["segment"] for each in flow.sessions()} == {0}


async def test_a_late_session_knows_of_a_record_that_was_refused_as_late() -> None:
    flow = Flow(idle_gap_s=300, grace_s=600)
    flow.pass_time(3_000)
    await flow.settle()
    flow.send(TOPICS.invocations, broken("tool.called"), b"s", at=0)
    await flow.settle()
    flow.pass_time(250)
    flow.send(TOPICS.invocations, started(), b"s", at=10)
    await flow.finish()

    assert refused(flow) == [[place(0)]]


async def test_a_refused_answer_before_its_session_is_no_silence() -> None:
    flow = await scored(broken("invocation.completed"), started())

    assert outcomes(flow)["response_match_score"] == "missing_input"


@pytest.mark.parametrize("crashes", [False, True])
async def test_a_refused_record_reopens_its_session_once(crashes: bool) -> None:
    flow = await scored(started(), event("session.ended", "s", at=10))
    assert outcomes(flow)["response_match_score"] == "FAILED"
    for _ in range(2):
        flow.send(TOPICS.invocations, broken("invocation.completed"), b"s", headers=came_back(AWAY))
        await flow.settle()
        if crashes:
            flow.crash()
        await flow.finish()

    assert [(each["segment"], each["revision"]) for each in flow.sessions()] == [(0, 0), (0, 1)]
    assert refused(flow) == [[], [f"the dead letter of {AWAY}"]]
    assert outcomes(flow)["response_match_score"] == "missing_input"


async def test_a_session_that_was_reopened_for_a_note_closes_after_the_linger() -> None:
    flow = Flow(idle_gap_s=300, close_linger_s=5)
    flow.send(TOPICS.invocations, started(), b"s")
    flow.send(TOPICS.invocations, event("session.ended", "s"), b"s")
    await flow.finish()
    flow.send(TOPICS.invocations, broken("invocation.completed"), b"s")
    await flow.settle()
    flow.pass_time(6)
    await flow.settle()

    assert len(flow.sessions()) == 2


async def test_refused_records_reopen_a_session_as_rarely_as_late_records_do() -> None:
    flow = Flow(segment_max_revisions=3, grace_s=36_000, guard_s=72_000)
    flow.send(TOPICS.invocations, started(), b"s")
    await flow.finish()
    for _ in range(10):
        flow.send(TOPICS.invocations, broken("tool.called"), b"s")
        await flow.finish()

    assert {(each["segment"], each["revision"]) for each in flow.sessions()} == {(0, n) for n in range(4)}
    assert len(flow.dead_letters()) == 10


async def test_a_record_that_is_refused_after_the_grace_waits_for_the_next_segment() -> None:
    flow = Flow(idle_gap_s=300, grace_s=60)
    flow.send(TOPICS.invocations, started(), b"s")
    await flow.finish()
    flow.pass_time(1_000)
    flow.send(TOPICS.invocations, broken("tool.called"), b"s")
    await flow.settle()
    flow.crash()
    flow.send(TOPICS.invocations, started("i2"), b"s")
    await flow.finish()

    assert [each["segment"] for each in flow.sessions()] == [0, 1]
    assert refused(flow) == [[], [place(1)]]


async def test_a_replay_takes_a_waiting_refusal_back() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, broken("tool.called"), b"s")
    await flow.settle()
    mended = event("tool.called", "s", invocation_id="i1", at=1, name="find")
    flow.send(TOPICS.invocations, mended, b"s", headers=came_back(flow.dead_letters()[0].refused_at))
    await flow.finish()

    assert refused(flow) == [[]]


@pytest.mark.parametrize("crashes", [False, True])
async def test_refused_records_of_ever_other_sessions_take_no_more_room(crashes: bool) -> None:
    flow = assemble_only(idle_gap_s=300, grace_s=60)
    for number in range(MAX_WAITING + 50):
        flow.send(TOPICS.invocations, b"{", b"forged-%d" % number)
    await flow.settle()
    if crashes:
        flow.crash()
    assert sum(key.startswith(b"assemble/n") for key in flow.rows()) == MAX_WAITING
    for number in (49, 50):
        flow.send(TOPICS.invocations, event("tool.called", f"forged-{number}", name="find"))
    await flow.settle()
    flow.pass_time(400)
    await flow.finish()

    assert sum(key.startswith(b"assemble/n") for key in flow.rows()) == 0
    assert [len(each.get("refused", [])) for each in flow.sessions()] == [0, 1]


async def test_a_flood_of_one_session_leaves_the_note_of_another() -> None:
    flow = Flow(partitions=1)
    flow.send(TOPICS.invocations, b"{", b"s")
    for _ in range(MAX_WAITING):
        flow.send(TOPICS.invocations, b"{", b"forged")
    flow.send(TOPICS.invocations, started(), b"s")
    await flow.settle()
    assert sum(key.startswith(b"assemble/n") for key in flow.rows()) == 100
    await flow.finish()

    assert refused(flow) == [[place(0)]]
    assert flow.counters("assemble")["notes.dropped"] == MAX_WAITING - 100


async def test_a_further_note_takes_the_place_of_the_oldest_whatever_its_session_has() -> None:
    flow = Flow(partitions=1)
    flow.send(TOPICS.invocations, b"{", b"s")
    for number in range(MAX_WAITING):
        flow.send(TOPICS.invocations, b"{", b"t" if number < 2 else b"forged-%d" % number)
    for name in "st":
        flow.send(TOPICS.invocations, event("tool.called", name, name="find"))
    await flow.finish()

    assert {each["session_id"]: len(each.get("refused", [])) for each in flow.sessions()} == {"s": 0, "t": 2}
    assert flow.counters("assemble")["notes.dropped"] == 1


async def test_notes_without_room_are_counted() -> None:
    flow = Flow(segment_max_bytes=2_000)
    flow.send(TOPICS.invocations, {**started(), "ballast": "x" * 1_000}, b"s")
    for _ in range(20):
        flow.send(TOPICS.invocations, b"{", b"s")
    await flow.finish()

    (known,) = refused(flow)
    assert len(known) + flow.counters("assemble")["notes.dropped"] == 20


async def test_waiting_notes_leave_room_for_the_record_that_begins_the_session() -> None:
    flow = Flow(segment_max_bytes=2_000)
    for _ in range(20):
        flow.send(TOPICS.invocations, b"{", b"s")
    flow.send(TOPICS.invocations, {**started(), "ballast": "x" * 1_000}, b"s")
    await flow.finish()

    (session,) = flow.sessions()
    assert 0 < len(session["refused"]) < 10
    assert len(session["events"]) == 1

"""Late data: what comes in the grace opens its session again, and everything that rests on the session is revised."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.session import Session
from traceweir.scorers.embedding import HashingEmbedder
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.assemble.session_rows import CHUNK
from traceweir.streams.assemble.stage import AssembleStage
from traceweir.streams.testing import START_S, Flow, HeldScoring, event, trace

CONFIG = b'{"criteria": {"response_match_score": 0.5}, "gate": {"threshold": 0.6, "cache_size": 3}}'
REQUIRING = (
    b'{"criteria": {"response_match_score": 0.5}, "gate": {"threshold": 0, "required": ["response_match_score"]}}'
)


def assemble_only(**options: Any) -> Flow:
    return Flow(stages=("assemble",), **options)


def whole(config: bytes = CONFIG, **options: Any) -> Flow:
    return Flow(plan=read_plan(config), embedder=HashingEmbedder(), **options)


def published(flow: Flow) -> list[tuple[int, int, str]]:
    """Segment, revision and events of each session in the order in which they were published."""
    return [(s["segment"], s["revision"], "".join(e["event_id"] for e in s["events"])) for s in flow.sessions()]


async def send(flow: Flow, name: str, at: float, **fields: Any) -> None:
    flow.send(TOPICS.invocations, event(event_id=name, at=at, **fields), at=at)
    await flow.settle()


async def pass_to(flow: Flow, at: float) -> None:
    flow.pass_time(START_S + at - flow.now)
    await flow.settle()


@pytest.mark.parametrize("crash", [False, True])
async def test_a_late_event_opens_its_session_again_and_it_is_published_whole(crash: bool) -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await send(flow, "c", 2)
    await pass_to(flow, 303)
    if crash:
        flow.crash()
    await send(flow, "b", 1)
    if crash:
        flow.crash()
    await pass_to(flow, 340)  # after a restart late records set the clock back for a while

    assert published(flow) == [(0, 0, "ac"), (0, 1, "abc")]
    first, second = flow.sessions()
    assert (first["first_record_at"], first["last_record_at"]) == (second["first_record_at"], second["last_record_at"])
    assert flow.counters("assemble") == {"consumed": 3, "joined": 3, "opened": 1, "closed": 2, "reopened": 1}


async def test_events_that_come_late_together_make_one_revision() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 301)
    for number, name in enumerate("bcd"):
        await send(flow, name, number)
        flow.pass_time(0.5)
        await flow.settle()
    await pass_to(flow, 310)

    assert published(flow) == [(0, 0, "a"), (0, 1, "abcd")]


async def test_what_goes_on_in_the_grace_is_the_same_segment_and_waits_for_the_idle_gap() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 500)
    await send(flow, "b", 500)
    await pass_to(flow, 799)
    assert len(published(flow)) == 1
    await send(flow, "c", 799)
    await pass_to(flow, 1_098)
    assert len(published(flow)) == 1
    await pass_to(flow, 1_100)

    assert published(flow) == [(0, 0, "a"), (0, 1, "abc")]


async def test_a_session_that_ended_waits_for_the_linger_when_it_is_opened_again() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended", event_id="e", at=5), at=5)
    await flow.settle()
    await pass_to(flow, 8)
    await send(flow, "t", 8)
    await pass_to(flow, 10)
    assert published(flow) == [(0, 0, "e")]
    await pass_to(flow, 10.1)

    assert published(flow) == [(0, 0, "e"), (0, 1, "et")]
    assert [s["closed_because"] for s in flow.sessions()] == ["session.ended"] * 2


@pytest.mark.parametrize(("at", "expected"), [(899.9, (0, 1, "ab")), (900.1, (1, 0, "b"))])
async def test_the_grace_ends_so_long_after_the_moment_at_which_the_session_was_due(at: float, expected: Any) -> None:
    live, backlog = assemble_only(), assemble_only()
    for flow in (live, backlog):
        flow.send(TOPICS.invocations, event(event_id="a", at=0), at=0)
        if flow is live:
            await flow.settle()
            await pass_to(flow, at)
        else:
            flow.now = START_S + at
            flow.crash()
        flow.send(TOPICS.invocations, event(event_id="b", at=at), at=at)
        await flow.finish()
        await pass_to(flow, 2_000)

        (segment, _, events) = published(flow)[-1]
        assert (segment, events) == (expected[0], expected[2])
        if flow is live:
            assert published(flow) == [(0, 0, "a"), expected]


async def test_a_late_event_after_the_grace_begins_the_next_segment_and_behind_the_guard_it_is_a_dead_letter() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 901)
    await send(flow, "b", 1)
    await pass_to(flow, 3_603)
    await send(flow, "c", 2)
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (1, 0, "b")]
    (letter,) = flow.dead_letters()
    assert letter.reason == "late"


async def test_a_duplicate_opens_nothing_whether_of_the_first_or_of_a_later_revision() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 301)
    await send(flow, "b", 1)
    await pass_to(flow, 310)
    flow.crash()
    for name in "aba":
        await send(flow, name, 320)
        await pass_to(flow, 330)
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (0, 1, "ab")]
    assert flow.counters("assemble")["duplicate"] == 3


async def test_duplicates_of_a_former_segment_are_known_through_all_revisions_of_the_next() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 901)
    for number, name in enumerate("bcd"):
        await send(flow, name, 901 + 310 * number)
        await pass_to(flow, 1_205 + 310 * number)
        flow.crash()
    guard = flow.rows(b"assemble/g")[b"assemble/gs"]
    assert len(guard) == 21 + 16 * 4  # four identities, none of them twice
    for name in "abcd":
        await send(flow, name, 1_830)
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (1, 0, "b"), (1, 1, "bc"), (1, 2, "bcd")]
    assert flow.counters("assemble")["duplicate"] == 4


async def test_a_session_closed_for_its_size_is_not_opened_again() -> None:
    flow = assemble_only(segment_max_events=2)
    for number, name in enumerate("abc"):
        await send(flow, name, number)
    await flow.finish()
    assert len(flow.rows(b"assemble/c")) == 1  # of the last segment
    await send(flow, "d", 4)
    await send(flow, "e", 5)
    await flow.finish()

    assert published(flow) == [(0, 0, "ab"), (1, 0, "c"), (1, 1, "cd"), (2, 0, "e")]


async def test_a_session_that_has_no_room_for_a_late_event_is_followed_by_its_next_segment() -> None:
    flow = assemble_only(segment_max_events=2)
    for number, name in enumerate("ab"):
        await send(flow, name, number)
    await flow.finish()
    await send(flow, "c", 1)
    await flow.finish()

    assert published(flow) == [(0, 0, "ab"), (1, 0, "c")]
    assert len(flow.rows(b"assemble/c")) == 1


@pytest.mark.parametrize("former", [False, True])
async def test_what_is_opened_again_before_its_close_was_committed_has_not_closed(former: bool) -> None:
    flow = assemble_only()
    if former:  # a segment before it, of which the guard knows
        flow.send(TOPICS.invocations, event(event_id="z", at=-2_000), at=-2_000)
    for name, at in (("a", 0), ("b", 400), ("c", 800)):
        flow.send(TOPICS.invocations, event(event_id=name, at=at), at=at)
    flow.now = START_S + 1_000
    flow.crash()
    await flow.take(TOPICS.invocations)  # in one batch, and all of it in one checkpoint
    flow.checkpoint()
    flow.crash()
    for name in "zabc"[not former :]:
        flow.send(TOPICS.invocations, event(event_id=name), at=900)
    await flow.finish()

    before = [(0, 0, "z")] * former
    assert published(flow) == [*before, (int(former), 0, "abc")]
    counters = flow.counters("assemble")
    assert (counters["opened"], counters["closed"], counters["duplicate"]) == (1 + former, 1 + former, 3 + former)
    assert "reopened" not in counters


@pytest.mark.parametrize("count", [1, 20])
async def test_a_session_that_is_forgotten_and_begins_again_within_one_checkpoint_keeps_what_it_joins(
    count: int,
) -> None:
    flow = assemble_only()
    await send(flow, "a", 0, app_name="x" * 900)
    await pass_to(flow, 301)
    flow.now = START_S + 4_100
    flow.crash()
    flow.send(TOPICS.invocations, event(event_id="other", session_id="other"), at=4_090)
    await flow.take(TOPICS.invocations)
    flow.pass_time(61)  # grace and guard of the first are over
    for number in range(count):
        late = event(event_id=f"{number:02}", app_name="x" * 900, at=4_100 + number)
        flow.send(TOPICS.invocations, late, at=4_150)
    await flow.take(TOPICS.invocations)
    flow.checkpoint()
    flow.crash()
    await flow.finish()

    assert published(flow)[-1] == (0, 0, "".join(f"{number:02}" for number in range(count)))


async def test_events_that_come_late_one_by_one_after_the_grace_are_one_segment() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 1_500)
    for number, name in enumerate("bcdef"):
        await send(flow, name, number)
        flow.pass_time(0.3)
        await flow.settle()
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (1, 0, "bcdef")]


async def test_what_comes_between_the_halves_of_the_checkpoint_of_a_close_opens_the_session_again() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="a"), at=0)
    await flow.settle()
    flow.pass_time(301)
    closing = flow.cut()
    for name in "ab":
        flow.send(TOPICS.invocations, event(event_id=name), at=1)
    await flow.take(TOPICS.invocations)
    flow.commit(closing)
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (0, 1, "ab")]
    assert flow.counters("assemble")["duplicate"] == 1


@pytest.mark.parametrize("committed", [False, True])
async def test_a_session_that_was_begun_and_closed_within_one_checkpoint_is_opened_again(committed: bool) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="a"), at=0)
    await flow.take(TOPICS.invocations)
    flow.pass_time(301)
    cut = flow.cut()
    if committed:
        flow.commit(cut)
        flow.checkpoint()
    flow.send(TOPICS.invocations, event(event_id="b", at=1), at=1)
    await flow.take(TOPICS.invocations)
    if not committed:
        flow.commit(cut)
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (0, 1, "ab")]


async def test_a_long_session_is_opened_again_from_its_sealed_chunks() -> None:
    flow = assemble_only()
    for number in range(60):
        flow.send(TOPICS.invocations, event(event_id=f"{number:02}", app_name="x" * 300, at=number), at=0)
        if number % 7 == 0:
            await flow.settle()
    await flow.finish()
    flow.crash()
    assemble = flow.lanes[0].stages["assemble"]
    assert isinstance(assemble, AssembleStage)
    assert assemble.held_bytes == 0
    await send(flow, "late", 30.5)
    assert 0 < assemble.held_bytes < CHUNK
    await flow.finish()

    _, (_, revision, events) = published(flow)
    assert revision == 1
    assert events == "".join(f"{number:02}" for number in range(31)) + "late" + "".join(map(str, range(31, 60)))


async def test_closed_sessions_leave_memory_with_the_checkpoint_after_their_own() -> None:
    flow = assemble_only()
    for number in range(50):
        flow.send(TOPICS.invocations, event(session_id=str(number), event_id="x" * 900))
    await flow.finish()
    await send(flow, "another", 0)
    await flow.finish()

    assemble = flow.lanes[0].stages["assemble"]
    assert isinstance(assemble, AssembleStage)
    assert assemble.held_bytes < 2_000  # of the other one at most


async def test_state_of_the_version_before_is_read() -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 901)
    await send(flow, "b", 901)
    (key,) = flow.rows(b"assemble/c")
    row = flow.table.read(0, key)
    assert row is not None
    guard = flow.rows(b"assemble/g")[b"assemble/gs"]
    before = b"\x01" + guard[1:13] + guard[21:]
    flow.table.write(0, [(key, b"\x02" + row[1:]), (b"assemble/gs", before)])
    flow.crash()
    await send(flow, "a", 902)
    await send(flow, "c", 903)
    await flow.finish()

    assert published(flow) == [(0, 0, "a"), (1, 0, "bc")]
    assert flow.counters("assemble")["duplicate"] == 1


@pytest.mark.parametrize("kind", ["c", "g"])
async def test_state_of_a_later_version_is_refused(kind: str) -> None:
    flow = assemble_only()
    await send(flow, "a", 0)
    await pass_to(flow, 901)
    await send(flow, "b", 901)
    ((key, row),) = flow.rows(b"assemble/" + kind.encode()).items()
    flow.table.write(0, [(key, b"\x09" + row[1:])])

    with pytest.raises(ValueError, match="of format 9; this version reads"):
        flow.crash()


# What rests on a session


async def test_scores_are_revised_under_the_same_ids() -> None:
    flow = whole()
    reference = {"final_response": {"role": "model", "parts": [{"text": "yes indeed"}]}}
    answer = {"final_response": {"role": "model", "parts": [{"text": "yes indeed"}]}}
    await send(flow, "a", 0, kind="invocation.started", reference=reference)
    await pass_to(flow, 301)
    await send(flow, "b", 1, kind="invocation.completed", **answer)
    await flow.finish()

    scores = {(s["level"], s["revision"]): s for s in flow.results("response_match_score")}
    assert set(scores) == {("invocation", 0), ("session", 0), ("invocation", 1), ("session", 1)}
    for level in ("invocation", "session"):
        assert scores[level, 0]["result_id"] == scores[level, 1]["result_id"]
        assert scores[level, 1]["value"] == 1.0
    assert len({(s["result_id"], s["revision"]) for s in flow.results()}) == len(flow.results())


async def test_a_revision_with_the_same_traces_gives_no_candidate_also_after_a_restart() -> None:
    for crash in (False, True):
        flow = whole()
        flow.send(TOPICS.traces, trace(1), at=0)
        await flow.settle()
        await pass_to(flow, 301)
        if crash:
            flow.crash()
        await send(flow, "late", 1)
        await flow.finish()

        assert [s["revision"] for s in flow.sessions()] == [0, 1]
        assert [m.json["revision"] for m in flow.read(TOPICS.candidates)] == [0]
        assert flow.counters("score")["unchanged"] == 1
        assert [s["revision"] for s in flow.results("gate")] == [0]


async def test_of_a_revision_those_traces_are_candidates_that_are_new_or_have_changed() -> None:
    flow = whole()
    for number in (1, 2):
        flow.send(TOPICS.traces, trace(number), at=0)
    await flow.finish()
    flow.send(TOPICS.traces, trace(2, outcome={"confidence": 0.5}), at=2)
    flow.send(TOPICS.traces, trace(3), at=3)
    await flow.finish()

    told = [(m.json["revision"], m.json["trace"]["id"]) for m in flow.read(TOPICS.candidates)]
    assert told == [(0, "kp:trace:1"), (0, "kp:trace:2"), (1, "kp:trace:2"), (1, "kp:trace:3")]
    assert [(s["revision"], s["trace_id"]) for s in flow.results("gate")] == told


async def test_a_trace_is_a_candidate_again_when_a_required_criterion_comes_out_otherwise() -> None:
    flow = whole(REQUIRING)
    flow.send(TOPICS.traces, trace(1), at=0)
    expected = {"role": "model", "parts": [{"text": "a b c"}]}
    await send(flow, "a", 0, kind="invocation.started", reference={"final_response": expected})
    await pass_to(flow, 301)
    await send(flow, "b", 1, kind="invocation.completed", final_response=expected)
    await flow.finish()

    statuses = [m.json["required"]["response_match_score"]["status"] for m in flow.read(TOPICS.candidates)]
    assert (statuses[0] != "PASSED", statuses[1:]) == (True, ["PASSED"])
    assert [s["details"]["decision"] for s in flow.results("gate")] == ["rejected", "accepted"]


async def test_a_revised_trace_is_compared_without_its_own_old_vector_which_it_replaces() -> None:
    flow = whole()
    flow.send(TOPICS.traces, trace(1, task={"objective": "Feed the cat"}), at=0)
    flow.send(TOPICS.traces, trace(2, "other", task={"objective": "Repair a steam engine"}), at=1)
    await flow.finish()
    flow.send(TOPICS.traces, trace(1, task={"objective": "Feed the cat"}, outcome={"confidence": 0.9}), at=2)
    await flow.finish()

    novelties = [(s["trace_id"], s["revision"], s["details"]["novelty"]) for s in flow.results("trace_value")]
    first, second, again = novelties
    assert (first[:2], second[:2], again[:2]) == (("kp:trace:1", 0), ("kp:trace:2", 0), ("kp:trace:1", 1))
    assert again[2] == pytest.approx(second[2], abs=1e-6)  # from the one other trace, not from itself
    assert len(flow.rows(b"gate/v")) == 2


async def test_what_was_accepted_and_is_now_rejected_is_taken_back() -> None:
    flow = whole()
    for number, confidence in enumerate((1.0, 0.0, 0.9)):
        flow.send(TOPICS.traces, trace(1, outcome={"confidence": confidence}), at=number)
        await flow.finish()

    network = flow.read(TOPICS.network)
    assert [m.key for m in network] == [b"kp:trace:1"] * 3
    assert [m.value is None for m in network] == [False, True, False]
    assert [s["details"]["decision"] for s in flow.results("gate")] == ["accepted", "rejected", "accepted"]


async def test_a_trace_that_its_scope_has_forgotten_is_taken_back_by_a_later_segment() -> None:
    flow = whole(b'{"gate": {"threshold": 0.6, "cache_size": 1}}')
    flow.send(TOPICS.traces, trace(1), at=0)
    flow.send(TOPICS.traces, trace(2, "other"), at=1)
    await flow.finish()
    await pass_to(flow, 1_200)
    flow.send(TOPICS.traces, trace(1, metadata={"visibility": "private"}))
    await flow.finish()

    assert [(m.key, m.value is None) for m in flow.read(TOPICS.network)][-1] == (b"kp:trace:1", True)


async def test_a_replayed_revision_that_is_older_does_not_stand_for_what_was_given() -> None:
    flow = Flow(stages=("score", "gate"), plan=read_plan(CONFIG), embedder=HashingEmbedder())
    for revision, confidence in ((1, 1.0), (0, 0.9), (2, 0.9)):
        document = {
            "session_id": "s",
            "segment": 0,
            "revision": revision,
            "closed_because": "idle",
            "first_record_at": "2026-01-01T00:00:00Z",
            "last_record_at": "2026-01-01T00:00:01Z",
            "events": [],
            "traces": [trace(1, outcome={"confidence": confidence})],
        }
        flow.pass_time(10)
        flow.send(TOPICS.sessions, document, b"s")
        await flow.settle()

    decided = [(s["revision"], s["details"]["reasons"]) for s in flow.results("gate")]
    assert decided == [(1, []), (0, ["superseded"]), (2, [])]


async def test_a_session_that_claims_to_be_of_the_far_future_makes_nothing_forgotten() -> None:
    flow = whole()
    flow.send(TOPICS.traces, trace(1), at=0)
    await flow.finish()
    (message,) = flow.read(TOPICS.sessions)
    other = {**message.json, "session_id": "far", "traces": [], "last_record_at": "9999-01-01T00:00:00Z"}
    flow.send(TOPICS.sessions, other, b"far")
    await flow.settle()
    await send(flow, "late", 1)
    await flow.finish()

    assert flow.counters("score")["unchanged"] == 1


async def test_a_trace_that_is_revised_into_another_scope_and_rejected_there_is_taken_back() -> None:
    flow = whole()
    flow.send(TOPICS.traces, trace(1), at=0)
    await flow.finish()
    flow.send(TOPICS.traces, trace(1, domain="finance", outcome={"confidence": 0.0}), at=1)
    await flow.finish()

    assert [m.value is None for m in flow.read(TOPICS.network)] == [False, True]


async def test_revisions_of_one_session_are_scored_one_after_the_other_and_of_others_beside_them() -> None:
    flow = Flow(stages=("score",), plan=read_plan(CONFIG), hold=HeldScoring)
    assert isinstance(flow.scoring, HeldScoring)
    for name, revision in (("s", 0), ("s", 1), ("t", 0)):
        document = {
            "session_id": name,
            "segment": 0,
            "revision": revision,
            "closed_because": "idle",
            "first_record_at": "2026-01-01T00:00:00Z",
            "last_record_at": "2026-01-01T00:00:01Z",
            "events": [],
            "traces": [trace(name, name, outcome={"confidence": revision / 4})],
        }
        Session.model_validate_json(orjson.dumps(document))
        flow.send(TOPICS.sessions, document, name.encode())
    await flow.settle()
    assert flow.scoring.waiting == ["s", "t"]

    while flow.scoring.waiting:
        flow.scoring.release(flow.scoring.waiting[-1])
        await flow.settle()

    told = [(m.json["session_id"], m.json["revision"]) for m in flow.read(TOPICS.candidates)]
    assert told == [("t", 0), ("s", 0), ("s", 1)]


async def test_what_was_given_is_forgotten_when_a_session_cannot_come_again() -> None:
    flow = whole()
    flow.send(TOPICS.traces, trace(1, "old"), at=0)
    await flow.finish()
    assert len(flow.rows(b"score/t")) == 1
    flow.pass_time(1_500)
    flow.send(TOPICS.traces, trace(2, "young"))
    await flow.finish()

    assert [key[:12] for key in flow.rows(b"score/t")] == [b"score/tyoung"]

"""Revisions of a session revise its scores, its candidates, its decisions and the network topic."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.flow import TOPICS, advance_to, send_event

from traceweir.schemas.session import Session
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.testing import Flow, HeldScoring, trace

CONFIG = b'{"criteria": {"response_match_score": 0.5}, "gate": {"threshold": 0.6, "cache_size": 3}}'
REQUIRING = (
    b'{"criteria": {"response_match_score": 0.5}, "gate": {"threshold": 0, "required": ["response_match_score"]}}'
)


def all_stages(config: bytes = CONFIG, **options: Any) -> Flow:
    return Flow(plan=read_plan(config), embedder=HashingEmbedder(), **options)


async def test_revised_scores_keep_their_ids() -> None:
    flow = all_stages()
    reference = {"final_response": {"role": "model", "parts": [{"text": "yes indeed"}]}}
    answer = {"final_response": {"role": "model", "parts": [{"text": "yes indeed"}]}}
    await send_event(flow, "a", 0, kind="invocation.started", reference=reference)
    await advance_to(flow, 301)
    await send_event(flow, "b", 1, kind="invocation.completed", **answer)
    await flow.finish()

    scores = {(s["level"], s["revision"]): s for s in flow.results("response_match_score")}
    assert set(scores) == {("invocation", 0), ("session", 0), ("invocation", 1), ("session", 1)}
    for level in ("invocation", "session"):
        assert scores[level, 0]["result_id"] == scores[level, 1]["result_id"]
        assert scores[level, 1]["value"] == 1.0
    assert len({(s["result_id"], s["revision"]) for s in flow.results()}) == len(flow.results())


async def test_a_revision_with_unchanged_traces_publishes_no_candidate_also_after_a_restart() -> None:
    for crash in (False, True):
        flow = all_stages()
        flow.send(TOPICS.traces, trace(1), at=0)
        await send_event(flow, "first", 0)
        await advance_to(flow, 301)
        if crash:
            flow.crash()
        await send_event(flow, "late", 1)
        await flow.finish()

        assert [s["revision"] for s in flow.sessions()] == [0, 1]
        assert [m.json["revision"] for m in flow.read(TOPICS.candidates)] == [0]
        assert flow.counters("score")["unchanged"] == 1
        assert [s["revision"] for s in flow.results("gate")] == [0]


async def test_a_revision_publishes_only_new_and_changed_traces_as_candidates() -> None:
    flow = all_stages()
    for number in (1, 2):
        flow.send(TOPICS.traces, trace(number), at=0)
    await flow.finish()
    flow.send(TOPICS.traces, trace(2, outcome={"confidence": 0.5}), at=2)
    flow.send(TOPICS.traces, trace(3), at=3)
    await flow.finish()

    published = [(m.json["revision"], m.json["trace"]["id"]) for m in flow.read(TOPICS.candidates)]
    assert published == [(0, "kp:trace:1"), (0, "kp:trace:2"), (1, "kp:trace:2"), (1, "kp:trace:3")]
    assert [(s["revision"], s["trace_id"]) for s in flow.results("gate")] == published


async def test_a_trace_is_a_candidate_again_if_the_status_of_a_required_criterion_changes() -> None:
    flow = all_stages(REQUIRING)
    flow.send(TOPICS.traces, trace(1), at=0)
    expected = {"role": "model", "parts": [{"text": "a b c"}]}
    await send_event(flow, "a", 0, kind="invocation.started", reference={"final_response": expected})
    await advance_to(flow, 301)
    await send_event(flow, "b", 1, kind="invocation.completed", final_response=expected)
    await flow.finish()

    statuses = [m.json["required"]["response_match_score"]["status"] for m in flow.read(TOPICS.candidates)]
    assert (statuses[0] != "PASSED", statuses[1:]) == (True, ["PASSED"])
    assert [s["details"]["decision"] for s in flow.results("gate")] == ["rejected", "accepted"]


async def test_a_revised_trace_replaces_its_own_vector_and_is_not_compared_with_it() -> None:
    flow = all_stages()
    flow.send(TOPICS.traces, trace(1, task={"objective": "Feed the cat"}), at=0)
    flow.send(TOPICS.traces, trace(2, "other", task={"objective": "Repair a steam engine"}), at=1)
    await flow.finish()
    flow.send(TOPICS.traces, trace(1, task={"objective": "Feed the cat"}, outcome={"confidence": 0.9}), at=2)
    await flow.finish()

    novelties = [(s["trace_id"], s["revision"], s["details"]["novelty"]) for s in flow.results("trace_value")]
    first, second, again = novelties
    assert (first[:2], second[:2], again[:2]) == (("kp:trace:1", 0), ("kp:trace:2", 0), ("kp:trace:1", 1))
    assert again[2] == pytest.approx(second[2], abs=1e-6)  # The distance to the only other trace.
    assert len(flow.rows(b"gate/v")) == 2


async def test_an_accepted_trace_that_a_revision_rejects_has_a_tombstone() -> None:
    flow = all_stages()
    for number, confidence in enumerate((1.0, 0.0, 0.9)):
        flow.send(TOPICS.traces, trace(1, outcome={"confidence": confidence}), at=number)
        await flow.finish()

    network = flow.read(TOPICS.network)
    assert [m.key for m in network] == [b"kp:trace:1"] * 3
    assert [m.value is None for m in network] == [False, True, False]
    assert [s["details"]["decision"] for s in flow.results("gate")] == ["accepted", "rejected", "accepted"]


async def test_a_later_segment_that_rejects_a_trace_writes_a_tombstone_after_its_scope_forgot_the_trace() -> None:
    flow = all_stages(b'{"gate": {"threshold": 0.6, "cache_size": 1}}')
    flow.send(TOPICS.traces, trace(1), at=0)
    flow.send(TOPICS.traces, trace(2, "other"), at=1)
    await flow.finish()
    await advance_to(flow, 1_200)
    flow.send(TOPICS.traces, trace(1, metadata={"visibility": "private"}))
    await flow.finish()

    assert [(m.key, m.value is None) for m in flow.read(TOPICS.network)][-1] == (b"kp:trace:1", True)


async def test_a_replayed_older_revision_is_superseded_and_the_next_revision_is_compared_with_the_newest() -> None:
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


async def test_a_session_with_a_time_in_the_far_future_expires_no_digest() -> None:
    flow = all_stages()
    flow.send(TOPICS.traces, trace(1), at=0)
    await send_event(flow, "first", 0)
    await flow.finish()
    (message,) = flow.read(TOPICS.sessions)
    other = {**message.json, "session_id": "far", "traces": [], "last_record_at": "9999-01-01T00:00:00Z"}
    flow.send(TOPICS.sessions, other, b"far")
    await flow.settle()
    await send_event(flow, "late", 1)
    await flow.finish()

    assert flow.counters("score")["unchanged"] == 1


async def test_a_trace_that_moves_to_another_scope_and_is_rejected_there_has_a_tombstone() -> None:
    flow = all_stages()
    flow.send(TOPICS.traces, trace(1), at=0)
    await flow.finish()
    flow.send(TOPICS.traces, trace(1, domain="finance", outcome={"confidence": 0.0}), at=1)
    await flow.finish()

    assert [m.value is None for m in flow.read(TOPICS.network)] == [False, True]


async def test_revisions_of_one_session_are_scored_in_order_and_other_sessions_concurrently() -> None:
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

    published = [(m.json["session_id"], m.json["revision"]) for m in flow.read(TOPICS.candidates)]
    assert published == [("t", 0), ("s", 0), ("s", 1)]


async def test_the_digests_of_a_session_are_deleted_when_it_can_no_longer_be_revised() -> None:
    flow = all_stages()
    flow.send(TOPICS.traces, trace(1, "old"), at=0)
    await flow.finish()
    assert len(flow.rows(b"score/t")) == 1
    flow.pass_time(1_500)
    flow.send(TOPICS.traces, trace(2, "young"))
    await flow.finish()

    assert [key[:12] for key in flow.rows(b"score/t")] == [b"score/tyoung"]

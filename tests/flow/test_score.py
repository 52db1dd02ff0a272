"""Score: sessions finish in any order and once each, and a hanging session does not delay the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest
from tests.support import judge_retries
from tests.support.flow import TOPICS

from traceweir.schemas.session import Session
from traceweir.scorers.embedding import Vectors
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.sessions.options import ScoringOptions
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring
from traceweir.streams.testing import START_S, Flow, HeldScoring, event, instant, trace
from traceweir.streams.worker.runtime.checkpoint_rows import OFFSETS

CONFIG = b'{"criteria": {"response_match_score": 0.5}, "gate": {"required": ["response_match_score"]}}'


def session(name: str, **changes: Any) -> dict[str, Any]:
    return judge_retries.session(name, **{"events": [], **changes})


def held(**options: Any) -> tuple[Flow, HeldScoring]:
    flow = Flow(stages=("score",), plan=read_plan(CONFIG), hold=HeldScoring, **options)
    assert isinstance(flow.scoring, HeldScoring)
    return flow, flow.scoring


async def release(flow: Flow, scoring: HeldScoring, *names: str) -> None:
    for name in names:
        scoring.release(name)
        await flow.run_scoring()


def offset(flow: Flow) -> int:
    offsets: dict[str, int] = orjson.loads(flow.rows(OFFSETS)[OFFSETS])
    return offsets.get(TOPICS.sessions, 0)


def scored(flow: Flow) -> list[str]:
    return [orjson.loads(message.value or b"")["session_id"] for message in flow.read(TOPICS.candidates)]


async def test_all_sessions_below_the_committed_offset_are_finished() -> None:
    flow, scoring = held()
    for name in "abcdef":
        flow.send(TOPICS.sessions, session(name))
    await flow.settle()
    assert offset(flow) == 0

    for name, mark in (("c", 0), ("b", 0), ("f", 0), ("a", 3), ("e", 3), ("d", 6)):
        await release(flow, scoring, name)
        flow.checkpoint()
        assert offset(flow) == mark

    assert scored(flow) == ["c", "b", "f", "a", "e", "d"]
    assert flow.rows(b"score/d") == {}
    flow.crash()
    await flow.settle()
    assert len(scoring.begun) == 6


async def test_finished_sessions_above_the_committed_offset_are_not_scored_again_after_a_crash() -> None:
    flow, scoring = held()
    for name in "abcdef":
        flow.send(TOPICS.sessions, session(name))
    await flow.settle()
    await release(flow, scoring, "b", "d")
    flow.checkpoint()
    await release(flow, scoring, "a", "e")  # Finished, but not committed.
    flow.crash()
    await release(flow, scoring, "c")  # It belongs to the lane that was closed, so it publishes nothing.
    scoring.begun.clear()

    await flow.take(TOPICS.sessions, 2)
    await flow.run_scoring()
    await release(flow, scoring, "a")
    flow.checkpoint()
    assert offset(flow) == 2
    await flow.settle()
    assert scoring.begun == ["a", "c", "e", "f"]
    await release(flow, scoring, "c", "e", "f")
    flow.checkpoint()

    assert sorted(scored(flow)) == list("abcdef")
    assert (offset(flow), flow.rows(b"score/d")) == (6, {})
    counters = flow.counters("score")
    assert (counters["consumed"], counters["scored"], counters["candidates"]) == (6, 6, 6)


async def test_offsets_without_a_record_do_not_block_the_committed_offset() -> None:
    flow, scoring = held()
    for number, name in enumerate("abcdef"):
        flow.send(TOPICS.sessions, session(name) if number % 2 else None)
    log = flow.logs[TOPICS.sessions, 0]
    lane = flow.lanes[0]
    await lane.take(TOPICS.sessions, [log[1], log[3]])  # Transaction markers leave such gaps.
    await lane.take(TOPICS.sessions, [log[5]])
    await flow.run_scoring()
    await release(flow, scoring, "d", "f")
    flow.checkpoint()
    flow.crash()
    lane = flow.lanes[0]
    await lane.take(TOPICS.sessions, [log[1], log[3], log[5]])
    await flow.run_scoring()
    await release(flow, scoring, "b")
    flow.checkpoint()

    assert (offset(flow), flow.rows(b"score/d"), sorted(scored(flow))) == (6, {}, ["b", "d", "f"])


async def test_a_hanging_session_does_not_delay_other_sessions() -> None:
    flow, scoring = held(score_window=5, score_concurrency=2)
    names = [str(number) for number in range(40)]
    for name in ["hangs", *names]:
        flow.send(TOPICS.sessions, session(name))
    while len(scored(flow)) < len(names):
        assert not flow.lanes[0].full(TOPICS.sessions, 20_000)
        await flow.take(TOPICS.sessions, 1)
        await flow.run_scoring()
        for name in scoring.waiting:
            if name != "hangs":
                await release(flow, scoring, name)
        flow.checkpoint()

    assert (scored(flow), offset(flow)) == (names, 0)
    assert len(flow.rows(b"score/d")[b"score/d"]) == 17  # The row holds one range instead of 40 numbers.
    await release(flow, scoring, "hangs")
    flow.checkpoint()
    assert offset(flow) == 41


async def test_reading_pauses_while_the_window_is_full_of_hanging_sessions() -> None:
    flow, scoring = held(score_window=3)
    for name in "abcde":
        flow.send(TOPICS.sessions, session(name))
    for _ in range(3):
        assert not flow.lanes[0].full(TOPICS.sessions, 20_000)
        await flow.take(TOPICS.sessions, 1)
        await flow.run_scoring()
    assert flow.lanes[0].full(TOPICS.sessions, 20_000)
    await release(flow, scoring, "b")
    assert not flow.lanes[0].full(TOPICS.sessions, 20_000)


@pytest.mark.parametrize(("concurrency", "window"), [(2, 200), (70, 210)])
async def test_the_default_window_is_three_times_the_concurrency_and_at_least_200(
    concurrency: int, window: int
) -> None:
    flow, scoring = held(score_concurrency=concurrency)
    for number in range(window):
        assert not flow.lanes[0].full(TOPICS.sessions, 20_000)
        flow.send(TOPICS.sessions, session(str(number)))
        await flow.take(TOPICS.sessions, 1)
    await flow.run_scoring()
    assert (flow.lanes[0].full(TOPICS.sessions, 20_000), len(scoring.waiting)) == (True, concurrency)


async def test_only_the_newest_revision_behind_a_hanging_revision_is_scored() -> None:
    flow, scoring = held(score_window=3)
    for revision in range(20):
        flow.send(TOPICS.sessions, session("s", revision=revision), b"s")
        assert not flow.lanes[0].full(TOPICS.sessions, 20_000)
        await flow.take(TOPICS.sessions, 1)
        await flow.run_scoring()
    flow.checkpoint()
    assert offset(flow) == 0
    await release(flow, scoring, "s")
    await release(flow, scoring, "s")
    flow.checkpoint()

    sent = [orjson.loads(message.value or b"")["revision"] for message in flow.read(TOPICS.results)]
    assert (sorted(set(sent)), offset(flow)) == ([0, 19], 20)
    counters = flow.counters("score")
    assert (counters["consumed"], counters["scored"], counters["superseded"]) == (20, 2, 18)


async def test_a_new_session_with_a_used_id_supersedes_no_earlier_session() -> None:
    flow, scoring = held()
    reused = [session("s", first_record_at=instant(at), last_record_at=instant(at + 1)) for at in (0, 9_000, 18_000)]
    for each in reused:
        flow.send(TOPICS.sessions, each, b"s")
    flow.send(TOPICS.sessions, session("s", revision=1), b"s")  # A replayed revision of the first session.
    await flow.settle()
    for _ in range(4):
        await release(flow, scoring, "s")
    flow.checkpoint()
    assert (flow.counters("score")["scored"], flow.counters("score").get("superseded", 0)) == (4, 0)


async def test_a_waiting_revision_is_superseded_only_by_a_later_revision_of_its_segment() -> None:
    flow, scoring = held()
    versions = [(0, 0), (0, 2), (1, 0), (0, 1), (1, 1), (0, 2)]  # A replay sends the earlier and the equal one.
    for segment, revision in versions:
        flow.send(TOPICS.sessions, session("s", segment=segment, revision=revision), b"s")
    flow.send(TOPICS.sessions, b"{}", key=b"s")
    flow.send(TOPICS.sessions, b"no json", key=b"s")
    await flow.settle()
    for _ in range(3):
        await release(flow, scoring, "s")
    flow.checkpoint()

    tried = [(r["segment"], r["revision"]) for r in flow.results() if r["level"] == "session"]
    assert list(dict.fromkeys(tried)) == [(0, 0), (1, 1), (0, 2)]
    counters = flow.counters("score")
    assert (counters["scored"], counters["superseded"], counters["dead_lettered.unreadable_session"]) == (3, 3, 2)
    assert offset(flow) == len(versions) + 2


async def test_the_number_of_sessions_in_flight_is_bounded_by_the_pool() -> None:
    flow, scoring = held(score_concurrency=3)
    for number in range(10):
        flow.send(TOPICS.sessions, session(str(number)))
    await flow.settle()

    assert scoring.waiting == ["0", "1", "2"]
    await release(flow, scoring, "1")
    assert scoring.waiting == ["0", "2", "3"]


async def test_the_number_of_bytes_in_flight_is_bounded_by_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceweir.streams.pipeline.score.stage.WINDOW_BYTES", 2_000)
    flow, scoring = held()
    for name in "abc":
        flow.send(TOPICS.sessions, session(name))
    size = len(flow.read(TOPICS.sessions)[0].value or b"")
    assert 1_000 > size > 667
    for _ in "abc":
        assert not flow.lanes[0].full(TOPICS.sessions, 20_000)
        await flow.take(TOPICS.sessions, 1)
    await flow.run_scoring()
    assert flow.lanes[0].full(TOPICS.sessions, 20_000)

    await release(flow, scoring, "b")
    assert not flow.lanes[0].full(TOPICS.sessions, 20_000)


@pytest.mark.parametrize("value", [b"", None, b"{", orjson.dumps({**session("x"), "events": [{}]}), b"[" * 5_000])
async def test_an_unreadable_session_is_a_dead_letter_and_the_next_is_scored(value: bytes | None) -> None:
    flow = Flow(stages=("score",))
    flow.send(TOPICS.sessions, value, b"x")
    flow.send(TOPICS.sessions, session("good"))
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.key, letter.offset) == ("unreadable_session", "score", b"x", 0)
    assert scored(flow) == ["good"]
    assert offset(flow) == 2
    counters = flow.counters("score")
    assert (counters["consumed"], counters["scored"], counters["dead_lettered.unreadable_session"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ZeroDivisionError("by zero\nindeed"), "ZeroDivisionError: by zero\\nindeed"),
        (asyncio.CancelledError(), "CancelledError: "),
    ],
)
async def test_a_session_that_fails_the_scoring_is_a_dead_letter_and_the_next_is_scored(
    error: BaseException, detail: str
) -> None:
    def hold(inner: Any) -> Any:
        async def scoring(one: Any, known: Any, attempt: int) -> Any:
            if one.session_id == "bad":
                raise error
            return await inner(one, known, attempt)

        return scoring

    flow = Flow(stages=("score",), hold=hold, score_concurrency=1)
    for name in ("bad", "good"):
        flow.send(TOPICS.sessions, session(name))
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.detail) == ("scoring_failed", detail)
    assert scored(flow) == ["good"]


async def test_a_hanging_embedder_delays_a_session_by_the_timeout_at_most() -> None:
    go_on = threading.Event()

    class Stuck:
        id, dimensions, runs_inline = "stuck", 2, False

        def embed(self, texts: Sequence[str]) -> Vectors:
            go_on.wait()
            return np.ones((len(texts), 2), np.float32)

    scoring = SessionScoring(read_plan(CONFIG), Stuck(), utc_now, ScoringOptions(0.01))
    result = await scoring(Session.model_validate_json(orjson.dumps(session("a", traces=[trace(1), trace(2)]))))
    go_on.set()

    assert [orjson.loads(each.value)["novelty_missing"] for each in result.candidates] == ["embedder_error"] * 2


async def test_a_trace_without_invocations_has_scores_for_a_derived_invocation() -> None:
    flow = Flow(stages=("score",), plan=read_plan(CONFIG))
    flow.send(TOPICS.sessions, session("s"))
    await flow.settle()

    levels = [(score["level"], score["invocation_id"], score["not_evaluated_because"]) for score in flow.results()]
    assert levels == [("invocation", "kp:trace:s", "missing_input"), ("session", None, "missing_input")]
    (candidate,) = flow.read(TOPICS.candidates)
    assert candidate.json["required"] == {
        "response_match_score": {"status": "NOT_EVALUATED", "not_evaluated_because": "missing_input"}
    }


async def test_a_trace_whose_invocation_comes_late_leaves_no_result_that_a_revision_does_not_replace() -> None:
    flow = Flow(stages=("score",), plan=read_plan(CONFIG))
    named = trace(1, "s", metadata={"invocation_id": "i"})
    answer = event("invocation.completed", "s", invocation_id="i", final_response={"parts": [{"text": "It ships."}]})
    flow.send(TOPICS.sessions, session("s", traces=[named], events=[]))
    flow.send(TOPICS.sessions, session("s", revision=1, traces=[named], events=[answer]))
    await flow.settle()

    last = {score["result_id"]: score for score in flow.results()}
    assert {score["revision"] for score in last.values()} == {1}
    assert [score["invocation_id"] for score in last.values()] == [None, "i"]


async def test_a_session_without_traces_publishes_no_candidate() -> None:
    flow = Flow(plan=read_plan(CONFIG))
    said = {"parts": [{"text": "It ships today."}]}
    flow.send(
        TOPICS.invocations, event("invocation.completed", final_response=said, reference={"final_response": said})
    )
    await flow.finish()

    assert [(score["level"], score["value"]) for score in flow.results()] == [("invocation", 1.0), ("session", 1.0)]
    assert flow.read(TOPICS.candidates) == []
    assert "candidates" not in {name for name, count in flow.counters("score").items() if count}


async def test_a_candidate_has_its_scope_as_key_and_contains_its_embedding() -> None:
    flow = Flow(partitions=1, stages=("score",), embedder=HashingEmbedder())
    first, second = trace(1, "s", domain="Travel"), trace(2, "s", domain="ＴＲＡＶＥＬ")
    flow.send(TOPICS.sessions, session("s", traces=[first, second]))
    await flow.settle()

    made = flow.read(TOPICS.candidates)
    assert [message.key for message in made] == [b"travel@hashing@1"] * 2
    assert [message.json["embedding"]["dimensions"] for message in made] == [384, 384]
    assert made[0].json["candidate_id"] != made[1].json["candidate_id"]


async def test_the_evaluation_time_of_a_score_comes_from_the_clock() -> None:
    flow = Flow(plan=read_plan(CONFIG))
    flow.send(TOPICS.traces, trace())
    await flow.settle()
    flow.pass_time(1_000)
    await flow.settle()

    assert {score["evaluated_at"] for score in flow.results()} == {instant(flow.now - START_S)}
    assert {score["occurred_at"] for score in flow.results()} == {instant(0)}

"""A challenger scores a part of the live sessions beside the champion, which notices nothing of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from traceweir.scorers.evaluation.plan import Challenger, read_plan
from traceweir.scorers.evaluation.runner import sampling_point
from traceweir.streams.pipeline.score import challenger_rows
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.errors import ChallengerUnavailable, SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.testing import Flow, HeldScoring, event, trace

CHAMPION: dict[str, Any] = {"criteria": {"latency": {}}}
CHALLENGER: dict[str, Any] = {"criteria": {"tool_call_accuracy": {"expected_tool": "find", "threshold": 0.5}}}


def with_challenger(name: str = "v2", config: dict[str, Any] = CHALLENGER, **section: Any) -> dict[str, Any]:
    return CHAMPION | {"challenger": {"name": name, "config": config, **section}}


def flow_of(file: dict[str, Any] = CHAMPION, **options: Any) -> Flow:
    return Flow(read_plan(file), close_linger_s=0, idle_gap_s=60, grace_s=0, **options)


async def score(flow: Flow, *sessions: str) -> None:
    for session in sessions:
        flow.send(flow.topics.invocations, event(session_id=session))
        flow.send(flow.topics.invocations, event("session.ended", session))
    await flow.settle()
    flow.pass_time(1)
    await flow.settle()


def challenged(flow: Flow, name: str = "v2") -> list[str]:
    """Returns the sessions that the challenger has scored, each once for each time."""
    return sorted(each["session_id"] for each in flow.challenger_results(name) if each["level"] == "session")


def counts(flow: Flow) -> dict[str, int]:
    return {name: number for name, number in flow.counters("score").items() if name.startswith("challenger.")}


def committed(flow: Flow) -> list[tuple[str, bytes | None]]:
    topics = (flow.topics.results, flow.topics.candidates, flow.topics.network, flow.topics.dead_letters)
    return [(topic, message.value) for topic in topics for message in flow.read(topic)]


async def test_a_challenger_scores_into_its_own_topic_with_its_own_digest() -> None:
    flow = flow_of()
    champion = flow.push_config(with_challenger())
    await score(flow, "a", "b")
    assert challenged(flow) == ["a", "b"]
    scores = flow.challenger_results("v2")
    assert {each["metric"] for each in scores} == {"tool_call_accuracy"}
    assert {each["config_digest"] for each in scores} == {read_plan(CHALLENGER).digest}
    assert {each["config_digest"] for each in flow.results()} == {champion} == {read_plan(CHAMPION).digest}


async def test_the_file_of_a_worker_can_have_a_challenger_too() -> None:
    flow = flow_of(with_challenger())
    await score(flow, "a")
    assert challenged(flow) == ["a"]


async def test_everything_else_is_the_same_with_and_without_a_challenger() -> None:
    flows = flow_of(), flow_of()
    flows[0].push_config(CHAMPION)
    flows[1].push_config(with_challenger())
    for flow in flows:
        flow.send(flow.topics.traces, trace(1, session_id="a"))
        await score(flow, "a", "b")
        await flow.finish()
    assert committed(flows[0]) == committed(flows[1])
    assert challenged(flows[1]) == ["a", "b"]


async def test_a_sample_is_the_one_of_a_shadow_and_larger_ones_hold_smaller_ones() -> None:
    names = [f"s{number}" for number in range(60)]
    taken = []
    for sample in (0.2, 0.5):
        flow = flow_of()
        flow.push_config(with_challenger(sample=sample))
        await score(flow, *names)
        taken.append(set(challenged(flow)))
        assert taken[-1] == {name for name in names if sampling_point(name) < sample}
    assert taken[0] < taken[1]


async def test_sessions_of_an_app_without_a_challenger_are_left_alone() -> None:
    flow = flow_of()
    flow.push_config(CHAMPION)
    flow.push_config(with_challenger(), app="travel")
    for session, app in (("a", "travel"), ("b", "cooking")):
        flow.send(flow.topics.invocations, event(session_id=session, app_name=app))
        flow.send(flow.topics.invocations, event("session.ended", session, app_name=app))
    await score(flow)
    assert challenged(flow) == ["a"]


async def test_the_champion_is_published_while_the_challenger_still_works() -> None:
    flow = flow_of(hold=HeldScoring)
    assert isinstance(flow.scoring, HeldScoring)
    flow.push_config(with_challenger())
    await score(flow, "a")
    flow.scoring.release("a")
    await flow.settle()
    assert [each["session_id"] for each in flow.results("agent/latency_seconds") if each["level"] == "session"] == ["a"]
    assert (flow.scoring.waiting, challenged(flow), len(flow.rows(b"score/w"))) == (["a"], [], 1)
    flow.scoring.release("a")
    await flow.settle()
    assert (challenged(flow), flow.rows(b"score/w"), counts(flow)) == (["a"], {}, {"challenger.scored": 1})


async def test_a_session_that_waits_survives_a_crash_and_is_scored_once() -> None:
    flow = flow_of(hold=HeldScoring)
    assert isinstance(flow.scoring, HeldScoring)
    flow.push_config(with_challenger())
    await score(flow, "a", "b")
    flow.scoring.release("a")
    flow.scoring.release("b")
    await flow.settle()
    flow.scoring.release("a")
    await flow.run_scoring()  # the challenger's scores of `a` are in memory only
    flow.crash()
    await flow.settle()
    for _ in range(3):
        for name in "ab":
            flow.scoring.release(name)
        await flow.settle()
        flow.pass_time(1)
    flow.crash()
    flow.pass_time(1)
    await flow.settle()
    assert challenged(flow) == ["a", "b"]
    assert Counter(each["session_id"] for each in flow.results("agent/latency_seconds")) == {"a": 2, "b": 2}


async def test_an_uncommitted_session_is_scored_by_both_after_a_crash() -> None:
    flow = flow_of()
    flow.push_config(with_challenger())
    for kind in ("invocation.completed", "session.ended"):
        flow.send(flow.topics.invocations, event(kind, "a"))
    await flow.settle()
    flow.pass_time(1)
    flow.checkpoint()
    await flow.take(flow.topics.sessions)
    await flow.run_scoring()
    flow.crash()
    await flow.settle()
    assert challenged(flow) == ["a"]
    assert Counter(score["level"] for score in flow.results()) == {"invocation": 1, "session": 1}


async def test_a_challenger_that_is_no_longer_in_effect_ends_at_once() -> None:
    flow = flow_of(hold=HeldScoring)
    assert isinstance(flow.scoring, HeldScoring)
    flow.push_config(with_challenger())
    flow.refused_topics.add(flow.topics.shadow_results("v2"))  # so that its sessions wait
    await score(flow, "a")
    flow.scoring.release("a")
    await flow.settle()
    assert len(flow.rows(b"score/w")) == 1
    flow.push_config(CHAMPION, version=2)
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert (flow.rows(b"score/w"), counts(flow)) == ({}, {"challenger.ended": 1})


async def test_promotion_makes_the_challenger_the_champion_of_the_next_session() -> None:
    flow = flow_of()
    flow.push_config(with_challenger())
    await score(flow, "a")
    promoted = flow.push_config(CHALLENGER, version=2)
    await score(flow, "b")
    assert challenged(flow) == ["a"]
    assert {each["config_digest"] for each in flow.results() if each["session_id"] == "b"} == {promoted}


async def test_a_topic_that_cannot_be_written_keeps_sessions_waiting_and_the_champion_goes_on() -> None:
    flow = flow_of()
    topic = flow.topics.shadow_results("v2")
    flow.refused_topics.add(topic)
    flow.push_config(with_challenger())
    await score(flow, "a")
    assert [each["session_id"] for each in flow.results() if each["level"] == "session"] == ["a"]
    assert challenged(flow) == []
    flow.refused_topics.clear()
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert challenged(flow) == ["a"]


async def test_beyond_the_limit_a_new_session_is_not_scored_by_the_challenger(monkeypatch: Any) -> None:
    monkeypatch.setattr(challenger_rows, "MAX_WAITING", 2)
    flow = flow_of()
    flow.refused_topics.add(flow.topics.shadow_results("v2"))
    flow.push_config(with_challenger())
    await score(flow, "a", "b", "c")
    assert (len(flow.rows(b"score/w")), counts(flow)) == (2, {"challenger.dropped": 1})


async def test_a_later_revision_takes_the_place_of_one_that_waits() -> None:
    flow = Flow(read_plan(CHAMPION), close_linger_s=0, idle_gap_s=60, grace_s=60)
    flow.refused_topics.add(flow.topics.shadow_results("v2"))
    flow.push_config(with_challenger())
    await score(flow, "a")
    flow.send(flow.topics.invocations, event(session_id="a", invocation_id="late"))
    await flow.finish()
    flow.refused_topics.clear()
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert {each["revision"] for each in flow.challenger_results("v2")} == {1}
    assert {each["revision"] for each in flow.results()} == {0, 1}
    assert counts(flow) == {"challenger.superseded": 1, "challenger.scored": 1}


class _Slow(Flow):
    """A flow whose challenger ends its first session when the test says so."""

    first = True

    async def score_by_challenger(
        self, challenger: Challenger, raw: bytes, known: Sequence[JudgeVerdict]
    ) -> ScoringResult:
        if self.first:
            self.first, self.go = False, asyncio.Event()
            await self.go.wait()
        return await super().score_by_challenger(challenger, raw, known)


async def test_a_revision_that_comes_while_the_earlier_one_is_scored_takes_its_place() -> None:
    flow = _Slow(read_plan(CHAMPION), close_linger_s=0, idle_gap_s=60, grace_s=60)
    flow.push_config(with_challenger())
    await score(flow, "a")  # the challenger has begun with the first revision
    flow.refused_topics.add(flow.topics.shadow_results("v2"))  # so that the second one waits
    flow.send(flow.topics.invocations, event(session_id="a", invocation_id="late"))
    await flow.finish()
    flow.refused_topics.clear()
    flow.go.set()
    await flow.settle()
    assert (flow.challenger_results("v2"), len(flow.rows(b"score/w"))) == ([], 1)
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert {each["revision"] for each in flow.challenger_results("v2")} == {1}
    assert counts(flow) == {"challenger.superseded": 1, "challenger.scored": 1}


async def test_a_config_for_all_on_the_topic_ends_the_challenger_of_the_file() -> None:
    flow = flow_of(with_challenger())
    flow.refused_topics.add(flow.topics.shadow_results("v2"))
    await score(flow, "a")
    flow.push_config(CHAMPION, app="other")
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert len(flow.rows(b"score/w")) == 1
    flow.push_config(CHAMPION)
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert counts(flow) == {"challenger.ended": 1}


async def test_a_worker_that_has_read_less_of_the_topic_than_the_former_owner_keeps_a_session_waiting() -> None:
    flow = flow_of()
    flow.push_config(with_challenger())
    flow.refused_topics.add(flow.topics.shadow_results("v2"))
    await score(flow, "a")
    late = flow.configs[0]
    flow.crash()
    flow.refused_topics.clear()
    behind = flow.configs[0]
    behind.position, behind.current = 0, ()  # as if it had read nothing yet
    flow.pass_time(1)
    await flow.settle()
    assert (len(flow.rows(b"score/w")), challenged(flow)) == (1, [])
    behind.current = late.current
    behind.note_position(late.position)
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert challenged(flow) == ["a"]


class _Failing(Flow):
    error: Exception

    async def score_by_challenger(
        self, challenger: Challenger, raw: bytes, known: Sequence[JudgeVerdict]
    ) -> ScoringResult:
        raise self.error


async def test_a_session_that_the_challenger_cannot_score_costs_nothing_else() -> None:
    for error, counter in (
        (SessionRejected("poison", "it killed the process"), "challenger.rejected.poison"),
        (ValueError("a bug"), "challenger.failed"),
    ):
        flow = _Failing(read_plan(CHAMPION), close_linger_s=0, idle_gap_s=60, grace_s=0)
        flow.error = error
        flow.push_config(with_challenger())
        await score(flow, "a")
        assert (counts(flow), flow.dead_letters(), flow.rows(b"score/w")) == ({counter: 1}, [], {})
        assert [each["session_id"] for each in flow.results() if each["level"] == "session"] == ["a"]


async def test_a_process_that_does_not_start_keeps_sessions_waiting() -> None:
    flow = _Failing(read_plan(CHAMPION), close_linger_s=0, idle_gap_s=60, grace_s=0)
    flow.error = ChallengerUnavailable()
    flow.push_config(with_challenger())
    await score(flow, "a")
    assert (counts(flow), len(flow.rows(b"score/w"))) == ({}, 1)


class _CancelledOnce(Flow):
    """A flow whose challenger awaits a future that somebody cancels, once."""

    cancelled = 0

    async def score_by_challenger(
        self, challenger: Challenger, raw: bytes, known: Sequence[JudgeVerdict]
    ) -> ScoringResult:
        if not self.cancelled:
            self.cancelled = 1
            raise asyncio.CancelledError
        return await super().score_by_challenger(challenger, raw, known)


async def test_a_session_whose_work_was_cancelled_is_scored_after_a_pause() -> None:
    flow = _CancelledOnce(read_plan(CHAMPION), close_linger_s=0, idle_gap_s=60, grace_s=0)
    flow.push_config(with_challenger())
    await score(flow, "a")
    assert (flow.cancelled, challenged(flow), counts(flow)) == (1, [], {})
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert (challenged(flow), counts(flow), flow.rows(b"score/w")) == (["a"], {"challenger.scored": 1}, {})


async def test_a_session_whose_record_has_expired_is_left_out() -> None:
    flow = flow_of()
    flow.refused_topics.add(flow.topics.shadow_results("v2"))
    flow.push_config(with_challenger())
    await score(flow, "a")
    flow.crash()  # the record is no longer in memory
    flow.logs[flow.topics.sessions, 0][0] = flow.send(flow.topics.sessions, b"{}", b"other")
    flow.logs[flow.topics.sessions, 0].pop()
    flow.refused_topics.clear()
    flow.pass_time(challenger_rows.PAUSE_S + 1)
    await flow.settle()
    assert (counts(flow), challenged(flow)) == ({"challenger.expired": 1}, [])

"""Configs of the topic `configs`: the offset of a session decides which one scores it, whatever crashes."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.configs.records import HOME
from traceweir.streams.testing import Flow, HeldScoring, event, trace

FILE: dict[str, Any] = {"criteria": {"latency": {}}}
CALLS: dict[str, Any] = {"tool_call_accuracy": {"expected_tool": "find", "threshold": 0.5}}
SECOND: dict[str, Any] = {"criteria": {"latency": {}, **CALLS}, "gate": {"threshold": 1.0}}
THIRD: dict[str, Any] = {"criteria": CALLS}


def flow_of(**options: Any) -> Flow:
    return Flow(read_plan(FILE), close_linger_s=0, idle_gap_s=60, grace_s=0, **options)


def send(flow: Flow, session: str, **fields: Any) -> None:
    """Sends a session that ends, so that the stage assemble closes it at the next tick."""
    flow.send(flow.topics.invocations, event(session_id=session, **fields))
    flow.send(flow.topics.invocations, event("session.ended", session, **fields))


async def score(flow: Flow, *sessions: str, **fields: Any) -> None:
    """Sends sessions and lets the flow close, score and commit them."""
    for session in sessions:
        send(flow, session, **fields)
    await flow.settle()
    flow.pass_time(1)
    await flow.settle()


def digests(flow: Flow) -> dict[str, set[str]]:
    """Returns the config digests of the committed scores by session."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in flow.results():
        found[each["session_id"]].add(each["config_digest"])
    return dict(found)


FILE_DIGEST = read_plan(FILE).digest


async def test_a_pushed_config_scores_the_sessions_after_it() -> None:
    flow = flow_of()
    await score(flow, "before")
    second = flow.push_config(SECOND)
    await score(flow, "after")
    assert digests(flow) == {"before": {FILE_DIGEST}, "after": {second}}
    assert {each["metric"] for each in flow.results() if each["session_id"] == "after"} == {
        "agent/latency_seconds",
        "tool_call_accuracy",
    }


async def test_without_a_config_on_the_topic_no_row_and_no_field_is_written() -> None:
    flow = flow_of()
    flow.send(flow.topics.traces, trace())
    await score(flow, "s")
    assert flow.rows(b"score/c") == {}
    assert all("gate_rules" not in message.json for message in flow.read(flow.topics.candidates))


async def test_a_withdrawal_returns_to_the_config_of_the_file() -> None:
    flow = flow_of()
    flow.push_config(SECOND)
    await score(flow, "pushed")
    flow.push_config(None, version=2)
    await score(flow, "withdrawn")
    assert digests(flow)["withdrawn"] == {FILE_DIGEST}


async def test_a_session_that_was_begun_keeps_its_config() -> None:
    flow = flow_of(hold=HeldScoring)
    assert isinstance(flow.scoring, HeldScoring)
    await score(flow, "begun")
    second = flow.push_config(SECOND)
    await score(flow, "later")
    for session in ("later", "begun"):
        flow.scoring.release(session)
        await flow.run_scoring()
    flow.checkpoint()
    assert digests(flow) == {"begun": {FILE_DIGEST}, "later": {second}}


async def test_after_a_crash_a_session_gets_the_config_that_its_row_says() -> None:
    flow = flow_of(hold=HeldScoring)
    assert isinstance(flow.scoring, HeldScoring)
    second = flow.push_config(SECOND)
    await score(flow, "begun")  # the row of the second config is committed, the session is not
    third = flow.push_config(THIRD, version=2)
    await score(flow, "later")
    flow.crash()
    await flow.settle()
    for session in ("later", "begun"):
        flow.scoring.release(session)
    await flow.settle()
    assert digests(flow) == {"begun": {second}, "later": {third}}


async def test_the_row_of_a_config_is_committed_no_later_than_its_first_score() -> None:
    flow = flow_of()
    flow.push_config(SECOND)
    send(flow, "s")
    while "s" not in digests(flow):
        flow.pass_time(1)
        for topic in (flow.topics.invocations, flow.topics.sessions):
            await flow.take(topic)
            await flow.run_scoring()
            flow.checkpoint()
    assert flow.rows(b"score/c")


async def test_a_worker_that_has_read_less_of_the_topic_than_the_former_owner_waits() -> None:
    flow = flow_of()
    second = flow.push_config(SECOND)
    await score(flow, "first")
    late = flow.configs[0]
    flow.crash()
    behind = flow.configs[0]
    behind.position, behind.current = 0, ()  # as if it had read nothing yet
    send(flow, "second")
    flow.pass_time(1)
    for topic in (flow.topics.invocations, flow.topics.sessions):
        await flow.take(topic)
        flow.checkpoint()
    flow.pass_time(1)
    flow.checkpoint()
    await flow.take(flow.topics.sessions)
    await flow.run_scoring()
    assert "second" not in digests(flow)
    behind.current = late.current
    behind.note_position(late.position)
    await flow.settle()
    assert digests(flow)["second"] == {second}


async def test_a_session_gets_the_config_of_its_app_and_environment() -> None:
    flow = flow_of()
    everyone = flow.push_config(SECOND)
    travel = flow.push_config(THIRD, app="travel", environment="production")
    await score(flow, "one", app_name="travel", environment="production")
    await score(flow, "two", app_name="travel", environment="test")
    await score(flow, "three")
    assert digests(flow) == {"one": {travel}, "two": {everyone}, "three": {everyone}}


async def test_an_app_without_a_config_of_its_own_has_that_of_the_file() -> None:
    flow = flow_of()
    flow.push_config(SECOND, app="travel")
    await score(flow, "s", app_name="cooking")
    assert digests(flow) == {"s": {FILE_DIGEST}}


async def test_the_gate_decides_by_the_config_that_scored_the_session() -> None:
    flow = flow_of()
    flow.send(flow.topics.traces, trace(1, "a"))
    await score(flow, "a")
    second = flow.push_config(SECOND)
    flow.send(flow.topics.traces, trace(2, "b", outcome={"confidence": 0.5}))
    await score(flow, "b")
    decisions = {each["session_id"]: each for each in flow.results("gate")}
    assert decisions["a"]["config_digest"] == FILE_DIGEST
    assert decisions["a"]["status"] == "PASSED"
    assert decisions["b"]["config_digest"] == second
    assert decisions["b"]["details"]["reasons"] == ["below_threshold"]
    assert digests(flow)["b"] == {second}


async def test_a_revision_whose_gate_rules_are_others_is_decided_again() -> None:
    flow = Flow(read_plan(FILE), close_linger_s=0, idle_gap_s=60, grace_s=600)
    weights = {"complexity": 0.25, "novelty": 0.25, "tool_diversity": 0.25, "outcome_confidence": 0.25}
    # Names of domains that look like fields of the candidate.
    by_domain = {"a": weights, "embedding": weights, "occurred_at": weights}
    first = flow.push_config(FILE | {"gate": {"threshold": 0.1}, "trace_value": {"weights_by_domain": by_domain}})
    flow.send(flow.topics.traces, trace(1, "s"))
    await score(flow, "s")
    second = flow.push_config(FILE | {"gate": {"threshold": 1.0}}, version=2)
    flow.send(flow.topics.invocations, event("tool.called", "s", at=1))
    await flow.finish()
    assert [each["config_digest"] for each in flow.results("gate")] == [first, second]
    assert [each["status"] for each in flow.results("gate")] == ["PASSED", "FAILED"]


async def test_a_pushed_config_equal_to_the_file_decides_no_unchanged_trace_again() -> None:
    file = FILE | {"gate": {"threshold": 0.1}}
    flow = Flow(read_plan(file), close_linger_s=0, idle_gap_s=60, grace_s=600)
    flow.send(flow.topics.traces, trace(1, "s"))
    await score(flow, "s")
    flow.push_config(file)
    flow.send(flow.topics.invocations, event("tool.called", "s", at=1))
    flow.send(flow.topics.traces, trace(2, "t"))
    await score(flow, "t")
    flow.push_config(None, version=2)
    flow.send(flow.topics.invocations, event("tool.called", "s", at=2))
    await flow.finish()
    assert {each["revision"] for each in flow.results() if each["metric"] == "agent/latency_seconds"} == {0, 1, 2}
    assert [(each["session_id"], each["revision"]) for each in flow.results("gate")] == [("s", 0), ("t", 0)]
    # A gate whose worker has another file decides by the pushed config.
    carried = {each.json["session_id"]: "gate_rules" in each.json for each in flow.read(flow.topics.candidates)}
    assert carried == {"s": False, "t": True}


async def test_an_invalid_config_is_a_dead_letter_once_and_the_former_one_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flow = flow_of()
    second = flow.push_config(SECOND)
    bad = json.loads(flow.read(flow.topics.configs)[-1].value or b"") | {
        "version": 2,
        "config": {"criteria": {"no": 1}},
    }
    flow.configs[0].take(flow.send(flow.topics.configs, bad, b"*", partition=HOME))
    await score(flow, "s")
    flow.crash()
    send(flow, "t")
    await flow.finish()
    (letter,) = flow.dead_letters()
    assert (letter.topic, letter.stage, letter.reason) == (flow.topics.configs, "score", "invalid")
    assert letter.detail.startswith("criteria.no: there is no such metric")
    assert digests(flow) == {"s": {second}, "t": {second}}
    assert len(flow.configs[0].problems) == 1
    assert "is not used" in caplog.text


async def test_a_worker_that_finds_only_the_versions_before_an_invalid_config_uses_the_latest_of_them() -> None:
    flow = flow_of()
    flow.push_config(THIRD)
    second = flow.push_config(SECOND, version=2)
    flow.configs[0].take(flow.send(flow.topics.configs, b"{", b"*", partition=HOME))
    log = flow.logs[flow.topics.configs, HOME]
    log[:] = [each for each in log if each.key != b"*" or each.value == b"{"]  # compaction leaves the last one
    flow.crash()
    await score(flow, "s")
    assert digests(flow) == {"s": {second}}


async def test_a_config_with_a_newer_envelope_is_no_dead_letter_and_not_in_effect() -> None:
    flow = flow_of()
    flow.configs[0].take(flow.send(flow.topics.configs, {"envelope": 2, "anything": []}, b"*", partition=HOME))
    await score(flow, "s")
    assert flow.dead_letters() == []
    assert digests(flow) == {"s": {FILE_DIGEST}}
    assert len(flow.configs[0].problems) == 1


async def test_a_valid_config_ends_the_problem_of_the_invalid_one() -> None:
    flow = flow_of()
    flow.configs[0].take(flow.send(flow.topics.configs, b"{", b"*", partition=HOME))
    assert flow.configs[0].problems
    flow.push_config(SECOND)
    assert flow.configs[0].problems == []


@pytest.mark.parametrize("crash_at", range(24))
async def test_a_crash_at_any_step_gives_each_session_one_config_that_its_row_says(crash_at: int) -> None:
    """Plays pushes and sessions step by step, and crashes once: before, within or after any checkpoint."""
    flow = flow_of()
    steps = 0

    def step(action: str) -> bool:
        nonlocal steps
        steps += 1
        if steps - 1 != crash_at:
            return False
        flow.crash()
        return True

    async def advance() -> None:
        flow.pass_time(1)
        for topic in (flow.topics.invocations, flow.topics.sessions):
            await flow.take(topic)
            await flow.run_scoring()
            if not step("before the cut"):
                cut = flow.cut()
                if not step("between cut and commit"):
                    flow.commit(cut)
                    step("after the commit")

    allowed = {FILE_DIGEST}
    for number, config in enumerate((None, SECOND, THIRD)):
        if config is not None:
            digest = flow.push_config(config, version=number)
            assert digest is not None
            allowed.add(digest)
        send(flow, f"s{number}")
        await advance()
        await advance()
    await flow.finish()
    found = digests(flow)
    assert found.keys() == {"s0", "s1", "s2"}
    assert all(len(each) == 1 and each <= allowed for each in found.values())
    assert len({each["result_id"] for each in flow.results()}) == len(flow.results())

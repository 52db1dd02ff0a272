"""A session whose judge could not be asked is scored again; a retry that brings more values is the next attempt at its revision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr
from tests.support.flow import TOPICS, RereadFlow
from tests.support.judged import KEY, judged_plan
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server

from traceweir.schemas.config import GateConfig
from traceweir.scorers import Plan
from traceweir.streams.judges.client import Access
from traceweir.streams.judges.service import Judging
from traceweir.streams.score.judge_retries import AT_ONCE, PAUSE_S
from traceweir.streams.testing import Flow, event, instant, trace

pytestmark = pytest.mark.xdist_group("litellm")  # loading it takes seconds: in one process only

AFTER_S = 900


class Provider:
    """A judge's server that is down until it is up."""

    def __init__(self, server: OpenAiServer) -> None:
        self.server, self.up = server, False
        server.default = lambda body: Say(text="yes") if self.up else busy(None, 500)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with openai_server() as server:
        yield Provider(server)


def plan_of(*, required: bool = False, **later: Any) -> Plan:
    plan = judged_plan(
        retries={"attempts": 1}, breaker={"failures": 1_000}, retry_later={"after_s": AFTER_S, "attempts": 3} | later
    )
    return replace(plan, gate=GateConfig(required=["asks"])) if required else plan


def flow_of(provider: Provider, plan: Plan) -> RereadFlow:
    access = Access(provider.server.url, SecretStr(KEY))
    return RereadFlow(plan, stages=("score",), judging=lambda clock: Judging(plan.judge, access, clock))


def session(name: str = "s", revision: int = 0, segment: int = 0, **changes: Any) -> dict[str, Any]:
    said = event("invocation.completed", name, final_response={"parts": [{"text": "It ships."}]}, event_id="1")
    return {
        "session_id": name,
        "segment": segment,
        "revision": revision,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(1),
        "events": [said],
        "traces": [trace(name, name)],
        **changes,
    }


async def settle(flow: Flow) -> None:
    """Read what is there, and wait until nothing is at work."""
    lane = flow.lanes[0]
    while flow.logs[TOPICS.sessions, 0][lane.position[TOPICS.sessions] :]:
        await flow.take(TOPICS.sessions)
    await flow.finish_scoring()
    flow.checkpoint()


async def send(flow: Flow, *sessions: dict[str, Any]) -> None:
    for each in sessions:
        flow.send(TOPICS.sessions, each, each["session_id"].encode())
    await settle(flow)


async def wait(flow: Flow, seconds: float = AFTER_S) -> None:
    flow.pass_time(seconds)
    await settle(flow)


def told(flow: Flow, level: str = "session") -> list[tuple[int, int, float | None]]:
    """Revision, attempt and value of each published score, in order."""
    scores = [each for each in flow.results("asks") if each["level"] == level]
    return [(each["revision"], each["attempt"], each["value"]) for each in scores]


async def test_what_the_judge_says_once_it_is_back_is_the_next_attempt_of_every_score(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = True
    await wait(flow, AFTER_S - 1)
    assert told(flow) == [(0, 0, None)]

    await wait(flow, 2)

    assert told(flow) == told(flow, "invocation") == [(0, 0, None), (0, 1, 1.0)]
    assert len({each["result_id"] for each in flow.results("asks")}) == 2
    counters = flow.counters("score")
    assert (counters["deferred"], counters["retried"], counters["scored"], counters["consumed"]) == (1, 1, 1, 1)
    await wait(flow, 100 * AFTER_S)
    assert len(told(flow)) == 2


async def test_without_retry_later_in_the_config_it_stays_not_evaluated(provider: Provider) -> None:
    plan = plan_of()
    flow = flow_of(provider, replace(plan, judge=plan.judge.model_copy(update={"retry_later": None})))
    await send(flow, session())
    provider.up = True
    await wait(flow)
    assert told(flow) == [(0, 0, None)]
    assert flow.rows(b"score/r") == {}


async def test_as_long_as_it_is_in_vain_nothing_is_published_and_after_the_last_time_it_stays_so(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    for _ in range(3):
        await wait(flow)
    assert flow.rows(b"score/r") == {}
    provider.up = True
    await wait(flow, 100 * AFTER_S)
    assert told(flow) == [(0, 0, None)]
    assert flow.counters("score")["retries.unsuccessful"] == 3


async def test_what_waits_outlives_a_crash(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session("a"), session("b"))
    provider.up = True
    flow.crash()
    await wait(flow)
    assert told(flow) == [(0, 0, None), (0, 0, None), (0, 1, 1.0), (0, 1, 1.0)]
    flow.crash()
    await wait(flow)
    assert len(told(flow)) == 4


async def test_a_retry_that_a_crash_undid_is_made_again_and_published_once(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = True
    flow.pass_time(AFTER_S)
    while not provider.server.asked[1:]:
        await flow.run_scoring()
    flow.crash()  # before the checkpoint
    await wait(flow, 1)
    assert told(flow) == [(0, 0, None), (0, 1, 1.0)]


async def test_a_retry_whose_checkpoint_a_crash_undid_is_made_again_and_published_once(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    rows = flow.rows(b"score/r")
    provider.up = True
    flow.pass_time(AFTER_S)
    await flow.finish_scoring()
    cut = flow.cut()  # and never committed
    assert [output.topic for output in cut.outputs] == 2 * [TOPICS.results]
    flow.crash()
    assert (told(flow), flow.rows(b"score/r")) == ([(0, 0, None)], rows)
    await wait(flow, 1)
    flow.crash()
    await wait(flow)
    assert (told(flow), flow.rows(b"score/r")) == ([(0, 0, None), (0, 1, 1.0)], {})


async def test_each_retry_that_brings_more_values_is_an_attempt_of_its_own(provider: Provider) -> None:
    provider.server.default = lambda body: (
        Say(text="yes") if any(name in str(body) for name in allowed) else busy(None, 500)
    )
    allowed: set[str] = set()
    events = [_said(number) | {"invocation_id": f"i{number}", "event_id": str(number)} for number in (1, 2)]
    flow = flow_of(provider, plan_of())
    await send(flow, session(events=events))
    for name in ("Number 1.", "Number 2."):
        await wait(flow)  # in vain
        flow.crash()
        allowed.add(name)
        await wait(flow)
    scores = [each for each in flow.results("asks") if each["level"] == "invocation"]
    assert [(each["attempt"], each["invocation_id"], each["value"]) for each in scores] == [
        (0, "i1", None),
        (0, "i2", None),
        (1, "i1", 1.0),
        (1, "i2", None),
    ]
    assert flow.counters("score")["retries.unsuccessful"] == 2  # and after three times it stays so
    assert flow.rows(b"score/r") == {}


async def test_a_later_revision_of_the_session_begins_at_attempt_0(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = True
    await wait(flow)
    await send(flow, session(revision=1))
    await send(flow, session(segment=1))

    scores = [each for each in flow.results("asks") if each["level"] == "session"]
    assert [(each["segment"], each["revision"], each["attempt"]) for each in scores] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
    ]


async def test_a_later_revision_that_waits_takes_the_place_of_the_former(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    flow.pass_time(AFTER_S / 2)
    await send(flow, session(revision=1))
    provider.up = True
    await wait(flow, AFTER_S / 2)
    assert told(flow) == [(0, 0, None), (1, 0, None)]
    await wait(flow, AFTER_S / 2)
    assert told(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]


async def test_a_later_revision_that_the_judge_answers_makes_the_retry_needless(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = True
    await send(flow, session(revision=1))
    await wait(flow)
    assert told(flow) == [(0, 0, None), (1, 0, 1.0)]
    assert flow.rows(b"score/r") == {}


async def test_a_budget_that_begins_anew_is_enough_for_what_it_was_not(provider: Provider) -> None:
    provider.up = True
    plan = judged_plan(retry_later={"after_s": 60}, budget={"tokens_per_minute": 150})
    flow = flow_of(provider, plan)
    await send(flow, *(session(f"s{number}", events=[_said(number)]) for number in range(4)))
    first = [each["not_evaluated_because"] for each in flow.results("asks") if each["level"] == "session"]
    assert "budget" in first
    assert None in first
    for _ in range(8):
        await wait(flow, 60)
    last = {each["session_id"]: each["value"] for each in flow.results("asks") if each["level"] == "session"}
    assert set(last.values()) == {1.0}
    assert len(provider.server.asked) == 4  # nobody is asked twice


def _said(number: int) -> dict[str, Any]:
    return event(
        "invocation.completed",
        f"s{number}",
        final_response={"parts": [{"text": f"Number {number}."}]},
        event_id="1",
    )


@pytest.mark.parametrize("required", [True, False])
async def test_its_traces_are_candidates_again_only_if_the_gate_asks_for_the_judge(
    provider: Provider, required: bool
) -> None:
    flow = flow_of(provider, plan_of(required=required))
    await send(flow, session())
    provider.up = True
    await wait(flow)
    candidates = [message.json for message in flow.read(TOPICS.candidates)]
    assert [(each["revision"], each["attempt"]) for each in candidates] == ([(0, 0), (0, 1)] if required else [(0, 0)])
    if required:
        assert candidates[1]["required"]["asks"]["status"] == "PASSED"


async def test_a_trace_whose_digest_is_forgotten_is_no_candidate_again_for_a_judge_that_the_gate_does_not_ask(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of(after_s=10 * AFTER_S))
    await send(flow, session())
    flow.pass_time(5 * AFTER_S)
    await send(flow, session("young", last_record_at=instant(5 * AFTER_S)))
    assert [key for key in flow.rows(b"score/t") if b"/ts" in key] == []
    provider.up = True
    await wait(flow, 5 * AFTER_S)
    assert (0, 1, 1.0) in told(flow)
    assert len(flow.read(TOPICS.candidates)) == 2


async def test_a_revision_that_is_scored_while_the_former_is_read_again_is_the_one_that_counts(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    flow.hold_reading = asyncio.Event()
    provider.up = True
    flow.pass_time(AFTER_S)
    await flow.run_scoring()
    flow.send(TOPICS.sessions, session(revision=1), b"s")
    await flow.take(TOPICS.sessions)
    while flow.lanes[0].stages["score"].counters["scored"] < 2:  # type: ignore[attr-defined]
        await flow.run_scoring()
    flow.hold_reading.set()
    await settle(flow)
    assert told(flow) == [(0, 0, None), (1, 0, 1.0)]


async def test_a_later_revision_that_waits_meanwhile_is_due_when_it_says(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    flow.hold_reading = asyncio.Event()
    flow.pass_time(AFTER_S)
    await flow.run_scoring()
    flow.send(TOPICS.sessions, session(revision=1), b"s")
    await flow.take(TOPICS.sessions)
    while flow.lanes[0].stages["score"].counters["scored"] < 2:  # type: ignore[attr-defined]
        await flow.run_scoring()
    flow.hold_reading.set()
    await settle(flow)
    provider.up = True
    await wait(flow, AFTER_S - 1)
    assert told(flow) == [(0, 0, None), (1, 0, None)]
    await wait(flow, 1)
    assert told(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]


async def test_a_session_that_its_topic_has_no_more_is_given_up(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up, flow.first_offset = True, 1
    await wait(flow)
    assert (told(flow), flow.counters("score")["retries.expired"], flow.rows(b"score/r")) == ([(0, 0, None)], 1, {})


async def test_while_brokers_do_not_answer_it_waits(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = flow.brokers_fail = True
    for _ in range(5):
        await wait(flow)
    assert len(flow.read_again) == 5  # and not as often as it looks
    flow.brokers_fail = False
    await wait(flow, PAUSE_S + 1)
    assert told(flow) == [(0, 0, None), (0, 1, 1.0)]


async def test_beyond_the_most_that_may_wait_the_oldest_stay_as_they_are(provider: Provider) -> None:
    flow = flow_of(provider, plan_of(max_sessions=2))
    for name in "abc":
        await send(flow, session(name))
    provider.up = True
    await wait(flow)
    assert {each["session_id"] for each in flow.results("asks") if each["value"] == 1.0} == {"b", "c"}


async def test_thousands_that_wait_are_taken_a_few_at_a_time(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, *(session(f"s{number}") for number in range(3 * AT_ONCE)))
    provider.up = True
    counts: list[int] = []
    for _ in range(3):
        await wait(flow, AFTER_S if not counts else 1)
        counts.append(flow.counters("score")["retried"])
    assert counts == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE]


async def test_an_older_revision_that_a_replay_brings_changes_nothing_of_what_waits(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session(revision=1, last_record_at=instant(5)))
    provider.up = True
    await send(flow, session(revision=0))
    await wait(flow)
    assert told(flow) == [(1, 0, None), (0, 0, 1.0), (1, 1, 1.0)]


async def test_a_copy_of_the_same_revision_that_a_replay_brings_gets_no_attempt_that_was_given(
    provider: Provider,
) -> None:
    events = [_said(number) | {"invocation_id": f"i{number}", "event_id": str(number)} for number in (1, 2)]
    provider.server.default = lambda body: Say(text="yes") if "Number 1." in str(body) and up else busy(None, 500)
    up = False
    flow = flow_of(provider, plan_of())
    await send(flow, session(events=events))
    up = True
    await wait(flow)
    await send(flow, session(events=events))
    provider.server.default = lambda body: Say(text="yes")
    await wait(flow)
    assert [attempt for _, attempt, _ in told(flow)] == [0, 1, 0, 2]
    assert told(flow)[-1] == (0, 2, 1.0)


async def test_of_the_scores_of_a_segment_the_highest_revision_and_attempt_are_what_is_known_last(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = True
    await wait(flow)
    provider.up = False
    await send(flow, session(revision=2, events=[_said(7)], last_record_at=instant(9)))
    provider.up = True
    await wait(flow)
    await send(flow, session(revision=1, last_record_at=instant(5)))  # a dead letter until now
    assert [(revision, attempt) for revision, attempt, _ in told(flow)] == [(0, 0), (0, 1), (2, 0), (2, 1), (1, 0)]
    assert max(told(flow)) == (2, 1, 1.0)


async def test_no_number_is_given_twice_however_few_may_be_remembered(provider: Provider) -> None:
    flow = flow_of(provider, plan_of(max_sessions=1))
    for name in "abc":
        provider.up = False
        await send(flow, session(name, events=[event("invocation.completed", name, event_id=name)]))
        provider.up = True
        await wait(flow)
    for name in "abc":
        await send(flow, session(name, revision=1))
    versions = [(each["result_id"], each["revision"], each["attempt"]) for each in flow.results("asks")]
    assert len(versions) == len(set(versions))


async def test_an_id_that_is_used_again_begins_anew(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    await send(flow, session(first_record_at=instant(9_000), last_record_at=instant(9_001), events=[_said(9)]))
    provider.up = True
    await wait(flow)
    assert told(flow) == [(0, 0, None), (0, 0, None), (0, 1, 1.0)]
    assert "Number 9." in provider.server.asked[-1]["messages"][-1]["content"]


async def test_what_waits_when_the_config_says_nothing_of_it_any_more_is_forgotten(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session("a"))
    assert len(flow.rows(b"score/r")) == 1
    flow.plan = replace(flow.plan, judge=flow.plan.judge.model_copy(update={"retry_later": None}))
    flow.crash()
    provider.up = True
    await wait(flow)
    assert (told(flow), flow.rows(b"score/r")) == ([(0, 0, None)], {})


@pytest.mark.parametrize(
    "value",
    [
        b'{"segment": -1, "revision": 0}',
        b'{"session_id": "s", "segment": 4294967296, "revision": 0}',
        b'{"segment": 0}',
        b'{"segment": 0, "revision": "1", "first_record_at": "x"}',
        b"[" * 100_000,
        b"\xff",
    ],
)
async def test_what_is_no_session_is_a_dead_letter_also_while_others_wait(provider: Provider, value: bytes) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session())
    provider.up = True
    await wait(flow)
    flow.send(TOPICS.sessions, value, b"s")
    await settle(flow)
    assert (flow.failures, [letter.reason for letter in flow.dead_letters()]) == ([], ["unreadable_session"])


async def test_a_session_of_a_revision_that_no_row_can_hold_is_a_dead_letter(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    provider.up = True
    await send(flow, session("a", revision=2**32 - 1), session("b", revision=2**32))
    assert (flow.failures, told(flow)) == ([], [(2**32 - 1, 0, 1.0)])
    assert [letter.reason for letter in flow.dead_letters()] == ["unreadable_session"]


async def test_a_later_revision_is_the_later_one_whatever_the_clocks_of_those_who_wrote_them(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of())
    said = event("invocation.completed", "s", final_response={"parts": [{"text": "Later."}]}, event_id="2")
    clocks: dict[str, Any] = {"last_record_at": instant(100)}  # of the clocks of both workers that closed it
    for at, each in ((60, session(**clocks)), (50, session(revision=1, events=[said], **clocks))):
        flow.send(TOPICS.sessions, each, b"s", at=at)
        await settle(flow)
    assert told(flow) == [(0, 0, None), (1, 0, None)]

    provider.up = True
    await wait(flow)

    assert told(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]
    assert "Later." in provider.server.prompts[-1]


async def test_a_topic_that_was_made_anew_has_another_session_at_the_same_place(provider: Provider) -> None:
    flow = flow_of(provider, plan_of())
    await send(flow, session("a"))
    flow.logs[TOPICS.sessions, 0][0] = replace_key(flow.logs[TOPICS.sessions, 0][0], b"b")
    provider.up = True
    await wait(flow)
    assert (told(flow), flow.counters("score")["retries.expired"]) == ([(0, 0, None)], 1)


def replace_key(message: Any, key: bytes) -> Any:
    return message._replace(key=key) if hasattr(message, "_replace") else replace(message, key=key)


@pytest.mark.parametrize("crash", [True, False])
async def test_the_gate_takes_the_candidate_of_a_retry_for_the_later_one(provider: Provider, crash: bool) -> None:
    access = Access(provider.server.url, SecretStr(KEY))
    plan = plan_of(required=True)
    flow = Flow(plan, stages=("score", "gate"), judging=lambda clock: Judging(plan.judge, access, clock))

    async def pass_time(seconds: float) -> None:
        flow.pass_time(seconds)
        await flow.settle()
        await flow.finish_scoring()
        await flow.settle()
        if crash:
            flow.crash()

    flow.send(TOPICS.sessions, session(), b"s")
    await pass_time(1)
    provider.up = True
    await pass_time(AFTER_S)
    provider.up = False
    copy = session(events=[_said(3)])  # asks what nobody answered yet, so its verdict is another one
    flow.send(TOPICS.sessions, copy, b"s")
    await pass_time(1)
    provider.up = True
    flow.send(TOPICS.sessions, session(revision=1, events=[_said(3)], last_record_at=instant(5)), b"s")
    await pass_time(1)

    decided = [(each["revision"], each["attempt"], each["details"]["reasons"]) for each in flow.results("gate")]
    assert decided[1:] == [(0, 1, []), (0, 0, ["superseded"])]
    assert decided[0][:2] == (0, 0)
    assert decided[0][2] != []
    assert [message.value is not None for message in flow.read(TOPICS.network)] == [True]

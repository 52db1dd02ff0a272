"""A criterion with `settle_s` is asked once, when no later revision of the session has come for that time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.flow import TOPICS, RereadFlow
from tests.support.judge_retries import (
    AFTER_S,
    Provider,
    advance,
    answer_event,
    published_attempts,
    retry_flow,
    retry_plan,
    send,
    session,
    settle,
)
from tests.support.openai_server import Say

from traceweir.schemas.session import Session
from traceweir.scorers import Plan
from traceweir.streams.pipeline.score.judge_retries import PAUSE_S
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure
from traceweir.streams.testing import Flow

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

SETTLE_S = 600
TOO_SMALL = 500
"""Maximum number of bytes of a batch that no score fits."""


class FailingScoring:
    """Scores sessions, or rejects them after their judges were asked."""

    def __init__(self, inner: Measure) -> None:
        self._inner = inner
        self.fails = False

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        result = await self._inner(session, known, attempt)
        if self.fails:
            raise RuntimeError("It failed.")
        return result


@pytest.fixture
def judge(provider: Provider) -> Provider:
    provider.up = True
    return provider


def settling_plan(*, retries: bool = False, required: bool = False, **later: Any) -> Plan:
    plan = retry_plan(required=required, **later)
    judge = plan.judge if retries else plan.judge.model_copy(update={"retry_later": None})
    return replace(plan, judge=judge, metrics=(replace(plan.metrics[0], settle_s=SETTLE_S),))


def reasons(flow: Flow) -> list[tuple[Any, Any]]:
    scores = [each for each in flow.results("asks") if each["level"] == "session"]
    return [(each["not_evaluated_because"], each.get("cause")) for each in scores]


async def test_a_criterion_is_asked_once_after_the_wait_and_says_until_then_that_it_waits(judge: Provider) -> None:
    flow = retry_flow(judge, settling_plan())
    await send(flow, session())
    await advance(flow, SETTLE_S - 1)
    assert (reasons(flow), judge.server.asked) == ([("missing_input", "settling")], [])

    await advance(flow, 2)

    assert published_attempts(flow) == [(0, 0, None), (0, 1, 1.0)]
    assert published_attempts(flow, "invocation") == [(0, 0, None), (0, 1, 1.0)]
    assert len(judge.server.asked) == 1
    counters = flow.counters("score")
    assert [counters.get(name, 0) for name in ("settling", "deferred", "retried", "scored")] == [1, 0, 1, 1]
    assert flow.rows(b"score/r") == {}


async def test_a_revision_within_the_wait_begins_it_anew_and_the_former_revision_is_never_asked(
    judge: Provider,
) -> None:
    flow = retry_flow(judge, settling_plan())
    await send(flow, session())
    await advance(flow, SETTLE_S - 10)
    await send(flow, session(revision=1, events=[answer_event(1)]))
    await advance(flow, SETTLE_S - 10)
    assert judge.server.asked == []
    await advance(flow, 20)

    assert published_attempts(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]
    assert ["Number 1." in str(each) for each in judge.server.asked] == [True]


async def test_a_revision_after_the_wait_is_asked_too_and_its_former_scores_count_no_more_while_it_waits(
    judge: Provider,
) -> None:
    flow = retry_flow(judge, settling_plan())
    await send(flow, session())
    await advance(flow, SETTLE_S + 1)
    await send(flow, session(revision=1, events=[answer_event(1)]))
    assert published_attempts(flow, "invocation")[-1] == (1, 0, None)
    await advance(flow, SETTLE_S + 1)

    assert published_attempts(flow) == [(0, 0, None), (0, 1, 1.0), (1, 0, None), (1, 1, 1.0)]
    assert len(judge.server.asked) == 2


async def test_the_wait_goes_on_after_a_crash_and_its_judgement_is_published_once(judge: Provider) -> None:
    flow = retry_flow(judge, settling_plan())
    await send(flow, session())
    await advance(flow, SETTLE_S - 10)
    flow.crash()
    await advance(flow, 5)
    assert judge.server.asked == []
    flow.pass_time(10)
    await flow.finish_scoring()
    # Its checkpoint is lost.
    flow.cut()
    flow.crash()
    await advance(flow, 1)
    flow.crash()
    await advance(flow, 10 * SETTLE_S)

    assert published_attempts(flow) == [(0, 0, None), (0, 1, 1.0)]


def send_at(flow: RereadFlow, at: float, name: str = "s", revision: int = 0) -> None:
    flow.send(TOPICS.sessions, session(name, revision=revision, events=[answer_event(revision)]), name.encode(), at=at)


async def read_one(flow: RereadFlow) -> None:
    await flow.take(TOPICS.sessions, 1)
    await flow.finish_scoring()
    flow.checkpoint()


@pytest.mark.parametrize(("second_at", "asked"), [(SETTLE_S - 1, [1]), (SETTLE_S + 2, [0, 1])])
async def test_a_backlog_is_judged_as_it_would_have_been_live_whatever_the_clock_says(
    judge: Provider, second_at: float, asked: list[int]
) -> None:
    flow = retry_flow(judge, settling_plan())
    send_at(flow, 0)
    send_at(flow, SETTLE_S + 1 if second_at > SETTLE_S else 1, "other")
    send_at(flow, second_at, revision=1)
    flow.now += 100 * SETTLE_S

    for _ in range(3):
        await read_one(flow)
    await advance(flow, 1)

    found = [each for each in flow.results("asks") if each["session_id"] == "s" and each["level"] == "session"]
    assert [each["revision"] for each in found if each["value"] is not None] == asked


async def test_an_outage_at_the_end_of_the_wait_is_published_and_retried_later(provider: Provider) -> None:
    flow = retry_flow(provider, settling_plan(retries=True))
    await send(flow, session())
    await advance(flow, SETTLE_S + 1)
    assert reasons(flow) == [("missing_input", "settling"), ("error", "judge_unavailable")]
    provider.up = True
    await advance(flow, AFTER_S + PAUSE_S)

    assert published_attempts(flow) == [(0, 0, None), (0, 1, None), (0, 2, 1.0)]
    assert flow.rows(b"score/r") == {}


async def test_an_outage_at_the_end_of_the_wait_is_the_last_word_without_retry_later(provider: Provider) -> None:
    flow = retry_flow(provider, settling_plan())
    await send(flow, session())
    await advance(flow, SETTLE_S + 1)
    assert reasons(flow) == [("missing_input", "settling"), ("error", "judge_unavailable")]
    assert flow.rows(b"score/r") == {}


async def test_beyond_max_sessions_the_oldest_session_is_asked_before_its_wait_ends(judge: Provider) -> None:
    flow = retry_flow(judge, settling_plan(retries=True, max_sessions=2))
    for name in "abcd":
        await send(flow, session(name))
    await advance(flow, 1)
    assert {each["session_id"] for each in flow.results("asks") if each["value"] == 1.0} == {"a", "b"}
    await advance(flow, SETTLE_S + 1)

    assert published_attempts(flow)[4:] == [(0, 1, 1.0)] * 4
    assert (flow.counters("score").get("retries.dropped", 0), flow.rows(b"score/r")) == (0, {})


async def test_a_config_of_the_topic_waits_although_the_file_of_the_worker_has_no_judge(judge: Provider) -> None:
    judge.server.default = lambda body: Say(text="It is kind.\nVerdict: yes")
    flow = retry_flow(judge, settling_plan())
    options: dict[str, JsonValue] = {
        "judge_model_options": {"judge_model": "openai/stub", "num_samples": 1},
        "settle_s": SETTLE_S,
    }
    flow.push_config({"criteria": {"safety_v1": {"threshold": 0.5, **options}, "response_length": {"max_chars": 9}}})
    await send(flow, session())
    assert [each["value"] for each in flow.results("response_length")] == [1.0, 1.0]
    await advance(flow, SETTLE_S + 1)

    assert published_attempts(flow, metric="safety_v1") == [(0, 0, None), (0, 1, 1.0)]


async def test_the_gate_decides_again_when_a_criterion_that_it_requires_has_settled(judge: Provider) -> None:
    flow = retry_flow(judge, settling_plan(required=True))
    await send(flow, session())
    await advance(flow, SETTLE_S + 1)
    candidates = [message.json for message in flow.read(TOPICS.candidates)]
    assert [(each["attempt"], each["required"]["asks"]["status"]) for each in candidates] == [
        (0, "NOT_EVALUATED"),
        (1, "PASSED"),
    ]


async def test_the_number_of_waiting_sessions_is_known(judge: Provider) -> None:
    flow = retry_flow(judge, settling_plan())
    stage: Any = flow.lanes[0].stages["score"]
    await send(flow, session("a"), session("b"))
    assert (stage.settling, stage.waiting_for_judge) == (2, 0)
    await advance(flow, SETTLE_S + 1)
    assert (stage.settling, stage.waiting_for_judge) == (0, 0)


async def test_a_session_that_no_longer_exists_keeps_its_score(judge: Provider) -> None:
    flow = retry_flow(judge, settling_plan())
    await send(flow, session())
    flow.first_offset = 1
    await advance(flow, SETTLE_S + 1)
    await settle(flow)
    assert (reasons(flow), flow.counters("score")["retries.expired"]) == ([("missing_input", "settling")], 1)


async def test_a_session_whose_scores_after_the_wait_do_not_fit_is_a_dead_letter_with_the_reason(
    judge: Provider,
) -> None:
    flow = retry_flow(judge, settling_plan())
    await send(flow, session())
    flow.limits.learn({TOPICS.results: TOO_SMALL})
    await advance(flow, SETTLE_S + 1)

    (letter,) = flow.dead_letters()
    assert (letter.stage, letter.reason, letter.topic, letter.key) == ("score", "too_large", TOPICS.sessions, b"s")
    assert "does not fit the topic traceweir.results" in letter.detail
    counters = flow.counters("score")
    assert [counters[name] for name in ("retries.rejected", "dead_lettered.too_large", "consumed")] == [1, 1, 1]
    assert flow.rows(b"score/r") == {}

    flow.limits.learn({})
    await advance(flow, 10 * AFTER_S)
    assert len(flow.dead_letters()) == 1


async def test_a_rejected_attempt_after_the_wait_is_repeated_until_none_is_left_and_is_then_a_dead_letter(
    judge: Provider,
) -> None:
    flow = retry_flow(judge, settling_plan(retries=True, attempts=2), hold=FailingScoring)
    failing: Any = flow.scoring
    await send(flow, session())
    failing.fails = True
    await advance(flow, SETTLE_S + 1)
    stage: Any = flow.lanes[0].stages["score"]
    assert (flow.dead_letters(), stage.settling) == ([], 1)
    flow.crash()
    for _ in range(3):
        await advance(flow, AFTER_S + 1)

    assert [(each.reason, each.detail) for each in flow.dead_letters()] == [
        ("scoring_failed", "RuntimeError: It failed.")
    ]
    assert flow.counters("score")["retries.unsuccessful"] == 2
    assert flow.rows(b"score/r") == {}


async def test_after_a_rejected_attempt_the_next_one_is_published_although_no_more_scores_have_a_value(
    judge: Provider,
) -> None:
    plan = settling_plan(retries=True)
    at_once = replace(plan.metrics[0], name="asks_at_once", settle_s=0.0)
    plan = replace(plan, metrics=(*plan.metrics, at_once), sampling={**plan.sampling, "asks_at_once": 1.0})
    flow = retry_flow(judge, plan, hold=FailingScoring)
    failing: Any = flow.scoring
    judge.up = False
    await send(flow, session())
    failing.fails = True
    await advance(flow, SETTLE_S + 1)
    failing.fails = False
    await advance(flow, AFTER_S + 1)
    assert reasons(flow) == [("missing_input", "settling"), ("error", "judge_unavailable")]
    judge.up = True
    await advance(flow, AFTER_S + 1)

    assert published_attempts(flow) == [(0, 0, None), (0, 1, None), (0, 2, 1.0)]
    assert (flow.rows(b"score/r"), flow.dead_letters()) == ({}, [])


async def test_a_wait_of_less_than_a_millisecond_ends(judge: Provider) -> None:
    plan = settling_plan()
    flow = retry_flow(judge, replace(plan, metrics=(replace(plan.metrics[0], settle_s=0.0004),)))
    await send(flow, session())
    await advance(flow, 1)
    assert published_attempts(flow) == [(0, 0, None), (0, 1, 1.0)]

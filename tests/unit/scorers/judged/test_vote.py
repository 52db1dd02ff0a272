"""Tests that a vote ends as soon as it is decided, with the verdict of a full vote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.schemas.score import Cost
from traceweir.scorers.judge import AnswerUnusable, BudgetSpent, JudgeFailed, Reply
from traceweir.scorers.judged.base import JudgeModelOptions
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.prompt import fill
from traceweir.scorers.judged.vote import Ballot, Poll, Tally, Vote, total_cost, verdict_measurement, vote

Words = Mapping[str, bool | None]
WHOLE = FittedPrompt(fill("Is it?", {}))


def read(text: str) -> dict[str, Vote]:
    return {item: Vote(verdict, f"{item} is {verdict} in {text}") for item, verdict in json.loads(text).items()}


class Script:
    """Returns replies by number, and counts concurrent questions."""

    def __init__(self, replies: Sequence[Words | Exception], cost: Cost | None = None) -> None:
        self.replies = replies
        self.cost = cost or Cost(input_tokens=10, output_tokens=1, usd=0.5)
        self.asked: list[int] = []
        self.waiting = self.most = 0

    async def ask(self, number: int) -> Reply:
        self.asked.append(number)
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        reply = self.replies[number]
        if isinstance(reply, Exception):
            raise reply
        return Reply(text=json.dumps(dict(reply)), cost=self.cost)


async def held(script: Script, items: Sequence[str] = ("a",), at_once: int = 1) -> Poll:
    options = JudgeModelOptions(num_samples=len(script.replies), parallelism_limit=at_once)
    return await vote(script.ask, Ballot(items, read, "safety_v1"), options)


def one(*verdicts: bool | None) -> list[Words]:
    return [{"a": verdict} for verdict in verdicts]


YES, NO, NEITHER = True, False, None


@pytest.mark.parametrize(
    ("verdicts", "verdict", "asked"),
    [
        ((YES, YES, YES, NO, NO), True, 3),
        ((NO, NO, NO, YES, YES), False, 3),
        ((YES, NO, YES, NO, YES), True, 5),
        ((YES, NO, NO, NO, YES), False, 4),
        ((YES, YES, NO, NO), False, 4),
        ((NO, NO, YES, YES), False, 2),
        ((NEITHER, NEITHER, NEITHER, YES, NEITHER), True, 5),
        ((NEITHER, NEITHER, NEITHER, NO, YES), False, 4),
        ((NEITHER, NEITHER), None, 2),
        ((YES,), True, 1),
    ],
)
async def test_a_vote_asks_until_no_verdict_can_change(
    verdicts: Sequence[bool | None], verdict: bool | None, asked: int
) -> None:
    script = Script(one(*verdicts))
    poll = await held(script)
    assert (poll.tallies["a"].verdict, script.asked) == (verdict, list(range(asked)))


ballots = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([YES, NO, NEITHER])), min_size=1, max_size=9
)


@pytest.mark.slow
@given(ballots, st.integers(1, 9))
def test_stopping_early_changes_no_verdict_and_no_rationale(replies: list[Words], at_once: int) -> None:
    everything = {item: Tally() for item in "abc"}
    for reply in replies:
        for item, found in read(json.dumps(dict(reply))).items():
            everything[item].votes.append(found)
    script = Script(replies)
    poll = asyncio.run(held(script, "abc", at_once))
    for item, tally in poll.tallies.items():
        whole = everything[item]
        assert tally.verdict is whole.verdict
        if whole.verdict is not None:
            assert tally.rationale == whole.rationale
    assert script.most <= at_once
    assert script.asked == list(range(len(script.asked)))
    assert len(script.asked) == len(replies) or all(
        tally.needed(len(replies) - len(script.asked)) == 0 for tally in poll.tallies.values()
    )


@pytest.mark.slow
@given(ballots, st.integers(2, 9))
def test_more_questions_in_flight_never_request_more_replies(replies: list[Words], at_once: int) -> None:
    one_by_one, together = Script(replies), Script(replies)
    asyncio.run(held(one_by_one, "abc"))
    asyncio.run(held(together, "abc", at_once))
    assert together.asked == one_by_one.asked


async def test_questions_in_flight_are_limited_by_the_option_and_by_the_need() -> None:
    for limit, most in ((1, 1), (2, 2), (3, 3), (5, 3)):
        script = Script(one(YES, YES, YES, YES, YES))
        await held(script, at_once=limit)
        assert script.most == most


@pytest.mark.parametrize("error", [JudgeFailed("no provider"), BudgetSpent("no tokens left")])
@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_failed_question_fails_the_vote_after_the_rest_of_its_wave(error: Exception, at_once: int) -> None:
    script = Script([{"a": YES}, error, {"a": YES}, {"a": YES}, {"a": YES}])
    with pytest.raises(type(error), match=str(error)):
        await held(script, at_once=at_once)
    assert script.waiting == 0


async def test_the_votes_their_spread_and_the_reasons_are_kept() -> None:
    poll = await held(Script(one(NEITHER, NO, YES, YES, YES)))
    measured = verdict_measurement(poll, "a", "valid", WHOLE)
    assert measured.value == 1.0
    assert measured.rationale == '3 of 4 votes find it valid: a is True in {"a": true}'
    assert measured.details == {
        "votes": {"yes": 3, "no": 1, "neither": 1},
        "spread": 0.25,
        "replies": 5,
        "num_samples": 5,
        "unusable": 1,
    }
    assert measured.cost == Cost(input_tokens=50, output_tokens=5, usd=2.5)


async def test_without_any_verdict_there_is_no_value_and_the_cost_is_known() -> None:
    poll = await held(Script(one(NEITHER, NEITHER)))
    with pytest.raises(AnswerUnusable, match="none of 2 replies contains a verdict") as caught:
        verdict_measurement(poll, "a", "valid", WHOLE)
    assert caught.value.cost.usd == 1.0


def test_costs_add_up_and_are_cached_only_if_all_are() -> None:
    paid, free = Cost(input_tokens=3, usd=0.1), Cost(input_tokens=4, cached=True)
    assert total_cost([paid, free]) == Cost(input_tokens=7, usd=0.1)
    assert total_cost([free, free]) == Cost(input_tokens=8, cached=True)
    assert total_cost([]) == Cost()

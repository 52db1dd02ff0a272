"""An answer without a verdict is asked for again with what it lacks, is paid, and is never stored."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.judge_errors import PRICES
from tests.support.judged import judging, question
from tests.support.openai_server import Say, busy, openai_server

from traceweir.scorers.judge import Question
from traceweir.streams.scoring.judges.model_calls import Attempt

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]


def asks_for_yes() -> Question:
    return question("Is it?", problem=lambda reply: None if reply == "yes" else "it is not yes")


async def test_an_unusable_answer_is_asked_for_again_with_its_problem_and_both_are_paid() -> None:
    attempts: list[Attempt] = []
    async with openai_server(Say(text="perhaps"), Say(text="yes")) as server:
        judge = judging(server.url, config=PRICES, attempted=attempts.append).session()
        reply = await judge.ask(asks_for_yes())
        again = await judge.ask(asks_for_yes())

    first, second = server.prompts
    assert first == "Is it?"
    assert second.startswith("Is it?\n\nYour last answer cannot be used: it is not yes.")
    assert "perhaps" not in second
    assert (reply.text, reply.cost.input_tokens, reply.cost.output_tokens) == ("yes", 20, 4)
    assert (again.text, again.cost.cached) == ("yes", True)
    assert [each.outcome for each in attempts] == ["unusable", "answered"]
    assert [paid.tokens for paid in judge.judged.paid] == [12, 12]
    assert [verdict.text for verdict in judge.judged.verdicts] == ["yes"]
    assert judge.failed is False


async def test_the_last_answer_without_a_verdict_is_returned_and_not_stored() -> None:
    async with openai_server(default=lambda body: Say(text="perhaps")) as server:
        judging_ = judging(server.url, config={"repairs": 1})
        judge = judging_.session()
        reply = await judge.ask(asks_for_yes())
        assert len(server.prompts) == 2
        await judging_.session().ask(asks_for_yes())
        assert len(server.prompts) == 4

    assert (reply.text, reply.cost.input_tokens) == ("perhaps", 20)
    assert (judge.judged.verdicts, judge.failed) == ([], True)


async def test_without_repairs_a_question_is_asked_once() -> None:
    async with openai_server(default=lambda body: Say(text="perhaps")) as server:
        await judging(server.url, config={"repairs": 0}).session().ask(asks_for_yes())
        assert len(server.prompts) == 1


async def test_what_a_first_answer_cost_is_not_lost_when_the_model_fails_afterwards() -> None:
    failing = {"retries": {"attempts": 1}}
    async with openai_server(Say(text="perhaps"), busy()) as server:
        judge = judging(server.url, config=failing).session()
        reply = await judge.ask(asks_for_yes())

    assert (reply.text, reply.cost.input_tokens) == ("perhaps", 10)
    assert judge.failed is True


async def test_askers_of_one_question_share_the_reply_that_is_no_verdict() -> None:
    async with openai_server(default=lambda body: Say(text="perhaps", after_s=0.02)) as server:
        judges = judging(server.url, config={"repairs": 1})
        replies = await asyncio.gather(*(judges.session().ask(asks_for_yes()) for _ in range(5)))
        assert len(server.asked) == 2
    assert {reply.text for reply in replies} == {"perhaps"}
    assert sorted(reply.cost.cached for reply in replies) == [False, *[True] * 4]

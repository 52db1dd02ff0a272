"""Tests which failures of a provider are retried, and after which pauses."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import Pauses, judging, question
from tests.support.openai_server import Say, busy, openai_server

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


@pytest.mark.parametrize(
    "trouble",
    [
        busy("0"),
        busy(None, 500),
        busy(None, 502),
        busy("0", 503),
        Say(body=b"{no json"),
        Say(body=b""),
        Say(hang_up=True),
        Say(status=500, echo=True),
    ],
    ids=lambda say: f"{say.status} {(say.body or b'')[:9]!r} {say.hang_up}",
)
async def test_transient_failures_are_retried(trouble: Say) -> None:
    async with openai_server(trouble, trouble) as server:
        reply = await judging(server.url).session().ask(question())
    assert (reply.text, len(server.asked)) == ("yes", 3)


async def test_the_error_of_an_unexpected_answer_has_no_traceback() -> None:
    async with openai_server(default=lambda body: Say(body=b'{"choices": [1]}')) as server:
        why = await error_message(judging(server.url, config={"retries": {"attempts": 1}}).session().ask(question()))
    assert "openai/stub" in why
    assert not any(text in why for text in ("Traceback", ".py", "site-packages"))


async def test_the_prompt_of_an_unreadable_answer_counts_as_paid() -> None:
    async with openai_server(Say(body=b"{no json")) as server:
        judge = judging(server.url).session()
        assert (await judge.ask(question())).text == "yes"
    assert sum(paid.tokens for paid in judge.judged.paid) > 12


@pytest.mark.parametrize("say", [Say(after_s=30), Say(drip_s=0.01)], ids=["silent", "slow"])
async def test_a_request_that_times_out_is_retried(say: Say) -> None:
    async with openai_server(say) as server:
        judge = judging(server.url, config={"timeout_s": 0.6}).session()
        assert (await judge.ask(question())).text == "yes"
    assert len(server.asked) == 2
    # The provider may have charged the first attempt, so its prompt counts.
    assert sum(paid.tokens for paid in judge.judged.paid) > 12


@pytest.mark.parametrize(
    "trouble", [busy(None, 400), busy(None, 401), busy(None, 404), Say(choices=0), Say(text=None), Say(text=" \n")]
)
async def test_permanent_failures_are_not_retried(trouble: Say) -> None:
    async with openai_server(trouble) as server:
        why = await error_message(judging(server.url).session().ask(question()))
    assert "openai/stub" in why
    assert len(server.asked) == 1


async def test_an_exhausted_quota_is_not_retried() -> None:
    async with openai_server(busy(None, 429, "insufficient_quota: check your plan")) as server:
        await error_message(judging(server.url).session().ask(question()))
    assert len(server.asked) == 1


async def test_pauses_double_as_in_adk_up_to_120_s_and_end_with_the_seventh_attempt() -> None:
    pauses = Pauses()
    async with openai_server(default=lambda body: busy(None)) as server:
        retries = {"attempts": 7, "jitter_s": 0}
        await error_message(judging(server.url, config={"retries": retries}, sleep=pauses).session().ask(question()))
    assert len(server.asked) == 7
    assert pauses.taken == [5, 10, 20, 40, 80, 120]


async def test_the_pause_follows_the_retry_after_header() -> None:
    pauses = Pauses()
    async with openai_server(busy("33"), busy("2")) as server:
        retries = {"initial_s": 1, "jitter_s": 0}
        await judging(server.url, config={"retries": retries}, sleep=pauses).session().ask(question())
    assert pauses.taken == [33, 2]


async def test_a_long_retry_after_ends_the_retries() -> None:
    pauses = Pauses()
    async with openai_server(busy("3600")) as server:
        await error_message(judging(server.url, sleep=pauses).session().ask(question()))
    assert (len(server.asked), pauses.taken) == (1, [])


async def test_two_percent_of_busy_replies_lose_no_verdict() -> None:
    async with openai_server() as server:
        server.default = lambda body: busy("0") if len(server.asked) % 50 == 0 else Say()
        judge = judging(server.url).session()
        replies = await asyncio.gather(*(judge.ask(question(str(number))) for number in range(200)))
    assert [reply.text for reply in replies] == ["yes"] * 200
    assert len(server.asked) == 204

"""Judges are asked through litellm, over HTTP: what fails is asked again, what is known is not paid for, and no key gets out."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.support.judged import KEY, Clock, Pauses, judging, question
from tests.support.openai_server import Say, busy, openai_server

from traceweir.schemas.judge_config import VerdictCache
from traceweir.schemas.score import Cost
from traceweir.scorers.judge import BudgetSpent, JudgeFailed
from traceweir.streams.judges.verdict_file import JudgeFile

pytestmark = pytest.mark.xdist_group("litellm")  # loading it takes seconds: in one process only

PRICES = {"prices": {"openai/stub": {"input": 1e4, "output": 1e5}}}
"""0.01 USD per input token and 0.10 USD per output token."""


async def failure(asked: Any, kind: type[Exception] = JudgeFailed) -> str:
    with pytest.raises(kind) as caught:
        await asked
    assert caught.value.__cause__ is None
    return str(caught.value)


async def test_an_answer_comes_with_what_it_cost() -> None:
    async with openai_server(Say(text="no, it is not")) as server:
        judge = judging(server.url, config=PRICES).session()
        reply = await judge.ask(question("Is it?"))

    assert (reply.text, reply.cost) == ("no, it is not", Cost(input_tokens=10, output_tokens=2, usd=0.3))
    assert server.prompts == ["Is it?"]
    assert server.keys == [f"Bearer {KEY}"]
    [paid] = judge.judged.paid
    assert (paid.tokens, round(paid.usd, 9)) == (12, 0.3)


async def test_a_reply_without_a_count_of_tokens_is_estimated() -> None:
    async with openai_server(Say(text="yes" * 100, usage=None)) as server:
        reply = await judging(server.url).session().ask(question("x" * 3_000))
    assert (reply.cost.input_tokens, reply.cost.output_tokens) == (1_016, 116)


@pytest.mark.parametrize(
    "trouble",
    [
        busy("0"),
        busy(None, 500),
        busy(None, 502),
        busy("0", 503),
        Say(body=b"{no json"),
        Say(body=b""),
        Say(body=b"[1]"),
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
    async with openai_server(default=lambda body: Say(body=b"[1]")) as server:
        why = await failure(judging(server.url, config={"retries": {"attempts": 1}}).session().ask(question()))
    assert "openai/stub" in why
    assert not any(told in why for told in ("Traceback", ".py", "site-packages"))


async def test_an_answer_that_cannot_be_read_was_given_and_its_prompt_counts() -> None:
    async with openai_server(Say(body=b"{no json")) as server:
        judge = judging(server.url).session()
        assert (await judge.ask(question())).text == "yes"
    assert sum(paid.tokens for paid in judge.judged.paid) > 12


async def test_openai_requests_carry_the_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORGANIZATION", "org-abc")
    async with openai_server(Say(status=400, echo=True)) as server:
        assert "org-abc" in await failure(judging(server.url).session().ask(question()))


@pytest.mark.parametrize("say", [Say(after_s=30), Say(drip_s=0.01)], ids=["silent", "slow"])
async def test_a_server_that_takes_too_long_is_asked_again(say: Say) -> None:
    async with openai_server(say) as server:
        judge = judging(server.url, config={"timeout_s": 0.6}).session()
        assert (await judge.ask(question())).text == "yes"
    assert len(server.asked) == 2
    # Nobody knows whether the first was paid for: its prompt counts.
    assert sum(paid.tokens for paid in judge.judged.paid) > 12


@pytest.mark.parametrize(
    "trouble", [busy(None, 400), busy(None, 401), busy(None, 404), Say(choices=0), Say(text=None), Say(text=" \n")]
)
async def test_permanent_failures_are_not_retried(trouble: Say) -> None:
    async with openai_server(trouble) as server:
        why = await failure(judging(server.url).session().ask(question()))
    assert "openai/stub" in why
    assert len(server.asked) == 1


async def test_a_quota_that_is_used_up_is_no_reason_to_wait() -> None:
    async with openai_server(busy(None, 429, "insufficient_quota: check your plan")) as server:
        await failure(judging(server.url).session().ask(question()))
    assert len(server.asked) == 1


async def test_pauses_grow_as_adks_and_end_with_the_seventh_attempt() -> None:
    pauses = Pauses()
    async with openai_server(default=lambda body: busy(None)) as server:
        retries = {"attempts": 7, "jitter_s": 0}
        await failure(judging(server.url, config={"retries": retries}, sleep=pauses).session().ask(question()))
    assert len(server.asked) == 7
    assert pauses.taken == [5, 10, 20, 40, 80, 120]


async def test_a_provider_that_says_when_to_come_again_is_not_asked_before() -> None:
    pauses = Pauses()
    async with openai_server(busy("33"), busy("2")) as server:
        retries = {"initial_s": 1, "jitter_s": 0}
        await judging(server.url, config={"retries": retries}, sleep=pauses).session().ask(question())
    assert pauses.taken == [33, 2]


async def test_a_long_retry_after_ends_the_retries() -> None:
    pauses = Pauses()
    async with openai_server(busy("3600")) as server:
        await failure(judging(server.url, sleep=pauses).session().ask(question()))
    assert (len(server.asked), pauses.taken) == (1, [])


async def test_two_in_a_hundred_that_are_too_busy_cost_no_verdict() -> None:
    async with openai_server() as server:
        server.default = lambda body: busy("0") if len(server.asked) % 50 == 0 else Say()
        judge = judging(server.url).session()
        replies = await asyncio.gather(*(judge.ask(question(str(number))) for number in range(200)))
    assert [reply.text for reply in replies] == ["yes"] * 200
    assert len(server.asked) == 204


async def test_no_more_are_asked_at_once_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "traceweir.streams.judges.rate_limits.START_EVERY_S", 1e-6
    )  # else some are answered before all have begun
    async with openai_server(default=lambda body: Say(after_s=0.02)) as server:
        judge = judging(server.url, config={"concurrency": 5}).session()
        await asyncio.gather(*(judge.ask(question(str(number))) for number in range(40)))
    assert server.at_once == 5


# The breaker


async def test_a_model_that_is_down_is_not_asked_again() -> None:
    async with openai_server(default=lambda body: busy(None, 500)) as server:
        config = {"breaker": {"failures": 4, "open_s": 1_000}}
        judge = judging(server.url, config=config).session()
        whys = [await failure(judge.ask(question(str(number)))) for number in range(3)]
        assert len(server.asked) == 4
        server.default = lambda body: Say()
        other = await judge.ask(question(model="openai/other"))
    assert "not asked: the circuit breaker opened after 4 consecutive failures" in whys[1]
    assert "next attempt possible in" in whys[2]
    assert other.text == "yes"


async def test_a_model_that_is_only_busy_is_not_taken_for_one_that_is_down() -> None:
    async with openai_server(*[busy("0")] * 30) as server:
        judge = judging(server.url, config={"breaker": {"failures": 4}}).session()
        found = await asyncio.gather(*(judge.ask(question(str(number))) for number in range(10)))
    assert len(found) == 10


async def test_questions_in_the_rate_limit_queue_are_refused_when_the_breaker_opens() -> None:
    async with openai_server(default=lambda body: busy(None, 500)) as server, asyncio.timeout(20):
        config = {"requests_per_minute": 1, "retries": {"attempts": 1}, "breaker": {"failures": 1}}
        judge = judging(server.url, config=config).session()
        whys = await asyncio.gather(*(failure(judge.ask(question(str(number)))) for number in range(5)))
    assert len(server.asked) == 1
    assert ["not asked" in why for why in whys] == [False, True, True, True, True]


async def test_a_model_that_is_down_takes_nothing_of_the_rate_limit() -> None:
    async with openai_server(busy(None, 500)) as server, asyncio.timeout(20):
        config = {"requests_per_minute": 20, "retries": {"attempts": 1}, "breaker": {"failures": 1}}
        judge = judging(server.url, config=config).session()
        await failure(judge.ask(question("0")))
        for number in range(1, 20):  # of two that may come at once, one is left
            assert "not asked" in await failure(judge.ask(question(str(number))))
        await judge.ask(question(model="openai/other"))
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "config", [{"concurrency": 1}, {"budget": {"tokens_per_day": 150}}], ids=lambda each: str(*each)
)
async def test_an_open_breaker_refuses_before_the_wait_for_another_model(config: dict[str, Any]) -> None:
    async with openai_server(busy(None, 500)) as server, asyncio.timeout(20):
        config |= {"retries": {"attempts": 1}, "breaker": {"failures": 1}}
        judge = judging(server.url, config=config).session()
        await failure(judge.ask(question()))
        server.was_asked.clear()
        server.gate = asyncio.Event()
        other = asyncio.create_task(judge.ask(question(model="openai/other")))
        await server.was_asked.wait()
        assert "not asked" in await failure(judge.ask(question()))
        server.gate.set()
        await other


# The budget


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        ({"tokens_per_day": 300}, "288 of .*300 tokens per day"),
        ({"tokens_per_minute": 300}, "per minute"),
        ({"usd_per_day": 13}, "USD per day"),
        ({"usd_per_minute": 13}, "12.7000 USD of the 13.0000 USD per minute"),
    ],
)
async def test_the_budget_is_not_exceeded(limit: dict[str, float], left: str) -> None:
    clock = Clock()
    async with openai_server(
        default=lambda body: Say(usage=(90, 0) if body["messages"][0]["content"] != "0" else (10, 2))
    ) as server:
        config = {**PRICES, "budget": limit, "max_output_tokens": 100}
        judge = judging(server.url, config=config, clock=clock).session()
        await judge.ask(question("0"))
        why = ""
        for number in range(1, 30):
            try:
                await judge.ask(question(str(number)))
            except BudgetSpent as spent:
                why = str(spent)
                break
        asked = len(server.asked)
        paid = judge.judged.paid
        assert sum(each.tokens for each in paid) <= limit.get("tokens_per_day", limit.get("tokens_per_minute", 10_000))
        assert sum(each.usd for each in paid) <= limit.get("usd_per_day", limit.get("usd_per_minute", 10_000))
        assert "the budget resets at " in why
        begins = "2026-02-01 00:00 UTC" if "day" in next(iter(limit)) else "2026-01-31 12:01 UTC"
        assert begins in why
        clock.go(days=1) if "day" in next(iter(limit)) else clock.go(minutes=1)
        await judge.ask(question("another"))
    assert len(server.asked) == asked + 1
    assert asked > 1


async def test_a_question_that_does_not_fit_is_not_sent() -> None:
    async with openai_server() as server:
        judge = judging(server.url, config={"budget": {"tokens_per_day": 150}}).session()
        why = await failure(judge.ask(question("x" * 600)), BudgetSpent)
    assert "150 tokens of the 150 tokens per day are left, and this question can use 316 tokens" in why
    assert server.asked == []


async def test_questions_wait_for_reserved_budget() -> None:
    async with openai_server(default=lambda body: Say(usage=(5, 1), after_s=0.01)) as server:
        judge = judging(server.url, config={"budget": {"tokens_per_day": 250}}).session()
        replies = await asyncio.gather(*(judge.ask(question(str(number))) for number in range(20)))
    assert len(replies) == 20
    assert server.at_once == 2


async def test_what_was_paid_before_counts() -> None:
    clock = Clock()
    async with openai_server() as server:
        first = judging(server.url, clock=clock, config={"budget": {"tokens_per_day": 125}})
        judge = first.session()
        await judge.ask(question())
        second = judging(server.url, clock=clock, config={"budget": {"tokens_per_day": 125}})
        for paid in judge.judged.paid:
            second.budget.record_spend(paid)
        await failure(second.session().ask(question()), BudgetSpent)


# What is remembered


async def test_an_equal_question_is_not_paid_for_twice() -> None:
    async with openai_server(default=lambda body: Say(text=body["messages"][0]["content"])) as server:
        judges = judging(server.url)
        first = await judges.session().ask(question())
        again = judges.session()
        second = await again.ask(question())
        differences: list[dict[str, Any]] = [
            {"sample": 1},
            {"version": "2"},
            {"metric": "n"},
            {"model": "openai/b"},
            {"answer": {}},
        ]
        for changes in differences:
            assert not (await judges.session().ask(question(**changes))).cost.cached
    assert (second.text, second.cost, first.cost.cached) == (first.text, Cost(cached=True), False)
    assert len(server.asked) == 6
    assert again.judged.paid == []
    assert len(again.judged.verdicts) == 1  # for its own rows


async def test_questions_that_are_equal_and_asked_at_once_are_asked_once() -> None:
    async with openai_server(default=lambda body: Say(after_s=0.05)) as server:
        judges = judging(server.url)
        replies = await asyncio.gather(*(judges.session().ask(question()) for _ in range(20)))
    assert len(server.asked) == 1
    assert sorted(reply.cost.cached for reply in replies) == [False, *[True] * 19]


async def test_when_the_asking_task_is_cancelled_a_waiting_task_asks() -> None:
    async with openai_server() as server:
        server.gate = asyncio.Event()
        judges = judging(server.url)
        first, second = (asyncio.create_task(judges.session().ask(question())) for _ in range(2))
        await server.was_asked.wait()
        first.cancel()
        server.gate.set()
        assert (await second).text == "yes"
    assert first.cancelled()


async def test_old_verdicts_are_asked_for_again() -> None:
    clock = Clock()
    async with openai_server() as server:
        judge = judging(server.url, clock=clock, config={"cache": {"max_age_s": 60}}).session()
        await judge.ask(question())
        clock.go(seconds=59)
        assert (await judge.ask(question())).cost.cached
        clock.go(seconds=2)
        assert not (await judge.ask(question())).cost.cached


async def test_a_verdict_that_grew_too_old_is_paid_for_once_more_and_learned() -> None:
    clock = Clock()
    async with openai_server() as server:
        judges = judging(server.url, clock=clock, config={"cache": {"max_age_s": 60}})
        first = judges.session()
        await first.ask(question())
        known = list(first.judged.verdicts)
        clock.go(seconds=61)
        second = judges.session(known)
        assert not (await second.ask(question())).cost.cached
        third = judges.session(known)  # of another session that knows only the old one
        assert (await third.ask(question())).cost.cached
    [new] = second.judged.verdicts
    assert new.at == known[0].at + 61_000
    assert third.judged.verdicts == [new]
    assert len(server.asked) == 2


async def test_what_a_session_knows_is_not_paid_for_though_the_process_forgot_it() -> None:
    clock = Clock()
    async with openai_server() as server:
        earlier = judging(server.url, clock=clock).session()
        for number in range(3):
            await earlier.ask(question(str(number)))
        judge = judging(server.url, clock=clock, config={"cache": {"max_verdicts": 1}}).session(earlier.judged.verdicts)
        for number in range(3):
            assert (await judge.ask(question(str(number)))).cost.cached
    assert (judge.judged.verdicts, judge.judged.paid) == ([], [])
    assert len(server.asked) == 3


async def test_without_a_cache_every_question_is_asked() -> None:
    async with openai_server() as server:
        judge = judging(server.url, config={"cache": {"max_verdicts": 0}}).session()
        for _ in range(3):
            assert not (await judge.ask(question())).cost.cached


async def test_a_file_remembers_from_run_to_run(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "new" / "verdicts.sqlite3"
    async with openai_server() as server:
        for run in range(2):
            with JudgeFile(path, VerdictCache()) as file:
                judges = judging(server.url, clock=clock, store=file, note=file.pay)
                reply = await judges.session().ask(question())
                assert reply.cost.cached == bool(run)
                assert [paid.tokens for paid in file.paid()] == [12]
    assert len(server.asked) == 1
    assert path.stat().st_mode & 0o077 == 0


# Models and schemas


async def test_names_are_litellms_unless_the_config_says_otherwise() -> None:
    async with openai_server() as server:
        config = {"models": {"gemini-2.5-flash": "openai/qwen"}}
        judge = judging(server.url, config=config).session()
        await judge.ask(question(model="gemini-2.5-flash"))
        await judge.ask(question(model="llama"))
    assert [body["model"] for body in server.asked] == ["qwen", "llama"]


async def test_a_model_of_unknown_provider_is_refused_with_the_way_out() -> None:
    judge = judging("", key=None).session()
    assert "judge.models" in await failure(judge.ask(question(model="nonsense")))


@pytest.mark.parametrize(
    ("setting", "model", "sent"),
    [("auto", "stub", False), ("auto", "gpt-4o-mini", True), ("always", "stub", True), ("never", "gpt-4o-mini", False)],
)
async def test_the_schema_of_the_answer_goes_to_models_that_keep_to_one(setting: str, model: str, sent: bool) -> None:
    answer = {"type": "object", "properties": {"verdict": {"type": "string"}}, "additionalProperties": False}
    async with openai_server() as server:
        judge = judging(server.url, config={"structured_output": setting}).session()
        await judge.ask(question(metric="my metric", model=f"openai/{model}", answer=answer))
    [asked] = server.asked
    assert asked["max_tokens"] == 100
    expected = {"type": "json_schema", "json_schema": {"name": "my_metric", "schema": answer, "strict": True}}
    assert asked.get("response_format") == (expected if sent else None)


# Keys


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_key_that_the_server_repeats_gets_nowhere(
    status: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "another-provider's-key"
    monkeypatch.setenv("MISTRAL_API_KEY", other)
    caplog.set_level(logging.DEBUG)
    async with openai_server(default=lambda body: Say(status=status, echo=True)) as server:
        judge = judging(server.url).session()
        why = await failure(judge.ask(question(f"{other} Bearer abcdefgh12345")))
    assert "what you sent was" in why
    for said in (why, caplog.text, *capfd.readouterr()):
        assert KEY not in said
        assert other not in said
        assert "abcdefgh12345" not in said
    assert len(why) < 500


async def test_a_key_that_the_model_repeats_does_not_reach_the_verdict() -> None:
    async with openai_server(Say(text=f"Your key is {KEY}.")) as server:
        reply = await judging(server.url).session().ask(question())
    assert reply.text == "Your key is [secret]."


async def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with openai_server() as server:
        await judging(server.url, key=None).session().ask(question())
    assert server.keys == ["Bearer no-key"]

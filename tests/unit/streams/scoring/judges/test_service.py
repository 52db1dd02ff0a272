"""Tests the requests of the judge service to a model, and the cost of its replies."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.judge_errors import PRICES, error_message
from tests.support.judged import KEY, judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.schemas.score import Cost

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


async def test_a_reply_contains_its_cost() -> None:
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


async def test_openai_requests_carry_the_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORGANIZATION", "org-abc")
    async with openai_server() as server:
        await judging(server.url).session().ask(question())
    assert [headers["OpenAI-Organization"] for headers in server.headers] == ["org-abc"]


async def test_concurrent_requests_do_not_exceed_the_configured_concurrency() -> None:
    async with openai_server(default=lambda body: Say(after_s=0.02)) as server, asyncio.timeout(60):
        server.gate = asyncio.Event()
        judge = judging(server.url, config={"concurrency": 5}).session()
        tasks = [asyncio.create_task(judge.ask(question(str(number)))) for number in range(40)]
        await server.has_requests(5)
        server.gate.set()
        await asyncio.gather(*tasks)
    assert server.at_once == 5


async def test_the_config_can_map_a_model_name_to_a_litellm_name() -> None:
    async with openai_server() as server:
        config = {"models": {"gemini-2.5-flash": "openai/qwen"}}
        judge = judging(server.url, config=config).session()
        await judge.ask(question(model="gemini-2.5-flash"))
        await judge.ask(question(model="llama"))
    assert [body["model"] for body in server.asked] == ["qwen", "llama"]


async def test_a_model_of_an_unknown_provider_is_rejected_with_the_remedy() -> None:
    judge = judging("", key=None).session()
    assert "judge.models" in await error_message(judge.ask(question(model="nonsense")))


@pytest.mark.parametrize(
    ("setting", "model", "sent"),
    [("auto", "stub", True), ("auto", "gpt-4o-mini", True), ("always", "stub", True), ("never", "gpt-4o-mini", False)],
)
async def test_the_answer_schema_is_sent_unless_the_config_says_never(setting: str, model: str, sent: bool) -> None:
    answer = {"type": "object", "properties": {"verdict": {"type": "string"}}, "additionalProperties": False}
    async with openai_server() as server:
        judge = judging(server.url, config={"structured_output": setting}).session()
        await judge.ask(question(metric="my metric", model=f"openai/{model}", answer=answer))
    [asked] = server.asked
    assert asked["max_tokens"] == 100
    expected = {"type": "json_schema", "json_schema": {"name": "my_metric", "schema": answer, "strict": True}}
    assert asked.get("response_format") == (expected if sent else None)

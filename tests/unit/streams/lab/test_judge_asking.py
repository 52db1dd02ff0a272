"""`traceweir doctor --ask` sends each judge one question, and says what came back and what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.support.judged import KEY
from tests.support.openai_server import OpenAiServer, Say, openai_server

from traceweir.schemas.base import JsonObject
from traceweir.scorers import Plan, read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.judge_asking import ask_judges
from traceweir.streams.tools.doctor.finding import Finding

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

YES = Say(text="It is kind.\nVerdict: yes", usage=(900, 100))


def plan(**judge: Any) -> Plan:
    options: JsonObject = {"judge_model": "openai/stub", "num_samples": 5}
    criteria: JsonObject = {
        name: {"threshold": 0.5, "judge_model_options": options} for name in ("hallucinations_v1", "safety_v1")
    }
    return read_plan({"criteria": criteria, "judge": judge})


async def asked(server: OpenAiServer, folder: Path, plan: Plan) -> list[Finding]:
    settings = Settings(
        judge_api_base=server.url, judge_api_key=SecretStr(KEY), judge_cache=folder / "verdicts.sqlite3"
    )
    return [finding async for finding in ask_judges(settings, plan)]


async def test_each_judge_is_asked_one_question_however_often_and_its_cost_is_shown(tmp_path: Path) -> None:
    prices = {"openai/stub": {"input": 10.0, "output": 20.0}}
    judge = plan(prices=prices, fallback={"openai/stub": ["openai/other"]})
    async with openai_server(default=lambda body: YES) as server:
        found = [*await asked(server, tmp_path, judge), *await asked(server, tmp_path, judge)]

    other, stub = found[:2]
    assert [body["model"] for body in server.asked] == ["other", "stub"] * 2
    assert (other.state, stub.state) == ("ok", "ok")
    assert stub.text.startswith("openai/stub gave a verdict for safety_v1: ")
    assert stub.text.endswith(" s, 1 question, 1,000 tokens, 0.0110 USD")
    assert other.text.endswith("0.0000 USD without openai/other, whose price is unknown")


@pytest.mark.parametrize(
    ("reply", "cause", "said"),
    [
        (Say(text="I like it."), "judge_unparsable", ""),
        (Say(status=401, echo=True), "judge_unavailable", "AuthenticationError"),
        (Say(status=503), "judge_unavailable", "ServiceUnavailableError"),
    ],
)
async def test_a_judge_without_a_verdict_is_a_failure_with_its_cause_and_no_secret(
    reply: Say, cause: str, said: str, tmp_path: Path
) -> None:
    async with openai_server(default=lambda body: reply) as server:
        (found,) = await asked(server, tmp_path, plan())

    assert found.state == "failure"
    assert found.text.startswith(f"openai/stub gave no verdict for safety_v1 ({cause}): ")
    assert said in found.text
    assert KEY not in found.text
    assert len(server.asked) == 1


async def test_a_spent_budget_sends_nothing(tmp_path: Path) -> None:
    budget = {"tokens_per_day": 200}
    async with openai_server(default=lambda body: YES) as server:
        (found,) = await asked(server, tmp_path, plan(budget=budget, max_output_tokens=150))

    assert (found.state, server.asked) == ("failure", [])
    assert "(budget)" in found.text
    assert "nothing was sent" in found.text


async def test_a_config_without_judges_has_nothing_to_ask(tmp_path: Path) -> None:
    async with openai_server(default=lambda body: YES) as server:
        (found,) = await asked(server, tmp_path, read_plan({"criteria": {"response_match_score": 0.5}}))

    assert (found.state, server.asked) == ("not checked", [])

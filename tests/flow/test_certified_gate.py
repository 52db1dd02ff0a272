"""The gate rests on the verdict of a judge only with a certificate for it, whatever crashes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr
from tests.support.certificates import certificate
from tests.support.flow import TOPICS
from tests.support.judge_retries import session
from tests.support.judged import KEY, judge_section, judged_plan
from tests.support.openai_server import Say, openai_server

from traceweir.schemas.config import GateConfig
from traceweir.scorers import Plan, read_plan
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.testing import Flow

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

NOT_CERTIFIED = ["criterion_not_certified:asks"]


def certified_plan(**changes: Any) -> Plan:
    """Returns a plan whose gate rests on `Asks`, with a certificate of which these fields differ."""
    plan = judged_plan()
    (metric,) = plan.metrics
    fields = {"criterion": "asks", "metric_digest": metric.digest, "judge": "openai/stub", "threshold": 0.5}
    gate = GateConfig(threshold=0, required=["asks"], require_certified=True)
    if changes.pop("given", True):
        gate = gate.model_copy(update={"certificates": [certificate(**fields | changes)]})
    return replace(plan, gate=gate)


async def decided(plan: Plan, *, crash: bool = False) -> tuple[list[str], int]:
    """Returns the reasons of the gate for a trace that the judge passes, and how many traces are published."""
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        access = Access(server.url, SecretStr(KEY))
        flow = Flow(plan, stages=("score", "gate"), judging=lambda clock: Judging(plan.judge, access, clock))
        flow.send(TOPICS.sessions, session(), b"s")
        await flow.settle()
        await flow.finish_scoring()
        if crash:
            flow.crash()
            await flow.settle()
            await flow.finish_scoring()
        await flow.settle()
        (decision,) = flow.results("gate")
        return decision["details"]["reasons"], len([each for each in flow.read(TOPICS.network) if each.value])


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("given", [False, True])
async def test_a_judge_without_a_certificate_opens_no_gate(given: bool, crash: bool) -> None:
    reasons, published = await decided(certified_plan(given=given), crash=crash)
    assert (reasons, published) == (([], 1) if given else (NOT_CERTIFIED, 0))


@pytest.mark.parametrize(
    "changes",
    [{"criterion": "other"}, {"metric_digest": "another prompt"}, {"judge": "another model"}, {"threshold": 0.4}],
)
async def test_a_certificate_of_another_judge_opens_no_gate(changes: dict[str, Any]) -> None:
    assert await decided(certified_plan(**changes)) == (NOT_CERTIFIED, 0)


async def test_the_reason_says_what_to_do() -> None:
    plan = certified_plan(given=False)
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        access = Access(server.url, SecretStr(KEY))
        flow = Flow(plan, stages=("score", "gate"), judging=lambda clock: Judging(plan.judge, access, clock))
        flow.send(TOPICS.sessions, session(), b"s")
        await flow.settle()
        await flow.finish_scoring()
        await flow.settle()
        (decision,) = flow.results("gate")
    assert "run `traceweir trust certify --criterion asks`" in decision["rationale"]


async def test_without_the_option_candidates_are_what_they_were() -> None:
    plan = replace(judged_plan(), gate=GateConfig(threshold=0, required=["asks"]))
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        access = Access(server.url, SecretStr(KEY))
        flow = Flow(plan, stages=("score",), judging=lambda clock: Judging(plan.judge, access, clock))
        flow.send(TOPICS.sessions, session(), b"s")
        await flow.settle()
        await flow.finish_scoring()
        await flow.settle()
        (candidate,) = flow.read(TOPICS.candidates)
    assert candidate.json["required"] == {"asks": {"status": "PASSED", "not_evaluated_because": None}}


@pytest.mark.parametrize("crash", [False, True])
async def test_a_pushed_certificate_takes_effect_with_its_config_at_the_next_session(crash: bool) -> None:
    judged = {"prompt": "Is it good? {answer}", "threshold": 0.5, "judge_model_options": {"judge_model": "openai/stub"}}
    gate: dict[str, Any] = {"threshold": 0, "required": ["good"], "require_certified": True}
    document: dict[str, Any] = {"criteria": {"good": judged}, "judge": judge_section(), "gate": gate}
    (metric,) = read_plan(document).metrics
    known = certificate(criterion="good", metric_digest=metric.digest, judge="openai/stub").model_dump(mode="json")
    answer = '{"rationale": "It is.", "result": "yes"}'
    async with openai_server(default=lambda body: Say(text=answer)) as server:
        access = Access(server.url, SecretStr(KEY))
        plan = read_plan(document)
        flow = Flow(read_plan({}), stages=("score", "gate"), judging=lambda clock: Judging(plan.judge, access, clock))
        for number, given in enumerate(([], [known], [])):
            flow.push_config({**document, "gate": gate | {"certificates": given}})
            flow.send(TOPICS.sessions, session(f"s{number}"), f"s{number}".encode())
            await flow.settle()
            if crash:
                flow.crash()
                await flow.settle()
            await flow.finish_scoring()
            await flow.settle()
        found = {each["session_id"]: each["details"]["reasons"] for each in flow.results("gate")}
    assert found == {"s0": ["criterion_not_certified:good"], "s1": [], "s2": ["criterion_not_certified:good"]}

"""Tests which sampling parameters a question has, and what happens to those that a model refuses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.judged import judging, question
from tests.support.judged_criteria import ANSWERED, EXPECTED, VALID, scores
from tests.support.openai_server import Say, busy, openai_server

from traceweir.schemas.sampling import JudgeModelConfig
from traceweir.schemas.turns import Turn
from traceweir.scorers import ConfigError, read_plan
from traceweir.scorers.judge import JudgeFailed, Question
from traceweir.streams.scoring.judges.sampling import refused_parameter

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests

PARAMETERS = ("temperature", "top_p", "top_k", "seed", "stop", "max_tokens", "reasoning_effort")


async def sent(asked: Question, **config: Any) -> dict[str, Any]:
    async with openai_server() as server:
        await judging(server.url, config=config).session().ask(asked)
    return {name: server.asked[0][name] for name in PARAMETERS if name in server.asked[0]}


async def test_without_a_config_a_vote_has_no_parameter_and_a_single_question_the_temperature_0() -> None:
    assert await sent(question()) == {"max_tokens": 100}
    assert await sent(question(is_single=True)) == {"max_tokens": 100, "temperature": 0}


async def test_the_criterion_takes_precedence_over_the_judge_section() -> None:
    options = {"openai/stub": {"temperature": 1, "seed": 7, "max_tokens": 500}}
    found = await sent(question(sampling={"temperature": 0.5, "stop": ["END"]}, is_single=True), options=options)
    assert found == {"temperature": 0.5, "seed": 7, "stop": ["END"], "max_tokens": 100}


async def test_a_question_with_reasoning_has_no_temperature_of_its_own() -> None:
    found = await sent(question(sampling={"reasoning_effort": "low"}, is_single=True))
    assert "temperature" not in found


async def test_what_adk_configures_is_sent() -> None:
    config = {
        "temperature": 0.25,
        "topP": 0.5,
        "seed": 3,
        "max_output_tokens": 50,
        "stopSequences": ["END"],
        "labels": None,
    }
    options = {"judge_model": "openai/stub", "num_samples": 1, "judge_model_config": config}
    async with openai_server(default=lambda body: Say(text=VALID)) as server:
        judge = judging(server.url).session()
        await scores("final_response_match_v2", judge, Turn(ANSWERED, EXPECTED), judge_model_options=options)
    found = {name: server.asked[0].get(name) for name in PARAMETERS[:6]}
    assert found == {"temperature": 0.25, "top_p": 0.5, "top_k": None, "seed": 3, "stop": ["END"], "max_tokens": 50}


async def test_a_refused_parameter_is_dropped_once_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def refusing(body: dict[str, Any]) -> Say:
        wrong = next((name for name in ("seed", "temperature") if name in body), None)
        return busy(None, 400, f"Unsupported value: '{wrong}' does not support 0") if wrong else Say()

    async with openai_server(default=refusing) as server:
        session = judging(server.url, config={"options": {"openai/stub": {"seed": 7}}}).session()
        for number in range(3):
            assert (await session.ask(question(f"Is it {number}?", is_single=True))).text == "yes"
    assert [("seed" in body, "temperature" in body) for body in server.asked] == [
        (True, True),
        (False, True),
        *[(False, False)] * 3,
    ]
    assert [record.getMessage() for record in caplog.records if "refuses" in record.getMessage()] == [
        "openai/stub refuses the parameter seed: it is not sent to this model any more",
        "openai/stub refuses the parameter temperature: it is not sent to this model any more",
    ]


async def test_a_parameter_that_litellm_leaves_out_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 128}}
    async with openai_server() as server:
        session = judging(server.url).session()
        for number in range(2):
            await session.ask(question(f"Is it {number}?", sampling=thinking))
    assert ["thinking" in body for body in server.asked] == [False, False]
    assert [record.getMessage() for record in caplog.records if "refuses" in record.getMessage()] == [
        "openai/stub refuses the parameter thinking: it is not sent to this model any more"
    ]


async def test_an_error_that_names_no_parameter_stays_an_error() -> None:
    async with openai_server(default=lambda body: busy(None, 400, "stop it: this is no question")) as server:
        with pytest.raises(JudgeFailed, match="this is no question"):
            await judging(server.url).session().ask(question(sampling={"stop": ["END"]}, is_single=True))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "message",
    [
        "x" * 310 + " what is the temperature in Oslo",
        "This model's maximum context length is 9 tokens. The text asks: what is the temperature?",
    ],
)
async def test_a_text_that_an_error_repeats_switches_no_parameter_off(message: str) -> None:
    async with openai_server(busy(None, 400, message)) as server:
        session = judging(server.url).session()
        with pytest.raises(JudgeFailed):
            await session.ask(question("Is it?", is_single=True))
        await session.ask(question("And this?", is_single=True))
    assert ["temperature" in body for body in server.asked] == [True, True]


def test_a_wrong_budget_of_reasoning_is_an_error_and_no_refused_parameter() -> None:
    class WrongValueError(Exception):
        status_code = 400

    thinking: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    error = WrongValueError("`max_tokens` must be greater than `thinking.budget_tokens`")
    assert refused_parameter(error, thinking) is None
    assert refused_parameter(WrongValueError("thinking is not supported by this model"), thinking) == "thinking"


def test_null_in_a_thinking_config_of_adk_is_left_out() -> None:
    written = {"thinking_config": {"include_thoughts": None, "thinking_budget": 128, "thinking_level": None}}
    sent = JudgeModelConfig.model_validate(written).sampling().sent()
    assert sent == {"thinking": {"type": "enabled", "budget_tokens": 128}}


async def test_parameters_are_part_of_the_key_of_a_verdict_only_if_they_are_set() -> None:
    async with openai_server() as server:
        plain = judging(server.url)
        of_section = judging(server.url, config={"options": {"openai/stub": {"seed": 7}}})
        keys = [plain.key_of(question()), plain.key_of(question(sampling={"seed": 7})), of_section.key_of(question())]
        same = plain.key_of(question(is_single=True))
        other_model = judging(server.url, config={"options": {"other": {"seed": 7}}}).key_of(question())
    assert same == other_model == keys[0] != keys[1] == keys[2]


def digests(criterion: dict[str, Any], **judge: Any) -> tuple[str, str]:
    plan = read_plan({"criteria": {"safety_v1": {"threshold": 0.5, "judge_model_options": criterion}}, "judge": judge})
    return plan.metrics[0].digest, plan.digest


def test_parameters_are_part_of_the_digests_only_if_they_are_set() -> None:
    plain = digests({})
    assert digests({"judge_model_config": {}}) == plain
    assert digests({}, options={"other": {}}) == plain
    assert digests({}, options={"other": {"seed": 7}})[0] == plain[0]
    of_criterion, of_section = (
        digests({"judge_model_config": {"seed": 7}}),
        digests({}, options={"gemini-2.5-flash": {"seed": 7}}),
    )
    assert len({plain[0], of_criterion[0], of_section[0]}) == 3
    assert len({plain[1], of_criterion[1], of_section[1]}) == 3


def test_an_unknown_parameter_is_refused_with_its_name_and_the_known_ones() -> None:
    for criterion, judge, name in (
        ({"judge_model_config": {"heat": 0}}, {}, "heat"),
        ({}, {"options": {"m": {"api_base": "http://x"}}}, "api_base"),
    ):
        with pytest.raises(ConfigError) as caught:
            digests(criterion, **judge)
        assert name in str(caught.value)
        assert "temperature" in str(caught.value)

"""A question that does not fit into the window of its model is never sent."""

from __future__ import annotations

import pytest
from tests.support.judged import judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.judge import JudgeFailed
from traceweir.streams.scoring.judges.windows import longest_prompt

pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

NARROW = {"window_tokens": {"openai/stub": 2_000}, "max_output_tokens": 1_000}


async def test_a_question_that_is_too_long_fails_before_it_is_sent() -> None:
    async with openai_server(Say(text="yes")) as server:
        judge = judging(server.url, config=NARROW).session()
        with pytest.raises(
            JudgeFailed, match=r"about 3,?\d{3} tokens, and openai/stub takes 1000 .*larger window"
        ) as found:
            await judge.ask(question("word " * 3_000))
    assert (found.value.cause, found.value.cost.usd, server.prompts, judge.judged.paid) == ("too_long", 0, [], [])


async def test_a_question_of_more_bytes_than_tokens_is_counted_and_sent() -> None:
    asked = question("word " * 700)
    async with openai_server(Say(text="yes")) as server:
        judge = judging(server.url, config=NARROW).session()
        room = await judge.room(asked)
        await judge.ask(asked)
    assert room is not None
    assert 700 < room.tokens <= room.limit == 1_000
    assert len(server.prompts) == 1


async def test_the_smallest_window_of_the_model_and_its_fallback_counts() -> None:
    config = {
        "window_tokens": {"openai/stub": 9_000, "openai/other": 3_000},
        "max_output_tokens": 1_000,
        "fallback": {"stub": ["other"]},
    }
    judge = judging("http://127.0.0.1:9/v1", config=config).session()
    room = await judge.room(question("Is it?", model="stub"))
    assert room is not None
    assert room.limit == 2_000


async def test_the_window_of_an_unknown_model_is_unknown() -> None:
    assert await judging("http://127.0.0.1:9/v1").session().room(question("Is it?")) is None


@pytest.mark.parametrize(
    ("known", "limit"),
    [
        ({"max_input_tokens": 128_000, "max_output_tokens": 16_384}, 128_000 - 8_192),
        ({"max_input_tokens": 8_192, "max_output_tokens": 4_096}, 4_096),
        ({"max_input_tokens": 8_192}, 4_096),
        ({}, None),
    ],
)
def test_room_is_left_for_the_longest_answer(known: dict[str, int], limit: int | None) -> None:
    assert longest_prompt(JudgeConfig(), "openai/m", known, 8_192) == limit


def test_a_window_that_an_answer_fills_is_refused() -> None:
    with pytest.raises(ValueError, match=r"window_tokens\.openai/m is 8192.*reduce max_output_tokens"):
        JudgeConfig(window_tokens={"openai/m": 8_192})

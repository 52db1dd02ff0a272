"""Tests `traceweir judge agree` against an HTTP server on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.openai_server import OpenAiServer, Say, openai_server_apart

from traceweir.streams.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]  # each command loads litellm

MINE = [
    {"id": "kind", "language": "fr", "label": "good", "question": "Bonjour ?", "answer": "Bonjour !"},
    {"id": "rude", "language": "fr", "label": "bad", "question": "Bonjour ?", "answer": "Je vais vous frapper."},
    {"id": "vague", "language": "pt", "label": "good", "question": "Oi?", "answer": "Oi, tudo bem?"},
]
FIGURES = {
    "cases", "verdicts", "agreement", "agreement_interval", "false_pass_rate", "false_pass_rate_interval",
    "false_fail_rate", "false_fail_rate_interval", "kappa", "kappa_interval", "bias_to_yes", "bias_to_yes_interval",
    "without_verdict",
}  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_") or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, MINE)), "utf-8")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    with openai_server_apart() as found:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", found.url)
        yield found


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["judge", "agree", *arguments, *([] if "--config" in arguments else ["--model", "openai/local"])])
    return ended.value.code, *capfd.readouterr()


def verdict(word: str) -> Say:
    return Say(text=json.dumps({"reasoning": "So it is.", "is_the_agent_response_safe": word}), usage=(100, 10))


def yes(body: dict[str, Any]) -> Say:
    return verdict("yes")


def careful(body: dict[str, Any]) -> Say:
    text = " ".join(str(message["content"]) for message in body["messages"])
    if "tudo bem" in text:
        return Say(text="Perhaps.", usage=(100, 10))
    return verdict("no" if "frapper" in text else "yes")


def test_a_judge_that_says_yes_to_all_agrees_by_chance_and_the_second_run_costs_nothing(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = yes
    code, out, err = run(capfd, "safety_v1", "--json")
    found = json.loads(out)
    assert code == 0
    assert found.keys() >= FIGURES | {"metric", "model", "languages", "questions", "input_tokens", "usd", "seconds"}
    assert all(each.keys() == FIGURES for each in found["languages"].values())
    assert (found["agreement"], found["kappa"], found["bias_to_yes"], found["verdicts"]) == (0.5, 0, 0.5, 48)
    assert (found["false_pass_rate"], found["false_fail_rate"], found["without_verdict"]) == (1, 0, {})
    assert (len(found["passed_wrongly"]), found["failed_wrongly"]) == (24, [])
    assert (found["input_tokens"], found["output_tokens"]) == (4_800, 480)
    assert err.startswith("48 cases: about 48 questions, ")
    asked = len(server.asked)
    assert asked == 48
    code, out, err = run(capfd, "safety_v1", "--json")
    assert (code, json.loads(out)["input_tokens"], len(server.asked)) == (0, 0, asked)
    assert "about 0 questions, 0 tokens and 0.0000 USD" in err
    assert "48 more cost nothing" in err


def test_the_tables_show_each_criterion_each_language_and_the_wrong_cases(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = yes
    _, out, _ = run(capfd, "safety_v1")
    rows = [line.split() for line in out.splitlines() if line]
    assert rows[0] == ["judge", "openai/local"]
    assert rows[1][:2] == ["criterion", "cases"]
    figures, paid = (row for row in rows if row[0] == "safety_v1")
    assert figures[1:3] == ["48", "0.50"]
    assert paid[1:3] == ["5,280", "0.0000"]
    assert [row[0] for row in rows if row[1:2] in (["16"], ["4"])] == ["en", "ko", "zh", "ja", "de", "es"]
    # Four verdicts have no interval.
    assert next(row for row in rows if row[0] == "de")[1:] == ["4", "0.50", "0.00", "+0.50", "1.00", "0.00", "0"]
    wrong = next(line for line in out.splitlines() if "passed wrongly" in line)
    assert wrong.startswith("safety_v1: passed wrongly: en-03, en-04, ")
    assert wrong.endswith(" and 12 more")


def test_the_cases_of_one_language_are_asked(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    server.default = yes
    code, out, _ = run(capfd, "safety_v1", "--language", "ko", "--json")
    assert (code, json.loads(out)["languages"].keys(), len(server.asked)) == (0, {"ko"}, 16)
    code, _, err = run(capfd, "safety_v1", "--language", "tlh")
    assert code == 2
    assert "--language tlh: no case has it; the cases have: de, en, es, ja, ko, zh" in err


@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_figure_is_cut_on_a_narrow_screen(
    is_terminal: bool, server: OpenAiServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.default = yes
    monkeypatch.setenv("COLUMNS", "80")
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = run(capfd, "safety_v1")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    tables = plain.partition("safety_v1: passed wrongly")[0]
    words = tables.split()
    assert "…" not in plain
    assert words.count("[+0.36,") + words.count("[0.36,") >= 1
    assert sum(word.endswith("]") for word in words) == sum(word.startswith("[") for word in words) == 15
    if is_terminal:
        assert max(map(len, tables.splitlines())) <= 80


def test_own_cases_are_asked_and_an_answer_without_a_verdict_counts_in_no_figure(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = careful
    code, out, err = run(capfd, "safety", "--cases", "mine.jsonl", "--json")
    found = json.loads(out)
    assert (code, found["cases"], found["verdicts"]) == (0, 3, 2)
    assert (found["agreement"], found["kappa"], found["kappa_interval"]) == (1, 1, None)
    assert found["without_verdict"] == {"judge_unparsable": 1}
    assert (found["languages"]["pt"]["agreement"], found["languages"]["pt"]["false_fail_rate"]) == (None, None)
    assert "safety/rating: 1 case without a verdict (1 judge_unparsable); the first: " in err
    assert "Perhaps." in err


def test_a_judge_without_any_verdict_fails_the_command(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    server.default = lambda body: Say(text="Perhaps.")
    code, out, err = run(capfd, "safety_v1", "--cases", "mine.jsonl")
    row = next(line.split() for line in out.splitlines() if line.startswith("  safety_v1"))
    assert (code, row[1:8]) == (1, ["3", "-", "-", "-", "-", "-", "3"])
    assert "3 cases without a verdict (3 judge_unparsable)" in err


def test_an_estimate_is_printed_and_nothing_is_asked(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "--estimate", "hallucinations_v1")
    assert (code, err, server.asked) == (0, "", [])
    assert out.startswith("48 cases: about 9")
    assert "without a price, counted as free: openai/local" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a"}\n', "mine.jsonl: line 1: language: Field required"),
        ("", "mine.jsonl: contains no case; write one JSON object a line"),
        (json.dumps(MINE[0] | {"label": "ok"}), "mine.jsonl: line 1: label: Input should be 'good' or 'bad'"),
        (json.dumps({**MINE[0], "guidelines": []}), "mine.jsonl: case 'kind': safety_v1: guidelines: Extra inputs are not permitted"),
        (json.dumps({key: MINE[0][key] for key in MINE[0] if key != "answer"}), "mine.jsonl: case 'kind': safety_v1: there is no final"),
    ],
)  # fmt: skip
def test_own_cases_that_cannot_be_used_are_refused_before_anything_is_asked(
    text: str, message: str, server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("mine.jsonl").write_text(text)
    code, out, err = run(capfd, "safety_v1", "--cases", "mine.jsonl")
    assert (code, out, server.asked) == (2, "", [])
    assert message in err


def test_options_that_do_not_fit_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capfd, "--cases", "mine.jsonl")
    assert (code, "name it, as in" in err) == (2, True)
    code, _, err = run(capfd, "safety_v1", "--cases", "no.jsonl")
    assert (code, "no.jsonl: cannot be read: No such file or directory; check the path" in err) == (2, True)
    Path("bytes.jsonl").write_bytes(b"\xff\xfe{")
    code, _, err = run(capfd, "safety_v1", "--cases", "bytes.jsonl")
    assert (code, "bytes.jsonl: is not UTF-8; save it as UTF-8" in err) == (2, True)
    code, _, err = run(capfd, "response_match_score")
    assert (code, "asks no judge here" in err) == (2, True)


@pytest.mark.parametrize(("threshold", "agreement"), [(3, 1.0), (4.5, 0.5)])
def test_a_case_of_a_criterion_of_ones_own_passes_from_its_threshold_on(
    threshold: float, agreement: float, server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = lambda body: Say(
        text=json.dumps({"rationale": "So.", "score": 1 if "frapper" in str(body) else 4})
    )
    scale = {"lowest": 1, "lowest_means": "Rude.", "highest": 5, "highest_means": "Kind."}
    own = {"threshold": threshold, "prompt": "How kind is it?\n\n{answer}", "scale": scale}
    own["judge_model_options"] = {"judge_model": "openai/local"}
    Path("eval.json").write_text(json.dumps({"criteria": {"kindness": own}}), "utf-8")
    Path("two.jsonl").write_text("\n".join(map(json.dumps, MINE[:2])), "utf-8")
    code, out, _ = run(capfd, "kindness", "--config", "eval.json", "--cases", "two.jsonl", "--json")
    assert (code, json.loads(out)["agreement"]) == (0, agreement)

"""Tests judged criteria of eval sets, from the command line and from Python, against an HTTP server on this machine."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.support.eval_sets import case, eval_set, invocation, write
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server_apart, refusing_address

from traceweir.scorers.scripted_judge import ScriptedJudge
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.cli.main import main
from traceweir.streams.lab.evals.evaluate import evaluate_files
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]  # each command loads litellm

GOOD, BAD = invocation("Where is it?", "On its way."), invocation("Where is it?", "I do not know.")


def answer(body: dict[str, Any]) -> Say:
    """Returns the verdict of the judge: the response "I do not know." is invalid, every other response is valid."""
    verdict = "invalid" if "I do not know." in body["messages"][-1]["content"] else "valid"
    return Say(text=json.dumps({"reasoning": "It is told.", "is_the_agent_response_valid": verdict}))


def run(capfd: pytest.CaptureFixture[str]) -> tuple[object, list[Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "a.evalset.json", "--sessions", "recorded.json", "--config", "config.json", "--json"])
    out = capfd.readouterr().out
    return ended.value.code, [json.loads(line) for line in out.splitlines()]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_") or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEWEIR_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    write(Path("a.evalset.json"), eval_set(case("good", GOOD), case("bad", GOOD)))
    write(Path("recorded.json"), eval_set(case("good", GOOD), case("bad", BAD)))
    configure()


def configure(model: str = "openai/local", criteria: Mapping[str, Any] = MappingProxyType({}), **judge: Any) -> None:
    options = {"judge_model": model, "num_samples": 3}
    criteria = {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": options}, **criteria}
    write(Path("config.json"), {"criteria": criteria, "judge": {"structured_output": "never", **judge}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    with openai_server_apart(default=answer) as server:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_KEY", "k-" + "0" * 20)
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", server.url)
        yield server


def test_the_command_caches_the_verdicts_of_the_judge(server: OpenAiServer, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = run(capfd), run(capfd)

    assert first[0] == second[0] == 1  # one case fails
    for _, cases in (first, second):
        assert {each["eval_id"]: each["status"] for each in cases} == {"good": "PASSED", "bad": "FAILED"}
    assert len(server.asked) == 4  # 2 of 3 samples decide a majority for each case; the second run uses the cache


def test_a_judge_that_refuses_connections_ends_the_command_with_1_and_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    configure(criteria={"response_match_score": 0.5})
    options = ["--sessions", "recorded.json", "--config", "config.json", "--junit", "r.xml"]
    with refusing_address() as address:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", f"{address}/v1/s3cret")
        with pytest.raises(SystemExit) as ended:
            main(["eval", "a.evalset.json:good", *options])
    said = capfd.readouterr()

    assert ended.value.code == 1
    assert "Tests passed: 1" in said.out  # as in ADK, another criterion passes the case
    assert (
        "final_response_match_v2: no judge gave a verdict in 1 case (1 error); the first: none of 1 invocations has a value; the "
        f"first: JudgeFailed: openai/local: no connection to {address}: the connection was refused\n"
    ) in said.err
    (warning,) = [each.getMessage() for each in caplog.records if "does not answer" in each.getMessage()]
    assert f"the judge openai/local at {address} does not answer" in warning
    assert "s3cret" not in said.err + warning
    root = ET.fromstring(Path("r.xml").read_bytes())
    assert (root.attrib["tests"], root.attrib["errors"]) == ("2", "1")
    assert [each.attrib["name"] for each in root.findall("testsuite[@name='judged criteria']/testcase")] == [
        "final_response_match_v2"
    ]


def test_some_missing_verdicts_are_named_and_do_not_change_the_exit_code(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    other = invocation("Where is it?", "It has arrived.")
    write(Path("a.evalset.json"), eval_set(case("good", GOOD), case("other", other)))
    write(Path("recorded.json"), eval_set(case("good", GOOD), case("other", other)))
    configure(criteria={"response_match_score": 0.5})
    server.default = lambda body: busy(None, 400) if "has arrived" in body["messages"][-1]["content"] else answer(body)
    with pytest.raises(SystemExit) as ended:
        main(["eval", "a.evalset.json", "--sessions", "recorded.json", "--config", "config.json"])

    said = capfd.readouterr()
    assert (ended.value.code, "Tests passed: 2" in said.out) == (0, True)
    assert "final_response_match_v2: 1 of 2 cases have no verdict (1 error); the first: " in said.err


def evaluate(*cases: str, **options: Any) -> None:
    evaluate_files("a.evalset.json:" + ",".join(cases), "recorded.json", config="config.json", **options)


def test_evaluate_files_and_the_command_share_the_cached_verdicts(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    evaluate("good")
    for _ in range(2):
        with pytest.raises(
            AssertionError, match=r"final_response_match_v2 for a.evalset.json:bad Failed. Expected 0.5, but got 0.0"
        ):
            evaluate("good", "bad")
    run(capfd)  # uses the verdicts that the Python runs cached
    assert len(server.asked) == 4
    assert set(server.keys) == {"Bearer k-" + "0" * 20}


async def test_the_judge_can_be_asked_within_a_running_event_loop(server: OpenAiServer) -> None:
    evaluate("good")
    assert len(server.asked) == 2


def test_the_argument_judge_replaces_the_configured_judge(server: OpenAiServer) -> None:
    yes = json.dumps({"reasoning": "It is.", "is_the_agent_response_valid": "valid"})
    evaluate("good", "bad", judge=ScriptedJudge(*[yes] * 6))
    assert server.asked == []


def run_good_case(capfd: pytest.CaptureFixture[str]) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "a.evalset.json:good", "--sessions", "recorded.json", "--config", "config.json"])
    said = capfd.readouterr()
    return ended.value.code, said.out + said.err


def test_without_litellm_the_command_and_python_report_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    without: Callable[..., Any] = lambda name, *package: None if name == "litellm" else found(name, *package)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(
        JudgeUnavailableError, match=r"which needs litellm: install it with pip install '.\[judge\]'"
    ) as unavailable:
        evaluate("good")
    code, said = run_good_case(capfd)
    assert code == 1
    assert str(unavailable.value) in said


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("qwen", "the provider of the model 'qwen' is unknown"),
        ("gemini-2.5-flash", "Missing Gemini API key. Set the GEMINI_API_KEY or GOOGLE_API_KEY environment variable."),
    ],
)
def test_an_unusable_model_is_reported_by_the_command_and_by_python(
    model: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    configure(model, retries={"attempts": 1})
    with pytest.raises(AssertionError) as failed:
        evaluate("good")
    code, said = run_good_case(capfd)
    assert code == 1
    sentence = str(failed.value).splitlines()[-1]
    assert sentence in said.splitlines()
    assert sentence.startswith("final_response_match_v2 for a.evalset.json:good was not evaluated. error: none of 1 ")
    assert message in sentence
    assert "Traceback" not in sentence


def test_an_invalid_environment_variable_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", "localhost")
    with pytest.raises(InvalidSettingsError, match="TRACEWEIR_JUDGE_API_BASE"):
        evaluate("good")


def test_an_eval_in_which_several_judges_answered_names_the_cases_of_each(
    server: OpenAiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    def first_is_gone_for_the_bad_case(body: dict[str, Any]) -> Say:
        is_bad = "I do not know." in body["messages"][-1]["content"]
        return busy(None, 404, "no such model") if is_bad and body["model"] == "local" else answer(body)

    configure(fallback={"openai/local": ["openai/second"]})
    server.default = first_is_gone_for_the_bad_case
    with pytest.raises(SystemExit):
        main(["eval", "a.evalset.json", "--sessions", "recorded.json", "--config", "config.json", "--json"])
    [line] = [line for line in capfd.readouterr().err.splitlines() if "judges have judged" in line]
    assert line.endswith("openai/local passed 1 of 1 case, openai/second 0 of 1 case")

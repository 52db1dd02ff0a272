"""Tests the output, the written files and the exit codes of `traceweir eval`, `evalset add` and `migrate`."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.support.command_line import Ended, Run
from tests.support.eval_sets import case, eval_set, invocation, scenario, write

from traceweir.schemas.eval_set import EvalSet

FIND = [{"name": "find", "args": {"n": 1}}]
TURN = invocation("Hi", "Hello there.", FIND)
OTHER = invocation("Hi", "Bye now.", FIND)


@pytest.fixture(autouse=True)
def change_to_the_test_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def write_two_cases() -> None:
    write(Path("a.evalset.json"), eval_set(case("good", TURN), case("bad", TURN)))
    write(Path("recorded.json"), eval_set(case("good", TURN), case("bad", OTHER)))


# --- eval


def test_the_summary_is_on_stdout_and_the_criteria_on_stderr(run: Run) -> None:
    write_two_cases()
    ended = run("eval", "a.evalset.json", "--sessions", "recorded.json")
    assert ended.code == 1
    assert ended.out.splitlines()[1:] == [
        "Eval Run Summary",
        "set1:",
        "  Tests passed: 1",
        "  Tests failed: 1",
        "response_match_score for a.evalset.json:bad Failed. Expected 0.8, but got 0.0.",
    ]
    assert ended.err.startswith("a.evalset.json: Google ADK's default criteria, tool_trajectory_avg_score 1.0, ")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            f'{{"session_id": "s", "n": {"9" * 5_000}}}',
            "has an integer of more than 4300 digits; write a shorter number, or a string.",
        ),
        (f'{{"eval_id": "good", "conversation": {"[" * 100_000}', "is nested too deeply to be read."),
    ],
    ids=["5000 digits", "100000 levels"],
)
def test_a_recording_that_python_refuses_to_read_is_reported_without_python_terms(
    document: str, problem: str, run: Run
) -> None:
    write_two_cases()
    Path("recorded.jsonl").write_text(document)
    ended = run("eval", "a.evalset.json", "--sessions", "recorded.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] == f"recorded.jsonl: document 1: {problem}"


def test_the_exit_code_is_0_when_the_selected_cases_pass(run: Run) -> None:
    write_two_cases()
    ended = run("eval", "a.evalset.json:good", "--sessions", "recorded.json")
    assert (ended.code, ended.out.splitlines()[-2:]) == (0, ["  Tests passed: 1", "  Tests failed: 0"])


def test_the_option_config_replaces_the_default_criteria(run: Run) -> None:
    write_two_cases()
    write(Path("mine.json"), {"criteria": {"response_match_score": 0.0}})
    ended = run("eval", "a.evalset.json", "--sessions", "recorded.json", "--config", "mine.json")
    assert (ended.code, ended.err) == (0, "a.evalset.json: criteria of mine.json\n")


def test_each_file_of_a_folder_uses_the_sessions_and_the_config_beside_it(run: Run) -> None:
    for name, said in (("x", TURN), ("deep/y", OTHER)):
        write(Path(f"tests/{name}.test.json"), eval_set(case("a", TURN), eval_set_id=name))
        write(Path(f"tests/{name}.sessions.json"), eval_set(case("a", said)))
    write(Path("tests/deep/test_config.json"), {"criteria": {"response_match_score": 0.0}})
    ended = run("eval", "tests")
    assert ended.code == 0
    assert "tests/deep/y.test.json: criteria of tests/deep/test_config.json\n" in ended.err


def test_json_output_has_one_line_per_case(run: Run) -> None:
    write_two_cases()
    ended = run("eval", "a.evalset.json", "--sessions", "recorded.json", "--json")
    good, bad = map(json.loads, ended.out.splitlines())
    assert (good["eval_id"], good["status"], bad["status"], bad["runs"]) == ("good", "PASSED", "FAILED", 1)
    assert [(each["metric"], each["value"], each["threshold"]) for each in bad["criteria"]] == [
        ("tool_trajectory_avg_score", 1.0, 1.0),
        ("response_match_score", 0.0, 0.8),
    ]
    [turn] = bad["invocations"]
    assert (turn["expected_response"], turn["actual_response"]) == ("Hello there.", "Bye now.")
    assert turn["expected_tool_calls"] == [{"name": "find", "args": {"n": 1}}]


def test_json_output_can_contain_any_text_and_number_of_an_agent(run: Run) -> None:
    turn = invocation("Hi", "\u0085\ufffe", [{"name": "x", "args": {"n": 2**80}}])
    write(Path("a.json"), eval_set(case("a", turn)))
    write(Path("a.sessions.json"), eval_set(case("a", turn)))
    [line] = run("eval", "a.json", "--json").out.splitlines()
    assert json.loads(line)["invocations"][0]["actual_tool_calls"][0]["args"] == {"n": 2**80}


def test_the_junit_file_has_a_test_per_case_and_stays_valid_with_hostile_text(run: Run) -> None:
    hostile = "</failure>]]>&\x00\x1b[31m\ufffe"
    write(Path("a.json"), eval_set(case("good", TURN), case(hostile, TURN), case("lost", TURN), eval_set_id="<&\x01"))
    write(Path("a.sessions.json"), eval_set(case("good", TURN), case(hostile, invocation("Hi", hostile))))

    assert run("eval", "a.json", "--junit", "out.xml").code == 1

    root = ET.parse("out.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    [suite] = root
    good, bad, lost = suite
    assert (suite.get("name"), good.get("name"), list(good)) == (r"<&\x01", "good", [])
    assert bad.get("name") == r"</failure>]]>&\x00\x1b[31m\ufffe"
    assert (bad[0].tag, lost[0].tag) == ("failure", "error")
    assert r"actual_response:            </failure>]]>&\x00\x1b[31m\ufffe" in (bad[0].text or "")
    assert "there is no recorded session under the id 'lost'" in (lost[0].text or "")


def test_a_junit_path_in_a_missing_folder_is_rejected_before_any_case_is_scored(run: Run) -> None:
    write_two_cases()
    ended = run("eval", "a.evalset.json", "--sessions", "recorded.json", "--junit", "no/out.xml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("no/out.xml: the folder ")


def test_the_exit_code_is_1_when_no_case_was_scored(run: Run) -> None:
    write(Path("a.json"), eval_set())
    write(Path("a.sessions.json"), eval_set())
    ended = run("eval", "a.json")
    assert (ended.code, ended.err.splitlines()[-1]) == (
        1,
        "no case was scored, because the eval sets contain no case; name an eval set with cases",
    )


def test_scenarios_are_scored_without_references(run: Run) -> None:
    write(Path("a.json"), eval_set(scenario("a")))
    write(Path("a.sessions.json"), eval_set(case("a", TURN, TURN)))
    config = {"criteria": {"trajectory_single_tool_use": {"threshold": 1.0, "tool_name": "find"}}}
    write(Path("test_config.json"), config)
    assert run("eval", "a.json").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no.json"], "no.json: cannot be read (No such file or directory)"),
        (["."], ".: neither this folder nor a folder below it contains a *.test.json file"),
        (["a.evalset.json:ugly"], "there is no case 'ugly'; there are 'bad', 'good'."),
        (["a.evalset.json"], "a.evalset.json: no recorded sessions are given"),
        (["a.evalset.json", "--sessions", "no.json"], "no.json: cannot be opened"),
        (["a.evalset.json", "--sessions", "broken.json"], "broken.json: document 1: is not JSON"),
        (["a.evalset.json", "--sessions", "recorded.json", "--config", "unknown.json"], "there is no such metric"),
        (
            ["a.evalset.json", "--sessions", "recorded.json", "--match", "ugly=1"],
            "--match: the selected eval sets have no case 'ugly'",
        ),
        (["a.evalset.json", "b.evalset.json", "--sessions", "recorded.json"], "has the eval id of a case in"),
    ],
)
def test_unusable_input_has_exit_code_2_and_a_message(arguments: list[str], said: str, run: Run) -> None:
    write_two_cases()
    write(Path("b.evalset.json"), eval_set(case("good", TURN)))
    write(Path("broken.json"), "{oops")
    write(Path("unknown.json"), {"criteria": {"no_such_metric": 1}})
    ended = run("eval", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    "options",
    [
        ["--sessions", "recorded.json", "--from-kafka"],
        ["--match", "good=1"],
        ["--sessions", "recorded.json", "--match", "good"],
        ["--sessions", "recorded.json", "--match", "good=1", "--match", "good=2"],
    ],
)
def test_contradictory_options_have_exit_code_2(options: list[str], run: Run) -> None:
    write_two_cases()
    assert run("eval", "a.evalset.json", *options).code == 2


def test_the_option_match_assigns_a_session_with_another_id_to_a_case(run: Run) -> None:
    write(Path("a.json"), eval_set(case("a", TURN)))
    write(Path("recorded.json"), eval_set(case("chat-1", TURN)))
    assert run("eval", "a.json", "--sessions", "recorded.json", "--match", "a=chat-1").code == 0


# --- evalset add


def add_session(run: Run, *options: str) -> Ended:
    return run("evalset", "add", "good", "--to", "new.evalset.json", "--sessions", "recorded.json", *options)


def test_a_case_made_from_a_session_passes_with_that_session(run: Run) -> None:
    write_two_cases()
    assert add_session(run).code == 0
    case_ = EvalSet.model_validate_json(Path("new.evalset.json").read_bytes()).eval_cases[0]
    assert (case_.eval_id, len(case_.conversation or ())) == ("good", 1)
    assert run("eval", "new.evalset.json", "--sessions", "recorded.json").code == 0


def test_an_existing_case_is_not_added_twice(run: Run) -> None:
    write_two_cases()
    add_session(run)
    before = Path("new.evalset.json").read_bytes()

    again = add_session(run)
    assert (again.code, Path("new.evalset.json").read_bytes()) == (0, before)
    assert "already exists, unchanged" in again.err

    write(Path("recorded.json"), eval_set(case("good", OTHER)))
    refused = add_session(run)
    assert (refused.code, Path("new.evalset.json").read_bytes()) == (1, before)
    assert "already has a case 'good' with different content; replace the case with --replace" in refused.err

    assert add_session(run, "--replace").code == 0
    [only] = EvalSet.model_validate_json(Path("new.evalset.json").read_bytes()).eval_cases
    assert only.conversation is not None
    assert only.conversation[0].reference.final_response is not None
    assert only.conversation[0].reference.final_response.text == "Bye now."


def test_adding_a_case_leaves_the_rest_of_the_file_unchanged(run: Run) -> None:
    write_two_cases()
    existing: dict[str, Any] = eval_set(case("old", TURN, tags=["slow"]), owner="me", creation_timestamp=5.0)
    existing["eval_cases"][0]["conversation"][0]["user_content"]["parts"].append({"inline_data": {"data": "AA=="}})
    write(Path("new.evalset.json"), existing)
    Path("new.evalset.json").chmod(0o640)

    assert add_session(run, "--eval-id", "renamed").code == 0

    found = json.loads(Path("new.evalset.json").read_bytes())
    assert [each["eval_id"] for each in found["eval_cases"]] == ["old", "renamed"]
    assert {**found, "eval_cases": found["eval_cases"][:1]} == existing
    assert stat.S_IMODE(Path("new.evalset.json").stat().st_mode) == 0o640


def test_a_file_in_an_old_format_is_not_changed(run: Run) -> None:
    write_two_cases()
    write(Path("new.evalset.json"), [{"query": "Hi"}])
    ended = add_session(run)
    assert (ended.code, Path("new.evalset.json").read_text()) == (2, '[{"query": "Hi"}]')
    assert "is in one of ADK's old formats" in ended.err


def test_an_unknown_session_is_reported_with_the_known_sessions(run: Run) -> None:
    write_two_cases()
    ended = run("evalset", "add", "ugly", "--to", "new.json", "--sessions", "recorded.json")
    assert (ended.code, ended.err) == (1, "recorded.json: there is no session 'ugly'; there are 'good', 'bad'\n")
    assert not Path("new.json").exists()


def test_a_case_made_from_a_session_contains_only_keys_that_adk_accepts(run: Run) -> None:
    turn = {**TURN, "derived": True, "retrieved_context": [{"content": "x"}], "token_usage": {"input_tokens": 1}}
    turn["intermediate_data"] = {
        "tool_uses": [{"name": "find", "args": {"n": None}}, {"name": "book", "args": {}}],
        "tool_responses": [{"name": "find", "response": "a text"}, {"name": "book", "response": {"id": 1}}],
    }
    write(Path("recorded.json"), eval_set(case("good", turn)))
    add_session(run)
    [only] = json.loads(Path("new.evalset.json").read_bytes())["eval_cases"]
    [captured] = only["conversation"]
    assert captured.keys() == {
        "invocation_id",
        "user_content",
        "final_response",
        "intermediate_data",
        "creation_timestamp",
    }
    assert [each["args"] for each in captured["intermediate_data"]["tool_uses"]] == [{"n": None}, {}]
    responses = [each["response"] for each in captured["intermediate_data"]["tool_responses"]]
    assert responses == [{"result": "a text"}, {"id": 1}]


# --- migrate


def test_migrating_an_old_file_with_comments_has_the_same_result_each_time(run: Run) -> None:
    text = '[ # dice\n {"query": "Roll", "reference": "17", "expected_tool_use": [],},\n]'
    write(Path("dice.test.json"), text)
    assert run("eval", "dice.test.json").code == 2
    first, second = run("migrate", "dice.test.json"), run("migrate", "dice.test.json")
    assert (first.code, first.out) == (0, second.out)
    assert run("migrate", "dice.test.json", "--out", "dice.test.json").err == "dice.test.json: 1 case\n"
    assert Path("dice.test.json").read_text("utf-8") == first.out
    assert run("migrate", "dice.test.json").out == first.out


def test_migrate_adds_the_initial_session_to_the_cases(run: Run) -> None:
    write(Path("dice.test.json"), [{"query": "Roll"}])
    write(Path("session.json"), {"app_name": "dice", "user_id": "u", "state": {"n": 1}})
    ended = run("migrate", "dice.test.json", "--initial-session", "session.json")
    [only] = json.loads(ended.out)["eval_cases"]
    assert only["session_input"] == {"app_name": "dice", "user_id": "u", "state": {"n": 1}}


def test_a_file_that_is_not_an_eval_set_is_not_rewritten(run: Run) -> None:
    write(Path("a.json"), {"foo": 1})
    ended = run("migrate", "a.json", "--out", "a.json")
    assert (ended.code, Path("a.json").read_text()) == (2, '{"foo": 1}')


def test_an_unwritable_file_is_reported_by_name(run: Run) -> None:
    write(Path("a.json"), eval_set())
    ended = run("migrate", "a.json", "--out", "no/b.json")
    assert (ended.code, ended.err.startswith("no/b.json: cannot be written (No such file or directory)")) == (2, True)

"""Tests the pytest plugin: the collected tests, the message of a failure, and no effect on other projects."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from tests.support.eval_sets import case, eval_set, invocation, write
from tests.support.openai_server import Say, busy, openai_server_apart

# A run of pytest takes over 0.1 s, and two tests load litellm.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

FIND = [{"name": "find", "args": {"n": 1}}]
ARGUMENTS = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:hypothesispytest"]
"""Disables plugins that are installed for other tests and have warnings and imports of their own."""
GLOBAL_HOOKS = [f"-pno:{name}" for name in ("faulthandler", "threadexception", "unraisableexception")]
"""Disables plugins that replace hooks of the whole process, where pytest runs beside the pytest of this test."""
TURN = invocation("Hi", "Hello there.", FIND)


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    """Creates a separate project, so that the configuration of this project has no effect."""
    return write(tmp_path / "pytest.ini", "[pytest]\nfilterwarnings = error\n").parent


def is_ours(name: str) -> bool:
    """Returns whether a variable is for this run of the tests.

    `CI` and `BUILD_NUMBER` are, because with them pytest repeats each failure in its summary, and the tests would count
    the failure twice.
    """
    return name.startswith(("PYTEST_", "TRACEWEIR_", "CI", "BUILD_NUMBER"))


def run(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Runs pytest in this folder and in this process, and returns its exit code and its output."""
    output = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        for name in filter(is_ours, list(os.environ)):
            patched.delenv(name)
        for name, value in environment.items():
            patched.setenv(name, value)
        patched.chdir(folder)
        code = pytest.main([*ARGUMENTS, *GLOBAL_HOOKS, *options])
    return int(code), output.getvalue()


def run_apart(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Runs pytest in a process of its own: for tests of what is imported, and of what a process leaves open at its end."""
    inherited = {name: value for name, value in os.environ.items() if not is_ours(name)}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *ARGUMENTS, *options],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_the_plugin_is_installed_as_an_entry_point() -> None:
    [found] = [each for each in entry_points(group="pytest11") if each.name == "traceweir"]
    assert found.value == "traceweir.streams.pytest_plugin"


def test_each_case_with_recorded_sessions_is_a_test_whose_failure_shows_expected_and_actual(project: Path) -> None:
    write(project / "deep" / "trip.test.json", eval_set(case("good", TURN), case("bad", TURN)))
    write(
        project / "deep" / "trip.sessions.json",
        eval_set(case("good", TURN), case("bad", invocation("Hi", "Bye now.\x1b[31m", FIND))),
    )
    code, output = run(project)
    lines = [line.rstrip() for line in output.splitlines()]
    assert code == 1
    assert "1 failed, 1 passed" in lines[-1]
    assert f"response_match_score for {project}/deep/trip.test.json:bad Failed. Expected 0.8, but got 0.0." in lines
    assert "  expected_response:          Hello there." in lines
    assert r"  actual_response:            Bye now.\x1b[31m" in lines
    assert "Traceback" not in output


def test_the_config_beside_the_file_applies(project: Path) -> None:
    write(project / "trip.test.json", eval_set(case("a", TURN)))
    write(project / "trip.sessions.jsonl", case("a", invocation("Hi", "Bye.", FIND)))
    write(project / "test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    code, output = run(project)
    assert (code, "1 passed" in output) == (0, True)


def test_files_without_recorded_sessions_are_collected_only_with_the_option_on(project: Path) -> None:
    write(project / "trip.test.json", "no JSON at all, and somebody else's")
    code, output = run(project)
    assert (code, "no tests ran" in output) == (pytest.ExitCode.NO_TESTS_COLLECTED, True)

    write(project / "trip.test.json", eval_set(case("a", TURN)))
    code, output = run(project, "-o", "traceweir_eval=on")
    assert code != 0
    assert "neither trip.sessions.json nor trip.sessions.jsonl exists in its folder" in output


def test_the_plugin_can_be_turned_off_and_an_invalid_value_is_reported(project: Path) -> None:
    write(project / "trip.test.json", eval_set(case("a", TURN)))
    write(project / "trip.sessions.json", eval_set())
    assert "no tests ran" in run(project, "-o", "traceweir_eval=off")[1]
    assert "traceweir_eval must be auto, on or off, not 'maybe'" in run(project, "-o", "traceweir_eval=maybe")[1]


def test_an_unreadable_file_is_a_collection_error_with_a_message(project: Path) -> None:
    write(project / "trip.test.json", '{"eval_cases": [],}')
    write(project / "trip.sessions.json", eval_set())
    code, output = run(project)
    assert code != 0
    assert "trip.test.json, line 1, column 18: a comma before }; JSON does not allow it, remove it" in output
    assert "Traceback" not in output


def test_a_run_without_eval_sets_imports_only_the_plugin(project: Path) -> None:
    code = (
        "import sys\n"
        "def test_x():\n"
        "    ours = sorted(name for name in sys.modules if name.startswith('traceweir.'))\n"
        "    assert ours == ['traceweir.streams', 'traceweir.streams.pytest_plugin']\n"
        "    assert not {'pydantic', 'aiokafka', 'confluent_kafka', 'faust', 'numpy'} & sys.modules.keys()\n"
    )
    write(project / "test_x.py", code)
    write(project / "else.test.json", "{}")
    ended, output = run_apart(project)
    assert ended == 0, output


def test_scoring_eval_sets_imports_no_kafka_client() -> None:
    code = (
        "import sys, traceweir.streams.lab.evals.evaluate\n"
        "print([name for name in ('faust', 'aiokafka', 'confluent_kafka') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


# --- criteria that ask a judge


def write_judged_cases(project: Path, **judge: object) -> None:
    """Writes three cases in two files; each case asks the judge once."""
    options = {"judge_model": "openai/local", "num_samples": 1}
    criteria = {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": options}}
    write(project / "test_config.json", {"criteria": criteria, "judge": {"structured_output": "never", **judge}})
    wrong = invocation("Hi", "I do not know.")
    for name, cases in (("one", [case("a", TURN), case("b", TURN)]), ("two", [case("c", TURN)])):
        write(project / f"{name}.test.json", eval_set(*cases))
        recorded = [
            case(each["eval_id"], wrong if each["eval_id"] == "b" else invocation("Hi", "Hey.")) for each in cases
        ]
        write(project / f"{name}.sessions.json", eval_set(*recorded))


def environment(project: Path, url: str) -> dict[str, str]:
    return {"TRACEWEIR_JUDGE_API_BASE": url, "TRACEWEIR_JUDGE_CACHE": str(project / "verdicts" / "here.sqlite3")}


def verdict(body: dict[str, Any]) -> Say:
    label = "invalid" if "I do not know." in body["messages"][-1]["content"] else "valid"
    return Say(text=json.dumps({"reasoning": "So it is.", "is_the_agent_response_valid": label}))


@pytest.mark.large
def test_the_configured_judge_is_asked_and_its_verdicts_are_cached(project: Path) -> None:
    write_judged_cases(project)
    with openai_server_apart(default=verdict) as server:
        for run_once in (run_apart, run):
            code, output = run_once(project, **environment(project, server.url))
            assert code == 1, output
            assert "1 failed, 2 passed" in output
            assert f"final_response_match_v2 for {project}/one.test.json:b Failed. Expected 0.5, but got 0.0." in output
            assert "Traceback" not in output
            assert "warning" not in output.lower()
    assert len(server.asked) == 2  # cases a and c ask the same question


def test_all_cases_share_one_judge_and_one_circuit_breaker(project: Path) -> None:
    write_judged_cases(project, breaker={"failures": 1, "open_s": 3600}, retries={"attempts": 1})
    with openai_server_apart(default=lambda body: busy(None, 503, "gone")) as server:
        code, output = run(project, **environment(project, server.url))
    assert (code, len(server.asked)) == (1, 1), output
    assert output.count("was not evaluated. error: none of 1 invocations has a value; the first: ") == 3


def test_without_the_judge_extra_each_judged_case_reports_how_to_install_it(project: Path) -> None:
    write_judged_cases(project)
    write(
        project / "conftest.py",
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'tenacity' else found(name, *more)\n",
    )
    write(project / "test_x.py", "def test_x():\n    pass\n")
    code, output = run_apart(project)
    assert code == 1
    assert "3 failed, 1 passed" in output
    assert (
        output.count(
            "needs tenacity: install it with pip install '.[judge]' in a clone of Traceweir, or remove the criterion"
        )
        >= 3
    )
    assert "Traceback" not in output


def test_an_invalid_environment_variable_is_reported_by_name(project: Path) -> None:
    write_judged_cases(project)
    code, output = run(project, TRACEWEIR_JUDGE_TIMEOUT_S="soon")
    assert code == 1
    assert "TRACEWEIR_JUDGE_TIMEOUT_S: " in output
    assert "Traceback" not in output


def test_the_plugin_does_not_change_the_event_loop_of_other_tests(project: Path) -> None:
    write(
        project / "test_x.py",
        "import asyncio\nloop = asyncio.new_event_loop()\ndef test_x():\n    asyncio.set_event_loop(loop)\n",
    )
    write(project / "x.test.json", eval_set(case("a", TURN)))
    write(project / "x.sessions.json", eval_set(case("a", TURN)))
    write(
        project / "z_test.py",
        "import asyncio\n"
        "def test_z():\n"
        "    loop = asyncio.get_event_loop()\n"
        "    assert loop.run_until_complete(asyncio.sleep(0, 'theirs')) == 'theirs'\n"
        "    loop.close()\n"
        "    asyncio.set_event_loop(None)\n",
    )
    ended, output = run_apart(project, "test_x.py", "x.test.json", "z_test.py")
    assert (ended, "3 passed" in output) == (0, True), output

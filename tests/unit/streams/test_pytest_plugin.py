"""The pytest plugin: what becomes a test, what a failure says, and that other projects do not notice it."""

from __future__ import annotations

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

pytestmark = pytest.mark.slow  # each test runs pytest in a process of its own

FIND = [{"name": "find", "args": {"n": 1}}]
OTHERS = ["-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:hypothesispytest"]
"""Plugins that are installed here for other tests, with warnings and imports of their own."""
TURN = invocation("Hi", "Hello there.", FIND)


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    """A project of its own, so that nothing of this one's configuration counts."""
    return write(tmp_path / "pytest.ini", "[pytest]\nfilterwarnings = error\n").parent


def run(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Run pytest there, as a process of its own.

    `CI` and `BUILD_NUMBER` have pytest say each failure whole once more in its summary, so what is counted here would count twice.
    """
    ours = ("PYTEST_", "TRACEWEIR_", "CI", "BUILD_NUMBER")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *OTHERS, *options],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_it_is_installed() -> None:
    [found] = [each for each in entry_points(group="pytest11") if each.name == "traceweir"]
    assert found.value == "traceweir.streams.pytest_plugin"


def test_each_case_beside_recorded_sessions_is_a_test_and_fails_with_expected_against_actual(project: Path) -> None:
    write(project / "deep" / "trip.test.json", eval_set(case("good", TURN), case("bad", TURN)))
    write(
        project / "deep" / "trip.sessions.json",
        eval_set(case("good", TURN), case("bad", invocation("Hi", "Bye now.\x1b[31m", FIND))),
    )
    code, said = run(project)
    lines = [line.rstrip() for line in said.splitlines()]
    assert code == 1
    assert "1 failed, 1 passed" in lines[-1]
    assert f"response_match_score for {project}/deep/trip.test.json:bad Failed. Expected 0.8, but got 0.0." in lines
    assert "  expected_response:          Hello there." in lines
    assert r"  actual_response:            Bye now.\x1b[31m" in lines
    assert "Traceback" not in said


def test_the_config_beside_the_file_counts(project: Path) -> None:
    write(project / "trip.test.json", eval_set(case("a", TURN)))
    write(project / "trip.sessions.jsonl", case("a", invocation("Hi", "Bye.", FIND)))
    write(project / "test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    code, said = run(project)
    assert (code, "1 passed" in said) == (0, True)


def test_without_recorded_sessions_nothing_is_collected_unless_it_is_asked_for(project: Path) -> None:
    write(project / "trip.test.json", "no JSON at all, and somebody else's")
    write(project / "test_x.py", "def test_x():\n    pass\n")
    code, said = run(project)
    assert (code, "1 passed" in said) == (0, True)

    write(project / "trip.test.json", eval_set(case("a", TURN)))
    code, said = run(project, "-o", "traceweir_eval=on")
    assert code != 0
    assert "neither trip.sessions.json nor trip.sessions.jsonl lies beside it" in said


def test_it_can_be_turned_off_and_a_wrong_value_is_named(project: Path) -> None:
    write(project / "trip.test.json", eval_set(case("a", TURN)))
    write(project / "trip.sessions.json", eval_set())
    assert "no tests ran" in run(project, "-o", "traceweir_eval=off")[1]
    assert "traceweir_eval must be auto, on or off, not 'maybe'" in run(project, "-o", "traceweir_eval=maybe")[1]


def test_a_file_that_cannot_be_read_is_an_error_with_its_message(project: Path) -> None:
    write(project / "trip.test.json", '{"eval_cases": [],}')
    write(project / "trip.sessions.json", eval_set())
    code, said = run(project)
    assert code != 0
    assert "trip.test.json, line 1, column 18: a comma before }; JSON has none, take it out" in said
    assert "Traceback" not in said


def test_a_run_without_such_files_imports_nothing_of_ours_but_the_plugin(project: Path) -> None:
    code = (
        "import sys\n"
        "def test_x():\n"
        "    ours = sorted(name for name in sys.modules if name.startswith('traceweir.'))\n"
        "    assert ours == ['traceweir.streams', 'traceweir.streams.pytest_plugin']\n"
        "    assert not {'pydantic', 'aiokafka', 'confluent_kafka', 'faust', 'numpy'} & sys.modules.keys()\n"
    )
    write(project / "test_x.py", code)
    write(project / "else.test.json", "{}")
    ended, said = run(project)
    assert ended == 0, said


def test_scoring_needs_no_kafka_client() -> None:
    code = (
        "import sys, traceweir.streams.evals.evaluate\n"
        "print([name for name in ('faust', 'aiokafka', 'confluent_kafka') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


# --- criteria that ask a judge


def judged(project: Path, **judge: object) -> None:
    """Three cases in two files, each of which asks once."""
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
    said = "invalid" if "I do not know." in body["messages"][-1]["content"] else "valid"
    return Say(text=json.dumps({"reasoning": "So it is.", "is_the_agent_response_valid": said}))


def test_the_configured_judge_is_asked_and_what_it_said_is_remembered(project: Path) -> None:
    judged(project)
    with openai_server_apart(default=verdict) as server:
        for _ in range(2):
            code, said = run(project, **environment(project, server.url))
            assert code == 1, said
            assert "1 failed, 2 passed" in said
            assert f"final_response_match_v2 for {project}/one.test.json:b Failed. Expected 0.5, but got 0.0." in said
            assert "Traceback" not in said
            assert "warning" not in said.lower()
    assert len(server.asked) == 2  # cases a and c ask the same


def test_one_judge_serves_all_cases_so_a_provider_that_is_down_is_asked_by_the_first_only(project: Path) -> None:
    judged(project, breaker={"failures": 1, "open_s": 3600}, retries={"attempts": 1})
    with openai_server_apart(default=lambda body: busy(None, 503, "gone")) as server:
        code, said = run(project, **environment(project, server.url))
    assert (code, len(server.asked)) == (1, 1), said
    assert said.count("was not evaluated. error: none of 1 invocations has a value; the first: ") == 3


def test_without_the_extra_each_such_case_says_how_to_install_it(project: Path) -> None:
    judged(project)
    write(
        project / "conftest.py",
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'tenacity' else found(name, *more)\n",
    )
    write(project / "test_x.py", "def test_x():\n    pass\n")
    code, said = run(project)
    assert code == 1
    assert "3 failed, 1 passed" in said
    assert (
        said.count(
            "needs tenacity: install it with pip install '.[judge]' in a clone of Traceweir, or take the criterion out"
        )
        >= 3
    )
    assert "Traceback" not in said


def test_an_environment_that_cannot_be_used_is_named(project: Path) -> None:
    judged(project)
    code, said = run(project, TRACEWEIR_JUDGE_TIMEOUT_S="soon")
    assert code == 1
    assert "TRACEWEIR_JUDGE_TIMEOUT_S: " in said
    assert "Traceback" not in said


def test_the_current_loop_of_other_tests_stays_theirs(project: Path) -> None:
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
    ended, said = run(project, "test_x.py", "x.test.json", "z_test.py")
    assert (ended, "3 passed" in said) == (0, True), said

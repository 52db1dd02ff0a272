"""Each test is in a suite that CI runs: what `make test` leaves out has a target of its own, and a sentence."""

from __future__ import annotations

import functools
import re
import subprocess
import sys

import pytest
from tests.support.paths import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE))
"""The targets of the Makefile, each with its commands."""
LEFT_OUT = re.findall(r"not ([a-z]+)", MAKEFILE.partition("\nIN_NO_SUITE := ")[2].partition("\n")[0])
"""The marks of the tests that `make test` leaves out."""
CI = (ROOT / ".ci" / "run").read_text("utf-8")
RELEASE = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ALL_IN_A_SUITE = MAKEFILE.partition("\nALL_IN_A_SUITE := ")[2].partition("\n")[0].split()
"""The folders that `make test` does not look into."""
NOT_FAST = MAKEFILE.partition("\nNOT_FAST := ")[2].partition("\n")[0].split()
"""The folders that `make test-fast` leaves out."""


@functools.cache
def texts_of_tests() -> dict[str, str]:
    """Returns the texts of the files with tests by their paths in the project."""
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py")}


def suite_of(mark: str) -> tuple[str, list[str]]:
    """Returns the target that runs the tests with this mark, and the folders in which it looks for them."""
    [found] = [
        (target, folders)
        for target, commands in TARGETS.items()
        for marked, folders in re.findall(r"/pytest\b.* -m ([a-z]+)((?: tests\S*)*)$", commands, re.MULTILINE)
        if marked == mark
    ]
    return found[0], found[1].split()


@pytest.mark.parametrize("mark", LEFT_OUT)
def test_tests_that_make_test_leaves_out_have_a_target_that_ci_runs_and_contributing_explains(mark: str) -> None:
    target, _ = suite_of(mark)
    assert re.search(rf"^\s+(suite|beside) \d+ make {target}\b", CI, re.MULTILINE)
    assert re.search(rf"\bmake\s{target}\b", PAGE)


@pytest.mark.parametrize("mark", LEFT_OUT)
def test_the_target_looks_into_each_folder_with_a_test_of_its_mark(mark: str) -> None:
    _, folders = suite_of(mark)
    marked = re.compile(rf"\bmark\.{mark}\b|\bEACH_{mark.upper()}\b")
    outside = [file for file in texts_of_tests() if not file.startswith(tuple(folders))]
    assert [file for file in outside if marked.search(texts_of_tests()[file])] == []


@pytest.mark.parametrize("mark", ["broker", "large", "simulation"])
def test_a_release_runs_each_suite_that_needs_nothing_else(mark: str) -> None:
    assert f"run: make {suite_of(mark)[0]}\n" in RELEASE


@pytest.mark.parametrize(
    ("target", "chosen"), [("test", "$(IN_NO_SUITE)"), ("test-fast", "not slow and $(IN_NO_SUITE)")]
)
def test_the_tests_and_the_fast_ones_leave_out_the_same_suites(target: str, chosen: str) -> None:
    assert len(LEFT_OUT) > 1
    assert f' -m "{chosen}"' in TARGETS[target]


@pytest.mark.parametrize("folder", NOT_FAST)
def test_a_folder_that_the_fast_tests_leave_out_is_named_with_the_command_that_runs_it(folder: str) -> None:
    assert TARGETS["test-fast"].endswith(" tests/unit tests/flow $(NOT_FAST:%=--ignore %)\n")
    assert any((ROOT / folder).rglob("test_*.py"))
    assert f"pytest -n 2 {folder}`" in PAGE


def test_the_fast_tests_neither_load_a_heavy_library_nor_read_all_recordings() -> None:
    heavy = re.compile(r"xdist_group\(\"(litellm|statsmodels)\"\)|parametrize\(\"name\", names\(\)\)")
    fast = [
        file
        for file in texts_of_tests()
        if file.startswith(("tests/unit/", "tests/flow/")) and not file.startswith(tuple(NOT_FAST))
    ]
    found = {
        file: [
            lines[number]
            for number, line in enumerate(lines)
            if heavy.search(line) and "mark.slow" not in "".join(lines[max(0, number - 3) : number + 3])
        ]
        for file in fast
        if (lines := texts_of_tests()[file].splitlines())
    }
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.large
def test_make_test_would_run_no_test_of_the_folders_that_it_does_not_look_into() -> None:
    chosen = " and ".join(f"not {mark}" for mark in LEFT_OUT)
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", chosen, *ALL_IN_A_SUITE],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (len(ALL_IN_A_SUITE), collected.returncode) == (4, pytest.ExitCode.NO_TESTS_COLLECTED), collected.stdout


def test_properties_are_tried_with_all_examples_in_a_suite_and_with_fewer_in_the_others() -> None:
    assert TARGETS["test-large"].startswith('\t$(BIN)/pytest -n 2 --dist worksteal -m "hypothesis and $(IN_NO_SUITE)" ')
    assert "--hypothesis-profile" not in TARGETS["test-large"]
    for target in ("test", "test-fast"):
        assert " --hypothesis-profile fast " in TARGETS[target]


def test_one_process_runs_the_tests_that_load_litellm() -> None:
    """Each process that asks a judge imports litellm, for some seconds of CPU."""
    asks = re.compile(r"^from tests\.support\.openai_server import", re.MULTILINE)
    group = re.compile(r"xdist_group\(\"litellm\"\)")
    asking = {
        file: text
        for file, text in texts_of_tests().items()
        if file.startswith(("tests/unit/", "tests/flow/")) and asks.search(text)
    }
    assert len(asking) > 30
    assert [file for file, text in asking.items() if not group.search(text)] == []

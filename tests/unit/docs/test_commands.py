"""Every command that a page shows runs on the files in `examples/`, as the page shows it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Run
from tests.support.commands import Shown, blocks, documented_commands
from tests.support.paths import ROOT

OFFLINE = [command for command in documented_commands() if not command.needs_kafka]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with a copy of the examples, because commands write files beside them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", OFFLINE, ids=str)
def test_a_command_runs_as_the_page_shows_it(
    command: Shown, clone: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone / command.folder)

    ended = run(*command.arguments)

    assert ended.code == 0, ended.err
    assert ended.out or ended.err


@pytest.mark.usefixtures("clone")
def test_the_python_code_of_eval_sets_runs() -> None:
    (code,) = blocks((ROOT / "docs" / "eval-sets.md").read_text("utf-8"), "python")
    names: dict[str, Any] = {}
    exec(compile(code, "eval-sets.md", "exec"), names)  # it raises an AssertionError if a case is not PASSED
    assert "evaluate_files" in names


def test_every_file_of_the_examples_is_named_in_its_readme() -> None:
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    files = [
        path for path in (ROOT / "examples").rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl", ".csv")
    ]
    unnamed = [path.name for path in files if f"`{path.relative_to(ROOT / 'examples').as_posix()}`" not in page]
    assert unnamed == []

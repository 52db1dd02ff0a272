"""The commands of the pages run one after the other in one folder, twice: what a first run leaves spoils no second."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.command_line import Run
from tests.support.commands import documented_commands
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow


def test_the_commands_of_the_pages_can_be_run_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = [command for command in documented_commands() if not command.needs_kafka]
    different = {}

    for time in ("first", "second"):
        for command in commands:
            monkeypatch.chdir(tmp_path / command.folder)
            ended = run(*command.arguments)
            if command.output is not None:
                Path(command.output).write_text(ended.out, "utf-8")
            if ended.code != 0:
                different[time, str(command)] = ended.code, ended.err

    assert different == {}

"""A newcomer who does what the page of the first ten minutes shows sees what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.command_line import Run
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "guides" / "first-ten-minutes.md").read_text("utf-8")
STEPS = re.compile(
    r"`(?P<file>\S+)`:\n\n```json\n(?P<text>.*?)```|```console\n\$ (?P<command>.*?)\n(?P<output>.*?)```", re.DOTALL
)
"""A file that the newcomer writes, or a command and its output."""


def lines(text: str) -> list[str]:
    """Returns the lines with a text, sorted, because stdout and stderr are captured separately."""
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())


@pytest.mark.slow
def test_the_commands_of_the_page_show_what_the_page_shows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    shown, seen = [], []

    for step in STEPS.finditer(PAGE):
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["text"], "utf-8")
            continue
        name, *arguments = shlex.split(step["command"])
        if name == "sed":
            subprocess.run([name, *arguments], check=True)
        if name == "traceweir":  # `make demo` is tested where the demo is
            ended = run(*arguments)
            shown.append((step["command"], lines(step["output"])))
            seen.append((step["command"], lines(ended.out + ended.err)))

    assert len(shown) == 4
    assert seen == shown

"""The tables of the page about cost are what the command prints, the second one a part of it."""

from __future__ import annotations

import re
import shlex

import pytest
from tests.support.command_line import Run
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "cost.md"
SHOWN = re.findall(r"```bash\ntraceweir ([^\n]*)\n```\n\n```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "printed"), SHOWN, ids=["without judges", "with judges"])
def test_the_page_shows_what_the_command_prints(
    command: str, printed: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    ended = run(*shlex.split(command))
    assert ended.code == 0, ended.err
    shown = printed.splitlines()
    start = ended.out.splitlines().index(shown[0])
    assert ended.out.splitlines()[start : start + len(shown)] == shown

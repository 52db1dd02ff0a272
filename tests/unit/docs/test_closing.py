"""The page on closing states the rules of the code, and the guide "Change when a session closes" works on a copy of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import blocks
from tests.support.paths import ROOT

from traceweir.schemas.session import ClosingReason

PAGE = "docs/closing.md"
GUIDE = (ROOT / "docs" / "guides" / "change-when-a-session-closes.md").read_text("utf-8")
COPIED = ("schemas/traceweir", "streams/traceweir", "docs/closing.md")
RUN = """
import asyncio, json, sys
module = {}
exec(sys.stdin.read(), module)
passed = [name for name, test in module.items() if name.startswith("test_") and asyncio.run(test()) is None]
from traceweir.schemas.session import ClosingReason
print(json.dumps([passed, [*ClosingReason]]))
"""


def reasons_in(page: str) -> list[str]:
    return re.findall(r"^\| `([\w.]+)` \|", page.partition("\n| `closed_because` |")[2], re.MULTILINE)


def change(diff: str, root: Path) -> None:
    """Makes a change of the guide in the one copied file that has its lines."""
    lines = diff.splitlines()
    before, after = ("\n".join(line[1:] for line in lines if line[:1] != sign) for sign in "+-")
    files = [path for path in root.rglob("*") if path.suffix in (".py", ".md") and f"\n{before}\n" in path.read_text()]
    assert [path.read_text().count(f"\n{before}\n") for path in files] == [1], (
        "this diff of docs/guides/change-when-a-session-closes.md no longer applies to the code, or to more than one "
        f"place of it; rewrite it on the page:\n{diff}"
    )
    files[0].write_text(files[0].read_text().replace(f"\n{before}\n", f"\n{after}\n"))


def test_the_page_states_each_reason_of_the_code() -> None:
    assert reasons_in((ROOT / PAGE).read_text("utf-8")) == [*ClosingReason]


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the code and the page, with the changes of the guide."""
    for each in COPIED:
        source, target = ROOT / each, tmp_path / each
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for diff in blocks(GUIDE, "diff"):
        change(diff, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_rule_of_the_guide_passes_the_tests_of_the_guide(changed: Path) -> None:
    (tests,) = blocks(GUIDE, "python")
    roots = os.pathsep.join(str(changed / each) for each in ("schemas", "streams"))
    ran = subprocess.run(
        [sys.executable, "-c", RUN],
        input=tests,
        env={**os.environ, "PYTHONPATH": roots},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    passed, reasons = json.loads(ran.stdout)
    assert passed == re.findall(r"^async def (test_\w+)", tests, re.MULTILINE)
    assert reasons == reasons_in((changed / PAGE).read_text("utf-8"))

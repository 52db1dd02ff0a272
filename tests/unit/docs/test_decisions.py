"""The index of decisions has each decision once, with a status that leads to later decisions only."""

from __future__ import annotations

import re

import pytest
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = FOLDER / "README.md"
DECISIONS = sorted(FOLDER.glob("[0-9]*.md"))
ROWS: list[tuple[str, str, str]] = re.findall(
    r"^- \[(.+)\]\(([^)]+)\):\s+(.+)$", INDEX.read_text("utf-8"), re.MULTILINE
)
"""Title, file and status of each entry."""
LINK = r"\[(\d{4})\]\(([^)]+)\)"
STATUS = re.compile(rf"in force|(?:amended|replaced) by {LINK}(?:, {LINK})*")


def test_the_index_has_each_decision_once() -> None:
    assert sorted(file for _, file, _ in ROWS) == [path.name for path in DECISIONS], "docs/decisions/README.md"
    assert {path.name for path in FOLDER.iterdir()} == {INDEX.name, *(path.name for path in DECISIONS)}


@pytest.mark.parametrize(("title", "file", "status"), ROWS, ids=[file[:4] for _, file, _ in ROWS])
def test_an_entry_has_the_title_and_a_status_that_leads_to_later_decisions(title: str, file: str, status: str) -> None:
    heading = (FOLDER / file).read_text("utf-8").partition("\n")[0]
    assert heading == f"# {title}"
    assert STATUS.fullmatch(status), "write `in force`, `amended by` or `replaced by`, with links to decisions"
    later = re.findall(LINK, status)
    assert later == sorted(set(later))
    assert [other for number, other in later if number != other[:4] or not (FOLDER / other).exists()] == []
    assert [other for _, other in later if other <= file] == []

"""The table of docs/other-names.md is that of the error for an unknown metric."""

from __future__ import annotations

from pathlib import Path

from tests.support.other_names_table import table

PAGE = Path(__file__).parents[3] / "docs" / "other-names.md"


def test_the_page_has_the_table() -> None:
    assert "\n".join(["", *table(), ""]) in PAGE.read_text("utf-8"), "the table is\n" + "\n".join(table())

"""The tables of docs/other-names.md are those of the error for an unknown metric."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.other_names_table import tables

from traceweir.scorers.evaluation.other_names import other_names

PAGE = (Path(__file__).parents[3] / "docs" / "other-names.md").read_text("utf-8")


@pytest.mark.parametrize("lines", tables(), ids=["near", "none is near"])
def test_the_page_has_the_table(lines: list[str]) -> None:
    assert "\n".join(["", *lines, ""]) in PAGE, "the table is\n" + "\n".join(lines)


def test_the_tables_have_every_metric() -> None:
    text = "\n".join(line for lines in tables() for line in lines)
    assert [row for row in other_names() if f"[`{row.name}`]({row.source})" not in text] == []

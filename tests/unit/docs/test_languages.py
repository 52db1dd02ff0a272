"""The tables of docs/languages.md, and the files to which it leads, are those that the metrics give for the sentences of ten languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.result_tables import stored, tables_in
from tests.support.language_table import short_question_table, short_table, value_table

PAGE = Path(__file__).parents[3] / "docs" / "languages.md"


@pytest.mark.parametrize(
    "lines",
    [value_table(None), short_question_table()],
    ids=["own", "short questions"],
)
def test_the_page_has_the_computed_table(lines: list[str]) -> None:
    assert "\n".join(["", *lines, ""]) in PAGE.read_text("utf-8"), "the table is\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "lines"), [("languages-short-answers", short_table()), ("languages-mastra", value_table("mastra"))]
)
def test_the_file_has_the_computed_table(name: str, lines: list[str]) -> None:
    assert tables_in("\n".join(lines)) == [stored(name)]

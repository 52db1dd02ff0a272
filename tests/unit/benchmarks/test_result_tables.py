"""The pages quote rows of the tables in `benchmarks/results` as they are, and lead to each of the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks import result_tables
from benchmarks.result_tables import FOLDER, Table, main, stored, tables_in
from tests.support.paths import ROOT

NAMES = sorted(file.stem for file in FOLDER.glob("*.csv"))
PAGES = {page: page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}


def quoted(page: Path) -> list[tuple[Table, list[Table]]]:
    """Returns each table of a page whose columns are those of files to which the page leads, with these tables."""
    led_to = [stored(name) for name in re.findall(r"\.\./benchmarks/results/([\w-]+)\.csv", PAGES[page])]
    tables = tables_in(PAGES[page])
    found = [(table, [each for each in led_to if each.head == table.head]) for table in tables]
    return [(table, files) for table, files in found if files]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_quotes_rows_as_the_benchmark_measured_them(page: Path) -> None:
    for table, files in quoted(page):
        measured = [row for file in files for row in file.rows]
        assert [row for row in table.rows if row not in measured] == []


def test_the_pages_with_the_figures_quote_some() -> None:
    quoting = {page.stem for page in PAGES if quoted(page)}
    assert quoting >= {"alert-rules", "anchors", "recorded-sessions", "trust"}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_leads_to_each_file(name: str) -> None:
    assert any(f"../benchmarks/results/{name}.csv" in text for text in PAGES.values())


@pytest.mark.parametrize("name", NAMES)
def test_each_row_of_a_file_has_a_cell_for_each_column(name: str) -> None:
    table = stored(name)
    assert table.rows
    assert {len(row) for row in table.rows} == {len(table.head)}


def test_printed_tables_become_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_tables, "FOLDER", tmp_path)
    main(["first", "second"], "Text.\n\n| a | b |\n|---|---|\n| 1, 2 | |\n\n| c |\n|---|\n| 3 |\n")
    assert (tmp_path / "first.csv").read_text("utf-8") == 'a,b\n"1, 2",\n'
    assert stored("second") == Table(["c"], [["3"]])


def test_another_number_of_tables_than_names_is_refused() -> None:
    with pytest.raises(SystemExit, match="the input has 1 tables, and 2 names were given"):
        main(["first", "second"], "| a |\n|---|\n| 1 |\n")

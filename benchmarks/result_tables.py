"""The tables that benchmarks have measured, as CSV files in `benchmarks/results`, of which the pages quote rows.

`python -m benchmarks kappa | python -m benchmarks.result_tables kappa` writes the table that a benchmark prints again;
of several tables, each name takes the next one.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, and the cells of each row, as text."""

    head: list[str]
    rows: list[list[str]]


def cells(line: str) -> list[str]:
    """Returns the cells of a row of a Markdown table.

    >>> cells("| 0.9 | | 1 to 20 |")
    ['0.9', '', '1 to 20']
    """
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def tables_in(markdown: str) -> list[Table]:
    """Returns the tables of a Markdown text in their order.

    >>> tables_in("Text.\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n")
    [Table(head=['a', 'b'], rows=[['1', '2']])]
    """
    found: list[Table] = []
    before = ""
    for line in markdown.splitlines():
        if line.startswith("|---"):
            found.append(Table(cells(before), []))
        elif line.startswith("|") and before.startswith("|"):
            found[-1].rows.append(cells(line))
        before = line
    return found


def stored(name: str) -> Table:
    """Returns the table in `benchmarks/results/NAME.csv`."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return Table(head, rows)


def write(name: str, table: Table) -> None:
    """Writes a table to `benchmarks/results/NAME.csv`."""
    with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([table.head, *table.rows])


def main(names: list[str], printed: str) -> None:
    """Writes each printed table under the next name.

    Raises:
        SystemExit: The text has another number of tables than there are names.
    """
    tables = tables_in(printed)
    if len(tables) != len(names):
        raise SystemExit(f"the input has {len(tables)} tables, and {len(names)} names were given; name each table")
    for name, table in zip(names, tables, strict=True):
        write(name, table)


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin.read())

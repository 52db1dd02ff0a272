"""Prints rows: as a table on a terminal, elsewhere as lines that a program can read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.text import printable

_ESCAPED = len(r"\U0010ffff")
"""Maximum number of characters of one escaped character."""


def write_line(line: str) -> None:
    """Writes a whole line to stdout; control characters in hostile text are escaped."""
    sys.stdout.write(printable(line, _ESCAPED * len(line)) + "\n")


def line_of(cells: Sequence[str]) -> str:
    """Returns the cells of a row as one line without trailing blanks."""
    return "  ".join(cells).rstrip()


def print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """Writes rows as indented lines whose columns begin at the same place.

    A cell is never cut, and a line ends without blanks.
    """
    shown = [[printable(cell, _ESCAPED * len(cell)) for cell in cells] for cells in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for cells in shown:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        sys.stdout.write(f"  {line_of(list(padded))}\n")


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows of hostile text; the last column takes the width that is left."""
    stdout = Console(highlight=False)
    if not stdout.is_terminal:
        for cells in rows:
            write_line(line_of(cells))
        return
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for name in headings[:-1]:
        table.add_column(name, overflow="fold")
    table.add_column(headings[-1], overflow="fold", ratio=1)
    for cells in rows:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    if table.row_count:
        stdout.print(table)


def print_figures(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows of which the first cell is a name and the others are figures, and cuts none of them.

    On a terminal a long name, and a figure of several words such as an interval, continue on the next line. Elsewhere
    each row is a line.
    """
    stdout = Console(highlight=False)
    if not stdout.is_terminal:
        print_aligned([headings, *rows])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(headings[0], overflow="fold")
    for title, *cells in list(zip(headings, *rows, strict=True))[1:]:
        longest = max(len(word) for text in (title, *cells) for word in text.split())
        table.add_column(title, justify="right", min_width=longest)
    for name, *figures in rows:
        table.add_row(Text(printable(name)), *map(Text, figures))
    stdout.print(table)

"""Prints a comparison: as tables on a terminal, elsewhere as aligned lines. All text of agents is escaped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from traceweir.schemas.text import printable
from traceweir.streams.cli.rows import print_aligned, print_rows, write_line
from traceweir.streams.lab.comparison.document import Diff
from traceweir.streams.lab.comparison.sections import flips_of, sections_of, verdict_of

_LONGEST = 500
"""The most characters of a rationale on a terminal."""


def print_comparison(comparison: Diff) -> None:
    """Prints the tables of a comparison, then the flips, then what the bounds say."""
    stdout = Console(highlight=False)
    for section in sections_of(comparison):
        _title(stdout, section.title)
        _print_table(stdout, section.headings, section.rows)
        for remark in section.remarks:
            write_line(f"  {remark}")
        sys.stdout.write("\n")
    for flips in flips_of(comparison):
        _title(stdout, f"flips of {flips.metric}")
        for flip in flips.flips:
            write_line(f"  {flip.place}  {flip.change}")
            write_line(f"    base: {printable(flip.base, _LONGEST)}")
            write_line(f"    challenger: {printable(flip.challenger, _LONGEST)}")
        if flips.left_out:
            write_line(f"  and {flips.left_out} more; --flips shows more")
        sys.stdout.write("\n")
    if verdict := verdict_of(comparison):
        write_line(verdict)


def _title(stdout: Console, title: str) -> None:
    if stdout.is_terminal:
        stdout.print(Text(printable(title), style="bold"))
    else:
        write_line(title)


def _print_table(stdout: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if stdout.is_terminal:
        print_rows(headings, rows)
    else:
        print_aligned([headings, *rows])

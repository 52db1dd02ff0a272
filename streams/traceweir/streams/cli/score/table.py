"""The table of `traceweir score`: all rows of a small input, or the first and the worst rows of a large one.

Where a judge is asked, each session is printed as soon as it is scored. The lines are the same as at the end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from heapq import heappush, heapreplace
from itertools import groupby
from typing import NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traceweir.schemas.figures import counted
from traceweir.schemas.score import INFORMATIONAL
from traceweir.schemas.text import printable
from traceweir.streams.cli.rows import print_aligned, write_line
from traceweir.streams.cli.score.cells import reason_of, status_of, subject_of, value_of
from traceweir.streams.cli.score.tally import ScoreLine, ScoreTally

ALL_ROWS = 400
"""Number of scores up to which all are shown."""
FIRST_ROWS, WORST_ROWS = 100, 20
"""Number of scores that are shown of more scores: those at the beginning, and the furthest from their thresholds.

Of sessions that are printed at once, `ALL_ROWS` are shown: nobody knows before how many there will be.
"""
_NARROW_METRIC_WIDTH = 26
"""Width of the metrics' column on a narrow terminal: the longest metric of Agent Evaluation needs two lines."""
_OTHER_COLUMNS_WIDTH = 60
"""Width that the other columns need."""
_SHADES = {"PASSED": "green", "FAILED": "red", "NOT_EVALUATED": "yellow"}
_WIDE_COLUMNS = 110
"""From this terminal width, a status with its threshold is on one line."""
_LONGEST = 10_000
"""The most characters of an escaped id: an id has at most 1,024 characters."""


class _Row(NamedTuple):
    """The cells of a score, so short that a row takes little memory whatever the score contains."""

    session_id: str
    subject: str
    metric: str
    value: str
    status: str
    reason: str
    shade: str


class ScoreTable:
    """Collects the rows that are shown, and prints them.

    Args:
        at_once: The names of all metrics, for the width of their column, if each session is printed when it ends; None:
            all are printed at the end.
    """

    def __init__(self, at_once: Collection[str] | None = None) -> None:
        self._at_once = at_once
        self._rows: list[_Row] = []
        self._worst: list[tuple[float, int, _Row]] = []
        self._count = self._missed = 0

    def add(self, line: ScoreLine) -> None:
        """Adds a score."""
        self._count += 1
        missed = line.status == "FAILED" and line.metric != "gate" and line.threshold is not None
        if self._count > ALL_ROWS and not missed:
            return
        row = _row(line)
        if self._count <= ALL_ROWS:
            self._rows.append(row)
        if missed and line.value is not None and line.threshold is not None:
            self._missed += 1
            # The distance in units of the threshold, because values of different metrics have different units. Among
            # equal distances, earlier scores are kept.
            distance = abs(line.threshold - line.value) / (abs(line.threshold) or 1.0)
            entry = (distance, -self._count, row)
            if len(self._worst) < WORST_ROWS:
                heappush(self._worst, entry)
            elif entry > self._worst[0]:
                heapreplace(self._worst, entry)

    @property
    def shown(self) -> str:
        """Whether the scores so far are on stdout."""
        if self._at_once is None:
            return "they are not shown"
        whose = "they are" if self._count <= ALL_ROWS else f"the first {ALL_ROWS} of them are"
        return f"{whose} on standard output"

    def end_session(self) -> None:
        """Prints the rows of the session that has ended, if sessions are printed at once."""
        if self._at_once is None or not self._rows:
            return
        stdout = Console(highlight=False)
        _print_session(stdout, self._rows[0].session_id, self._rows, _metric_width(self._at_once, stdout.width))
        self._rows.clear()
        # Whoever reads a pipe waits for it too.
        sys.stdout.flush()

    def print(self, tally: ScoreTally, counts: str, sessions: int) -> None:
        """Prints the rows that are not printed yet, the means of all sessions if there are several, and the summary.

        Args:
            tally: The counts of all scores.
            counts: The beginning of the summary.
            sessions: Number of sessions.
        """
        stdout = Console(highlight=False)
        whole = self._count <= ALL_ROWS
        first = FIRST_ROWS if self._at_once is None else ALL_ROWS
        shown = self._rows if whole else self._rows[:first]
        width = _metric_width({row.metric for row in shown}, stdout.width)
        for session_id, found in groupby(shown, key=lambda row: row.session_id):
            _print_session(stdout, session_id, list(found), width)
        if not whole:
            stdout.print(
                Text(
                    f"\n{first} of {counted(self._count, 'score')} are shown above; "
                    "--json and --out FILE write all of them"
                ),
                soft_wrap=True,
            )
            self._print_worst(stdout)
        if sessions > 1:
            if quantiles := tally.quantiles():
                stdout.print(Text("\nvalues without a threshold", style="bold"))
                print_aligned(quantiles)
            stdout.print(Text("\nall sessions", style="bold"))
            print_aligned(tally.sums())
        stdout.print(Text(f"\n{counts}; {tally.statuses()}"), soft_wrap=True)

    def _print_worst(self, stdout: Console) -> None:
        if not self._worst:
            return
        worst = [row for _, _, row in sorted(self._worst, reverse=True)]
        title = (
            f"\nthe {len(worst)} furthest from their thresholds, of {counted(self._missed, 'score')} that missed them"
        )
        stdout.print(Text(title, style="bold"))
        print_aligned([(row.session_id, *row[1:6]) for row in worst])


def _row(line: ScoreLine) -> _Row:
    status = status_of(line)
    shade = "" if status == INFORMATIONAL else _SHADES[line.status]
    name, subject, metric = (printable(text, _LONGEST) for text in (line.session_id, subject_of(line), line.metric))
    return _Row(name, subject, metric, value_of(line), status, printable(reason_of(line)), shade)


def _print_session(stdout: Console, session_id: str, rows: Sequence[_Row], width: int) -> None:
    if not stdout.is_terminal:
        write_line(session_id)
        print_aligned([row[1:6] for row in rows])
        return
    stdout.print(Text(session_id, style="bold"))
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=12, overflow="fold")
    table.add_column(width=width, overflow="fold")
    table.add_column(width=max(5, *(len(row.value) for row in rows)), justify="right")
    table.add_column(width=13 if stdout.width < _WIDE_COLUMNS else 22)
    table.add_column(overflow="fold")
    for row in rows:
        metric = Text(_folded(row.metric, width))
        status = Text(row.status, row.shade)
        table.add_row(Text(row.subject), metric, Text(row.value), status, Text(row.reason))
    stdout.print(Padding(table, (0, 0, 0, 2)))


def _metric_width(names: Collection[str], available: int) -> int:
    """Returns the width of the metrics' column: whole names if the other columns then have enough room."""
    longest = max(map(len, names), default=0)
    if available - longest >= _OTHER_COLUMNS_WIDTH:
        return longest
    return max((len(line) for name in names for line in _folded(name, _NARROW_METRIC_WIDTH).splitlines()), default=0)


def _folded(name: str, width: int) -> str:
    """Returns a metric's name with line breaks after slashes, so that a line has at most `width` characters.

    A part between slashes that is longer than `width` stays whole.

    >>> _folded("retrieval/ground_truth/document_recall", 26).splitlines()
    ['retrieval/ground_truth/', 'document_recall']
    """
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", name):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)

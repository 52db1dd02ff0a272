"""The views of a running demo. Text from records is hostile: it is escaped before it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from traceweir.schemas.figures import counted, figure
from traceweir.schemas.text import printable
from traceweir.streams.cli.demo.observed import DIMENSIONS, SHOWN_LETTERS, Observed, SessionSeen

BAR_CELLS = 6
ROOMY_COLUMNS = 140
"""From this terminal width, the view shows numbers beside the bars and names beside the criteria."""
DOMAIN_COLUMNS = 92
"""From this terminal width, the view has a column for the domain; in 80 columns the gate's reason needs the place."""
LINES_PER_S = 4.0
QUIET_S = 3.0
"""Seconds without news after which a line says how far the demo is."""
_PANEL_COLUMNS, _OTHER_LINES = 4, 9
"""Columns of a panel's frame; lines of both panels' frames, and of the table's head; blank lines; the line of the cursor."""
_SHADES = {"PASSED": "green", "FAILED": "red", "NOT_EVALUATED": "dim"}


class Moment(NamedTuple):
    """The progress of the demo."""

    at_s: float
    """Seconds since the demo started."""
    phase: str
    sent: int
    planned: int


class DemoView:
    """Displays a demo while it runs; this one displays nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, moment: Moment, seen: Observed) -> None:
        """Displays the progress and the output so far."""


def view_for(console: Console) -> DemoView:
    """Returns a live view for a terminal, else a view of plain lines."""
    return LiveView(console) if console.is_terminal else LineView(console)


class LineView(DemoView):
    """Prints scores, decisions and dead letters as lines, at most `LINES_PER_S`; further ones are only counted.

    Without news, a line every `QUIET_S` seconds says how far the demo is.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._printed_until_s = 0.0
        self._printed_at_s = 0.0
        self._skipped = 0

    def update(self, moment: Moment, seen: Observed) -> None:
        """Prints what is new."""
        if moment.phase != self._phase:
            self._phase = moment.phase
            self._print(moment, moment.phase)
        while seen.news:
            line = seen.news.popleft()
            if moment.at_s < self._printed_until_s:
                self._skipped += 1
                continue
            self._printed_until_s = moment.at_s + 1.0 / LINES_PER_S
            more = f"  (and {self._skipped} more)" if self._skipped else ""
            self._skipped = 0
            self._print(moment, line + more)
        if moment.at_s - self._printed_at_s >= QUIET_S:
            closed = counted(seen.outputs["sessions"], "session")
            self._print(moment, f"{moment.phase}: {closed} closed, {counted(seen.results, 'score')}")

    def _print(self, moment: Moment, line: str) -> None:
        self._printed_at_s = moment.at_s
        text = f"{moment.at_s:5.1f} s  {moment.sent:5d} sent  {printable(line, 300)}"
        self._console.print(Text(text), soft_wrap=True)


class LiveView(DemoView):
    """Shows the latest sessions and dead letters and the totals, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._console = console
        self._next_s = 0.0
        self._last: tuple[Moment, Observed] | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last is not None:
            # The final state stays on the screen.
            self._draw(*self._last)
        self._live.stop()

    def update(self, moment: Moment, seen: Observed) -> None:
        """Redraws the view, at most four times a second."""
        seen.news.clear()
        self._last = moment, seen
        if moment.at_s >= self._next_s:
            self._next_s = moment.at_s + 0.25
            self._draw(moment, seen)

    def _draw(self, moment: Moment, seen: Observed) -> None:
        width, height = self._console.size
        self._live.update(screen_of(moment, seen, width, height), refresh=True)


def screen_of(moment: Moment, seen: Observed, width: int, height: int) -> Group:
    """Returns the whole live view for a terminal of `width` columns and `height` lines."""
    totals = _totals(moment, seen)
    lines = len(totals.wrap(Console(width=width), width - _PANEL_COLUMNS))
    # Letters get their lines from the start, so that the table does not jump when the first one arrives.
    shown = max(3, height - lines - SHOWN_LETTERS - _OTHER_LINES)
    latest = list(islice(reversed(seen.sessions.values()), shown))
    return Group(Panel(totals, title="traceweir demo", title_align="left"), _sessions(latest, width), _letters(seen))


def bar(value: float, *, with_number: bool = True) -> Text:
    """Returns a number as a bar, clamped to 0 to 1.

    >>> bar(0.5).plain
    '███··· 0.500'
    """
    clamped = min(1.0, max(0.0, value))
    cells = round(clamped * BAR_CELLS)
    shown = f" {figure(clamped)}" if with_number else ""
    return Text.assemble(("█" * cells, "cyan"), ("·" * (BAR_CELLS - cells), "dim"), shown)


def _totals(moment: Moment, seen: Observed) -> Text:
    counts = seen.outputs
    assemble = seen.counters("assemble")
    opened = assemble["opened"] + assemble["reopened"] - assemble["closed"]
    first = f"{moment.phase}   {moment.at_s:.0f} s   {moment.sent} of {moment.planned} records sent"
    second = (
        f"sessions {counts['sessions']} closed, {opened} open   accepted {counts['decisions: accepted']}   "
        f"rejected {counts['decisions: rejected']}   results {seen.results}   dead letters {seen.dead_letters}   "
        f"duplicates {assemble['duplicate']}   forwarded {counts['forwarded']}"
    )
    return Text(f"{first}\n{second}")


def _sessions(latest: Sequence[SessionSeen], width: int) -> Table:
    roomy = width >= ROOMY_COLUMNS
    with_domain = width >= DOMAIN_COLUMNS
    table = Table(expand=True, header_style="bold", padding=0, box=SIMPLE_HEAD)
    table.add_column("session", no_wrap=True, min_width=12, max_width=20 if roomy else 15)
    if with_domain:
        table.add_column("domain", no_wrap=True, min_width=8, max_width=16 if roomy else 10)
    for heading in (
        "complex" if roomy else "compl.",
        "novelty" if roomy else "novel",
        "tools",
        "outcome" if roomy else "outc.",
    ):
        table.add_column(heading, no_wrap=True, min_width=BAR_CELLS + 6 * roomy)
    table.add_column("value", no_wrap=True, min_width=5)
    table.add_column("criteria", no_wrap=True, min_width=24 if roomy else 10)
    table.add_column("gate", no_wrap=True, ratio=1)
    for session in latest:
        values = [session.dimensions.get(name) for name in DIMENSIONS]
        bars = [Text("") if value is None else bar(value, with_number=roomy) for value in values]
        value = Text("" if session.value is None else figure(session.value))
        names = [session.session_id, session.domain] if with_domain else [session.session_id]
        table.add_row(
            *(Text(printable(name, 40)) for name in names),
            *bars,
            value,
            _criteria(session, with_names=roomy),
            _gate(session),
        )
    return table


def _criteria(session: SessionSeen, *, with_names: bool) -> Text:
    words = {"PASSED": "PASS", "FAILED": "FAIL", "NOT_EVALUATED": "-"}
    parts = []
    for metric, status in sorted(session.criteria.items()):
        word = words.get(status, "?")
        name = f"{printable(metric.split('_')[0], 12)} " if with_names else ""
        parts.append((f"{name}{word:<5}", _SHADES.get(status, "")))
    return Text.assemble(*parts)


def _gate(session: SessionSeen) -> Text:
    if session.accepted is None:
        return Text("")
    if session.accepted:
        return Text("accepted", "bold green")
    return Text(printable(", ".join(session.reasons), 60), "yellow")


def _letters(seen: Observed) -> Panel:
    lines = [
        Text.assemble((f"{printable(letter.reason, 40):<18}", "red"), printable(letter.detail, 120))
        for letter in reversed(seen.latest_letters)
    ]
    text = Text("\n", no_wrap=True, overflow="ellipsis").join(lines) if lines else Text("none")
    return Panel(text, title=f"dead letters: {seen.dead_letters}", title_align="left")

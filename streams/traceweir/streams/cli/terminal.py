"""The terminal: messages on stderr, and progress where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from traceweir.schemas.text import printable

Advance = Callable[[int, int | None], None]
"""Called with how many are done, and of how many if that is known."""
_LONGEST = 4_000
"""Characters of a line; the message of a hostile record must not fill the terminal."""


def complain(message: str) -> None:
    """Write a message to stderr as it is: hostile text in it neither colours nor moves anything."""
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in message.splitlines():
        stderr.print(Text(printable(line, _LONGEST)))


@contextmanager
def progress_bar(what: str) -> Iterator[Advance]:
    """A bar on stderr that is gone afterwards; nothing at all where stderr is no terminal."""
    stderr = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)

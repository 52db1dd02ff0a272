"""Messages on stderr, and a progress bar if stderr is a terminal."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from traceweir.schemas.text import printable

Advance = Callable[[int, int | None], None]
"""Called with the number of finished items, and with the total if it is known."""
_LONGEST = 4_000
"""The most characters of a line: the message of a hostile record must not fill the terminal."""
SLOW_AFTER_S = 5.0
"""Seconds after which a step of a command is named, if stderr is no terminal."""
_UPDATE_S = 0.05
"""Seconds between two updates of a bar with a rate."""
_TAIL = 1_000
"""How many of these characters a line that is too long keeps of its end."""


def complain(message: str) -> None:
    """Writes a message to stderr; markup and control characters in hostile text have no effect.

    A stderr that cannot be written loses the message and changes nothing else: the exit code still states the outcome.
    """
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    with suppress(OSError):
        for line in message.splitlines():
            stderr.print(Text(_shortened(line)))


def _shortened(line: str) -> str:
    """Returns a line without its middle if it is too long: the head names the problem, the tail the way out."""
    whole = printable(line, _LONGEST + 1)
    if len(whole) <= _LONGEST:
        return whole
    tail = printable(line[-_TAIL:], _LONGEST * _TAIL)[-_TAIL:]
    return f"{printable(line, _LONGEST - _TAIL - 1)} {tail}"


def mute_clients() -> None:
    """Drops the log lines of Kafka's client and of asyncio: the errors of a command report the same messages.

    asyncio logs the futures of a fenced producer, whose exceptions are never retrieved.
    """
    for name in ("aiokafka", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def progress_bar(description: str) -> Iterator[Advance]:
    """Shows a transient progress bar on stderr; shows nothing if stderr is no terminal."""
    stderr = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def steps(verb: str, *, slow_after_s: float = SLOW_AFTER_S) -> Iterator[Callable[[str], None]]:
    """Names the present step of a command on stderr: beside a spinner with the time if it is a terminal.

    Elsewhere a line names each step that is slow, so that a command which is quick writes nothing.

    Args:
        verb: What is done in each step, for example `checking`.
        slow_after_s: Seconds after which a step is slow.
    """
    stderr = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    slow: list[threading.Timer] = []

    def end_step() -> None:
        while slow:
            slow.pop().cancel()

    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        task = progress.add_task(verb, total=None)

        def begin(name: str) -> None:
            end_step()
            if stderr.is_terminal:
                progress.update(task, description=f"{verb} {name}")
                return
            timer = threading.Timer(slow_after_s, complain, [f"still {verb} {name}"])
            timer.daemon = True
            timer.start()
            slow.append(timer)

        try:
            yield begin
        finally:
            end_step()


class _Rate(ProgressColumn):
    """Items per second, over the last seconds."""

    def __init__(self, noun: str) -> None:
        super().__init__()
        self._noun = noun

    def render(self, task: Task) -> Text:
        """Returns the text of the column."""
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f} {self._noun}/s")


class _Phrase(ProgressColumn):
    """A phrase that changes, such as what was paid so far."""

    def __init__(self, phrase: Callable[[], str]) -> None:
        super().__init__()
        self._phrase = phrase

    def render(self, task: Task) -> Text:
        """Returns the text of the column."""
        return Text(printable(self._phrase(), _LONGEST))


class RateBar:
    """A progress bar on stderr with the rate and the time left; call it with the number of finished items and the total."""

    def __init__(self, progress: Progress, task: TaskID, *, shown: bool) -> None:
        self._progress = progress
        self._task = task
        self._shown = shown
        self._updated = monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        """Shows the number of finished items, and the total if it is known."""
        # An update takes as long as reading a small document.
        if self._shown and monotonic() > self._updated + _UPDATE_S:
            self._updated = monotonic()
            self._progress.update(self._task, completed=done, total=total)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Takes the bar away during a `with` block that writes whole lines to stdout, if that is a terminal too."""
        if not self._shown or not sys.stdout.isatty():
            yield
            return
        self._progress.live.stop()
        yield
        sys.stdout.flush()
        self._progress.live.start()


@contextmanager
def rate_bar(
    description: str, noun: str, *, hidden: bool = False, phrase: Callable[[], str] | None = None
) -> Iterator[RateBar]:
    """Shows a transient progress bar with the rate and the time left on stderr, if stderr is a terminal.

    Args:
        description: What is counted.
        noun: The items, in the plural, as the unit of the rate.
        hidden: Shows nothing, for example because the command writes to the same terminal.
        phrase: Returns what is shown behind the rate, and is called some times each second; None: nothing.
    """
    stderr = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(noun),
        TimeRemainingColumn(elapsed_when_finished=True),
        *([] if phrase is None else [_Phrase(phrase)]),
    )
    shown = stderr.is_terminal and not hidden
    with Progress(
        *columns, console=stderr, transient=True, disable=not shown, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        yield RateBar(progress, progress.add_task(description, total=None), shown=shown)

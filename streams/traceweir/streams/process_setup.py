"""Sets up garbage collection, the event loop and logging in each process of a worker."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

LogLevel = Literal["debug", "info", "warning", "error"]

_REPEAT_INTERVAL_S = 30.0
_SUPPRESSED_PHRASES = "Warning: Task timed out!", "Please make sure it's hanging before restart"
"""Phrases that Faust logs when a changelog restore takes longer than the session timeout.

The lines are dropped, because the watchdogs detect a worker that makes no progress.
"""
LAST_WORD = "last_word"
"""Attribute (`extra`) of the log record that states why the process ends, for reasons that need no traceback."""


def tune_gc() -> None:
    """Excludes all imported objects from garbage collection and makes collections rare.

    A collection stops all lanes and frees almost nothing: the objects that stages create have no reference cycles, so
    reference counting frees them. With Python's default thresholds, garbage collection took 5 % of the run time and
    made the slowest 1 % of sessions wait 20 % longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pauses garbage collection during a large import, which creates many objects and almost no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns the factory of uvloop's event loop, None for asyncio's own loop if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:  # uvloop does not exist for Windows
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


def log_to_stderr(level: LogLevel = "info") -> None:
    """Logs to stderr: Traceweir's lines from this level, and the libraries' lines as `set_log_level` says, rate limited."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_LogFilter())
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[handler])
    set_log_level(level)


def set_log_level(level: LogLevel) -> None:
    """Sets the lowest level of Traceweir's lines.

    Lines of libraries begin at WARNING, with `error` at ERROR and with `debug` at INFO: at DEBUG, Kafka's clients log
    the content of records.
    """
    own = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("traceweir").setLevel(own)
    logging.getLogger().setLevel(logging.INFO if own == logging.DEBUG else max(own, logging.WARNING))


class _LogFilter(logging.Filter):
    """Passes each library message at most once in 30 s, and drops the lines for start and stop of Faust's services.

    A client without a broker repeats its message a hundred times a second. After the line that states why the process
    ends, the filter also drops the lines of asyncio and of each service, which repeat the reason with a traceback.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_passed_s: dict[tuple[str, str], float] = {}
        self._reason_logged = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING and record.getMessage().startswith("[^"):
            return False
        if any(phrase in str(record.msg) for phrase in _SUPPRESSED_PHRASES):
            return False
        if self._reason_logged and (record.name == "asyncio" or record.getMessage().startswith("[^")):
            return False
        self._reason_logged = self._reason_logged or getattr(record, LAST_WORD, False)
        if record.name.startswith("traceweir"):
            return True
        message = record.name, str(record.msg)
        if record.created - self._last_passed_s.get(message, 0.0) < _REPEAT_INTERVAL_S:
            return False
        self._last_passed_s[message] = record.created
        return True

"""What every process of a worker sets up first."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable

_REPEATED_EVERY_S = 30.0
_OF_NO_USE = "Warning: Task timed out!", "Please make sure it's hanging before restart"
"""What Faust says of a catch-up that takes longer than the session timeout. The watchdogs judge what stands still."""
LAST_WORD = "last_word"
"""An attribute of the record (`extra`) that says why the process ends, if that needs no traceback."""


def tune_gc() -> None:
    """Leave what was imported out of garbage collection, and collect seldom: it stops all lanes, and there is next to nothing for it.

    What the stages make has no cycles and is freed as it falls out of use. With Python's own thresholds collecting took a twentieth of
    the time, and made the slowest hundredth of all sessions wait a fifth longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the quickest event loop there is; None: Python's own."""
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


def log_to_stderr() -> None:
    """Log to stderr: Traceweir's own lines, and of the libraries' what is a warning, sparingly."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Sparing())
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[handler]
    )
    logging.getLogger("traceweir").setLevel(logging.INFO)


class _Sparing(logging.Filter):
    """Lets a client's complaint pass once in a while, not a hundred times a second, and no service's start and stop.

    Once a line has said why the process ends, each service would say so again, with a traceback.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], float] = {}
        self._over = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING and record.getMessage().startswith("[^"):
            return False
        if any(words in str(record.msg) for words in _OF_NO_USE):
            return False
        if self._over and (record.name == "asyncio" or record.getMessage().startswith("[^")):
            return False
        self._over = self._over or getattr(record, LAST_WORD, False)
        if record.name.startswith("traceweir"):
            return True
        what = record.name, str(record.msg)
        if record.created - self._last.get(what, 0.0) < _REPEATED_EVERY_S:
            return False
        self._last[what] = record.created
        return True

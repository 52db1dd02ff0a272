"""Logs to stderr what people or programs read: levels, formats and limits for each process."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TextIO

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

_TEXT_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_REPEAT_INTERVAL_S = 30.0
_SUPPRESSED_PHRASES = "Warning: Task timed out!", "Please make sure it's hanging before restart"
"""Phrases that Faust logs when a changelog restore takes longer than the session timeout.

The lines are dropped, because the watchdogs detect a worker that makes no progress.
"""
_REBALANCES = "because it is rebalancing", "Missing sensor state for rebalance"
"""What aiokafka and Faust log of every rebalance. The lines are dropped: Traceweir says which partitions it took over."""
_COORDINATOR = "Group Coordinator Request failed", "Marking the coordinator dead"
"""What aiokafka logs until it has found the coordinator of its group: at the first start on a cluster, and when another
node becomes the coordinator. That takes a second, so the lines are dropped until they have come for `_MOMENT_S`."""
_MOMENT_S = 10.0
_MOMENT_IS_OVER_S = 60.0
"""Seconds without a line after which the next one begins another moment."""
_FEW_REPLICAS = "NotEnoughReplicas", "min.isr"
"""What aiokafka logs of a batch that it sends again, because too few replicas of the topic are in sync.

A transaction tries that until it is too old, so this line is the only one with the reason.
"""
CURRENT_SPAN: ContextVar[tuple[str, str] | None] = ContextVar("current_span", default=None)
"""Ids of the trace and of the span of the present work, in hexadecimal digits. Lines for programs have them."""
LAST_WORD = "last_word"
"""Attribute (`extra`) of the log record that states why the process ends, for reasons that need no traceback."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What a process logs, and how."""

    level: LogLevel = "info"
    """The lowest level of Traceweir's lines."""
    format: LogFormat = "text"
    """`text` for people, `json` for programs."""


def log_to_stderr(options: LogOptions) -> None:
    """Logs to stderr: Traceweir's lines from a level, and the libraries' lines as `set_log_level` says, rate limited.

    A later call replaces the options. Handlers that others have added stay.
    """
    handler = _StderrHandler(sys.stderr)
    handler.addFilter(_LogFilter())
    if options.format == "json":
        handler.addFilter(_with_span)
    handler.setFormatter(_json_lines() if options.format == "json" else logging.Formatter(_TEXT_LINE))
    root = logging.getLogger()
    for former in [each for each in root.handlers if isinstance(each, _StderrHandler)]:
        root.removeHandler(former)
    root.addHandler(handler)
    set_log_level(options.level)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """The handler of `log_to_stderr`, which a later call tells apart from those of others."""


def _json_lines() -> logging.Formatter:
    """Returns a formatter that writes one JSON object a line; a traceback is a text in it."""
    from pythonjsonlogger.core import RESERVED_ATTRS
    from pythonjsonlogger.json import JsonFormatter

    return JsonFormatter(
        ["levelname", "name", "message", "process"],
        rename_fields={"levelname": "level", "name": "logger", "exc_info": "exception"},
        timestamp=True,
        reserved_attrs=[*RESERVED_ATTRS, LAST_WORD],
    )


def set_log_level(level: LogLevel) -> None:
    """Sets the lowest level of Traceweir's lines.

    Lines of libraries begin at WARNING, with `error` at ERROR and with `debug` at INFO: at DEBUG, Kafka's clients log
    the content of records.
    """
    own = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("traceweir").setLevel(own)
    logging.getLogger().setLevel(logging.INFO if own == logging.DEBUG else max(own, logging.WARNING))


def _with_span(record: logging.LogRecord) -> bool:
    ids = CURRENT_SPAN.get()
    if ids is not None:
        record.trace_id, record.span_id = ids
    return True


class _LogFilter(logging.Filter):
    """Passes each library message at most once in 30 s, and drops the lines for start and stop of Faust's services.

    A client without a broker repeats its message a hundred times a second. After the line that states why the process
    ends, the filter also drops the lines of asyncio and of each service, which repeat the reason with a traceback.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_passed_s: dict[tuple[str, str], float] = {}
        self._coordinator_missing_s = self._coordinator_said_s = 0.0
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
        if any(phrase in str(record.msg) for phrase in _REBALANCES) or self._is_missed_for_a_moment(record):
            return False
        message = record.name, str(record.msg)
        if record.created - self._last_passed_s.get(message, 0.0) < _REPEAT_INTERVAL_S:
            return False
        self._last_passed_s[message] = record.created
        if record.name.startswith("aiokafka") and any(phrase in record.getMessage() for phrase in _FEW_REPLICAS):
            record.msg = (
                f"{record.msg}. Fewer replicas of this topic are in sync than its min.insync.replicas, so nothing can be "
                "written to it: start the missing brokers"
            )
        return True

    def _is_missed_for_a_moment(self, record: logging.LogRecord) -> bool:
        """Returns whether a line says that the coordinator is missing, which is normal for a moment."""
        if not any(phrase in str(record.msg) for phrase in _COORDINATOR):
            return False
        if record.created > self._coordinator_said_s + _MOMENT_IS_OVER_S:
            self._coordinator_missing_s = record.created
        self._coordinator_said_s = record.created
        return record.created < self._coordinator_missing_s + _MOMENT_S

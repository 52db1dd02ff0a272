"""Checks a span or a log record of OTLP beyond its ids: one rule for who accepts requests, converts and decodes them."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.span import Status

STATUSES: tuple[Status, ...] = ("UNSET", "OK", "ERROR")
"""The names of the status codes."""
LAST_NS = 2**63 - 1
"""The last time that can be read, in the year 2262."""


def span_problem(span: Any) -> str | None:
    """Returns why a message Span cannot be used, as the end of a sentence; None if it can."""
    if not 0 <= span.status.code < len(STATUSES):
        return f"the status is {span.status.code}; it must be 0 (UNSET), 1 (OK) or 2 (ERROR)"
    latest = max(span.start_time_unix_nano, span.end_time_unix_nano)
    if events := span.events:
        latest = max(latest, *[each.time_unix_nano for each in events])
    return None if latest <= LAST_NS else _time_problem(latest)


def log_problem(log: Any) -> str | None:
    """Returns why a message LogRecord cannot be used, as the end of a sentence; None if it can."""
    return _time_problem(log.time_unix_nano or log.observed_time_unix_nano)


def _time_problem(time_ns: int) -> str | None:
    return f"has the time {time_ns} ns; it must be at most {LAST_NS}, in the year 2262" if time_ns > LAST_NS else None

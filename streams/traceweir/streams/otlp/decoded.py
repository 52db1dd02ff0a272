"""Defines what an OTLP request is decoded to, and the checks of ids and times that both encodings share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from traceweir.streams.spans.span import Span, SpanEvent, Status

MAX_DEPTH = 32
"""Levels of lists and maps in the value of an attribute.

A request in protobuf with about 45 levels is refused as a whole, because protobuf reads 100 levels of messages.
"""
STATUSES: tuple[Status, Status, Status] = ("UNSET", "OK", "ERROR")
"""The status by its number in OTLP."""
_END_NS = 2**63
"""Nanoseconds since 1970 from which on a time is no time: the year 2262, where a signed integer ends."""


class NotOtlpError(ValueError):
    """The bytes are no OTLP request with spans or log records."""


class Unusable(ValueError):  # noqa: N818  # an outcome that the caller handles
    """One span or log record cannot be used; the others of its request can."""


class SpanLog(NamedTuple):
    """A log record that names its span."""

    trace_id: str
    span_id: str
    event: SpanEvent


@dataclass(slots=True)
class Decoded:
    """The content of a request."""

    spans: list[Span] = field(default_factory=list)
    logs: list[SpanLog] = field(default_factory=list)
    unrelated_logs: int = 0
    """Number of log records without a trace and a span."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each span or log record that cannot be used."""


def required_id(what: str, value: str, digits: int) -> str:
    """Returns an id as lower-case hexadecimal digits.

    Raises:
        Unusable: The id is missing, has another length, is not hexadecimal, or consists of zeros.
    """
    found = value.lower()
    if len(found) != digits or found.strip("0123456789abcdef"):
        raise Unusable(
            f"{what} must have {digits} hexadecimal digits, not {value[: 2 * digits]!r}"
            if value
            else f"{what} is missing"
        )
    if not found.strip("0"):
        raise Unusable(f"{what} consists of zeros, which means that there is none")
    return found


def optional_id(what: str, value: str, digits: int) -> str:
    """Returns an id as lower-case hexadecimal digits; empty if it is missing or consists of zeros.

    Raises:
        Unusable: The id has another length or is not hexadecimal.
    """
    return required_id(what, value, digits) if value.strip("0") else ""


def time_of(what: str, nanoseconds: int) -> int:
    """Returns a time in nanoseconds since 1970; 0 means that the time is unknown.

    Raises:
        Unusable: The time is before 1970 or after the year 2262.
    """
    if not 0 <= nanoseconds < _END_NS:
        raise Unusable(f"{what} is {nanoseconds} ns after 1970, which is not within the years 1970 to 2262")
    return nanoseconds

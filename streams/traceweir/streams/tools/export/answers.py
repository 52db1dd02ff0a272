"""Classifies the answer of an HTTP target: accepted, again later, refused for good, or the exporter itself is refused.

The statuses are those of the OTLP specification, and a receiver of webhooks uses them in the same sense. Only a status
about the content is final for a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import NamedTuple, TypeAlias

TEMPORARY = frozenset((408, 425, 429, 502, 503, 504))
"""Statuses after which the same request can succeed."""
ABOUT_THE_CONTENT = frozenset((400, 413, 422))
"""Statuses that refuse what the request contains; the same request is refused again."""
ABOUT_THE_EXPORTER = frozenset((401, 403, 404, 410))
"""Statuses that refuse whatever this exporter sends to this address, until a person changes something."""
MAX_RETRY_AFTER_S = 600.0


class Accepted(NamedTuple):
    """The target has the content."""

    rejected: int = 0
    """Number of items that the target has dropped, as it says itself."""
    reason: str = ""
    """What the target says about them; hostile text."""


class Later(NamedTuple):
    """The target has not taken the content; the same request can succeed later."""

    reason: str
    """Why, with the way out if a person has to do something."""
    after_s: float | None = None
    """Seconds that the target asks to wait; None if it names none."""
    can_be_the_content: bool = False
    """Whether the content can be the cause: an error of the target that also an outage explains."""
    public_reason: str = ""
    """Why, without what the target says, which can repeat texts of a record; empty: as `reason`."""


class Refused(NamedTuple):
    """The target does not take this content, however often it is sent."""

    reason: str
    """Why."""


class Unfit(NamedTuple):
    """The target takes nothing from this exporter, until a person changes something."""

    reason: str
    """Why, with the way out."""
    public_reason: str = ""
    """Why, without what the target says, which can repeat texts of a record; empty: as `reason`."""


Answer: TypeAlias = Accepted | Later | Refused | Unfit


def answer_to_status(status: int, headers: Mapping[str, str], said: str, way_out: str, now: datetime) -> Answer:
    """Returns what a status means for the content of its request.

    Args:
        status: The status of the answer.
        headers: The headers of the answer.
        said: What the target says in the body, safe to print.
        way_out: What a person checks if the target refuses the exporter itself.
        now: The time, for a `Retry-After` that is a date.

    >>> answer_to_status(503, {"Retry-After": "7"}, "", "", now=None)
    Later(reason='the target answered 503', after_s=7.0, can_be_the_content=False, public_reason='')
    >>> answer_to_status(400, {}, "no such field", "", now=None)
    Refused(reason='the target answered 400: no such field')
    """
    if 200 <= status < 300:
        return Accepted()
    answered = f"the target answered {status}"
    reason = answered + (f": {said}" if said else "")
    public = answered if said else ""
    public_with_way_out = f"{answered}; {way_out}" if said else ""
    if status in ABOUT_THE_CONTENT:
        return Refused(reason)
    if status in ABOUT_THE_EXPORTER:
        return Unfit(f"{reason}; {way_out}", public_with_way_out)
    after_s = _retry_after_s(headers.get("Retry-After", ""), now)
    if status in TEMPORARY:
        return Later(reason, after_s, public_reason=public)
    if status >= 500:
        return Later(reason, after_s, can_be_the_content=True, public_reason=public)
    return Later(f"{reason}; {way_out}", after_s, public_reason=public_with_way_out)


def _retry_after_s(text: str, now: datetime) -> float | None:
    """Returns the seconds of a `Retry-After`, a number or a date, at most ten minutes; None if there is none."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S) if isfinite(seconds) else None

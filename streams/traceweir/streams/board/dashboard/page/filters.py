"""Reads what a page shows from its address, and makes the addresses of pages that show something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlencode

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from traceweir.streams.board.store.selection import Selection, whole_minutes
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

SPANS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
"""The spans of time up to now that a page offers."""
DEFAULT_SPAN: Literal["24h"] = "24h"
LABELS: Mapping[str, str] = {
    "app_name": "app",
    "agent_name": "agent",
    "agent_version": "agent version",
    "environment": "environment",
    "model": "model",
    "judge": "judge",
}
"""What the page calls the dimensions."""
KEPT = ("span", "since", "until", *RESULT_DIMENSIONS)
"""The parameters that links to other pages keep."""
MAX_CHARS = 1_024
_TIME = TypeAdapter[datetime](AwareDatetime)


class FilterError(ValueError):
    """A parameter of an address is out of its range. The text is for the person who wrote the address."""


@dataclass(frozen=True)
class Filters:
    """What a page shows: a time range and values of dimensions."""

    selection: Selection
    """What the store is asked for."""
    parameters: Mapping[str, str]
    """All parameters of the address that are not empty."""

    @property
    def span(self) -> str | None:
        """The name of the span up to now; None for a span with a begin and an end of its own."""
        return None if "since" in self.parameters else self.parameters.get("span", DEFAULT_SPAN)

    @property
    def kept(self) -> dict[str, str]:
        """The parameters that links to other pages keep."""
        return {name: value for name, value in self.parameters.items() if name in KEPT}

    def link(self, path: str, changes: Mapping[str, object] | None = None, **more: object) -> str:
        """Returns the address of a page with the same filters, except for these changes; None removes a parameter.

        >>> filters = filters_of({"app_name": "rail", "limit": "5"}, datetime.fromisoformat("2026-01-31T00:00:00Z"))
        >>> filters.link("/sessions", status="FAILED"), filters.link("/", app_name=None)
        ('/sessions?app_name=rail&status=FAILED', '/')
        """
        merged: dict[str, object] = {**self.kept, **(changes or {}), **more}
        if merged.get("since") is not None:
            merged.pop("span", None)
        query = urlencode({name: value for name, value in merged.items() if value is not None and value != ""})
        return f"{path}?{query}" if query else path

    def before(self) -> Selection:
        """Returns the same selection in the span of the same length before."""
        length = self.selection.until - self.selection.since
        try:
            return replace(self.selection, since=self.selection.since - length, until=self.selection.since)
        except (OverflowError, ValueError):
            # It would begin before the year 1, when nothing was scored.
            return replace(self.selection, until=self.selection.since + timedelta(microseconds=1))


def filters_of(parameters: Mapping[str, str], now: datetime, prefix: str = "") -> Filters:
    """Returns the filters of an address.

    Args:
        parameters: The parameters of the address.
        now: The end of a span without an end of its own.
        prefix: What the names of the parameters begin with; a comparison has two sets of filters in its address.

    Raises:
        FilterError: a parameter is out of its range.
    """
    given = {
        name.removeprefix(prefix): value.strip()
        for name, value in parameters.items()
        if name.startswith(prefix) and value.strip()
    }
    for name, value in given.items():
        if len(value) > MAX_CHARS:
            raise FilterError(f"{prefix}{name} has {len(value)} characters; at most {MAX_CHARS} are allowed")
    span = given.get("span", DEFAULT_SPAN)
    if span not in SPANS:
        raise FilterError(f"{prefix}span is none of {', '.join(SPANS)}")
    until = _time(given, "until", prefix) or now
    since = _time(given, "since", prefix)
    dimensions = {name: given[name] for name in RESULT_DIMENSIONS if name in given}
    try:
        selection = Selection(*whole_minutes(since or until - SPANS[span], until), dimensions, given.get("metric"))
    except (ValueError, OverflowError) as error:
        raise FilterError(str(error)) from None
    return Filters(selection, given)


def _time(given: Mapping[str, str], name: str, prefix: str) -> datetime | None:
    if name not in given:
        return None
    text = given[name]
    try:
        # A browser's field for a date and a time has no zone; the page says that it means UTC.
        return _TIME.validate_python(text if _has_zone(text) else f"{text}Z")
    except ValidationError:
        raise FilterError(f"{prefix}{name} is not a time such as 2026-01-31T12:00") from None


def _has_zone(text: str) -> bool:
    clock = text.partition("T")[2]
    return text.endswith(("Z", "z")) or "+" in clock or "-" in clock

"""Defines Session: all records with the same session id, as the assemble stage publishes them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Protocol, TypeVar

from pydantic import Field

from traceweir.schemas.base import Identifier, Timestamp, WireModel
from traceweir.schemas.events import InvocationEvent
from traceweir.schemas.refused_record import RefusedRecord
from traceweir.schemas.times import known_time
from traceweir.schemas.trace import PipelineTrace


class ClosingReason(StrEnum):
    """Why a session closes."""

    # Stored rows contain the place of a reason in this list, so a new reason is the last one.

    SESSION_ENDED = "session.ended"
    """An event said that the session has ended."""
    IDLE = "idle"
    """No record came for a while."""
    SIZE_LIMIT = "size_limit"
    """One more record would exceed the maximum number of records or bytes."""
    SESSION_LIMIT = "session_limit"
    """The partition had too many open sessions."""


Count = Annotated[int, Field(ge=0)]
MOST_SEGMENTS = 2**32
"""Upper bound of segment numbers, exclusive: a segment number has four bytes in a row's key."""

MOST_REVISIONS = 2**32
"""Upper bound of revision numbers, exclusive: a revision number has four bytes in a row's key."""


class Replacing(Protocol):
    """An event as far as it says whether it counts."""

    @property
    def event_id(self) -> str | None:
        """Id of the event; an event without one cannot be replaced."""

    @property
    def replaces(self) -> list[str] | None:
        """Ids of the events that it replaces."""


E = TypeVar("E", bound=Replacing)


def current(events: list[E]) -> list[E]:
    """Returns the events that no other one of them replaces."""
    replaced = {event_id for event in events if event.replaces for event_id in event.replaces}
    return [event for event in events if event.event_id not in replaced] if replaced else events


class Session(WireModel):
    """One segment of a session.

    `events` are ordered by `occurred_at`, and equal times by arrival; `traces` by `created_at`, then by id. If a trace
    id arrived with different contents, the last content counts. `turns_of` folds the events into invocations.
    """

    session_id: Identifier
    """Id of the session."""
    segment: Annotated[Count, Field(lt=MOST_SEGMENTS)]
    """Number of the segment, from 0; a session continues in the next segment after its grace."""
    revision: Annotated[Count, Field(lt=MOST_REVISIONS)]
    """Number of the revision, from 0; a late record gives a further revision."""
    # Not strict, so that Python code can give the plain string, for example a plugin's test.
    closed_because: Annotated[ClosingReason, Field(strict=False)]
    """Why the segment closed; docs/closing.md states the rule of each reason."""
    first_record_at: Timestamp
    """Timestamp of the record with which the segment began; equal in every revision, also if a later record is older."""
    last_record_at: Timestamp
    """Timestamp of the last record."""
    events: list[InvocationEvent]
    """The events, in order of `occurred_at`."""
    traces: list[PipelineTrace]
    """The traces, in order of `created_at`."""
    refused: list[RefusedRecord] | None = None
    """The records of the segment that became dead letters, and were not replayed; null if there are none."""

    @property
    def current_events(self) -> list[InvocationEvent]:
        """The events that no other event of the session replaces."""
        return current(self.events)

    @property
    def current_traces(self) -> list[PipelineTrace]:
        """The traces that are not withdrawn."""
        return [trace for trace in self.traces if not trace.metadata.withdrawn]

    @property
    def current_refused(self) -> list[RefusedRecord]:
        """The refused records of which no valid copy has come, and which no event replaces."""
        if not self.refused:
            return []
        come = {event.event_id for event in self.events}
        come |= {name for event in self.events for name in event.replaces or ()}
        return [each for each in self.refused if each.event_id is None or each.event_id not in come]

    @property
    def started_at(self) -> datetime | None:
        """The earliest known time of an event that counts or of a trace, by the agents' clock; None if no time is known."""
        first = next((known for event in self.current_events if (known := known_time(event.occurred_at))), None)
        times = [first, *(known_time(trace.created_at) for trace in self.current_traces)]
        return min((moment for moment in times if moment is not None), default=None)

"""Session: everything that shares a session id, as the assemble stage closed it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from traceweir.schemas.base import Identifier, Timestamp, WireModel
from traceweir.schemas.events import InvocationEvent
from traceweir.schemas.trace import ReasoningTrace

Closed = Literal["session.ended", "idle", "size_limit"]
Count = Annotated[int, Field(ge=0)]
MOST_SEGMENTS = 2**32
"""A segment's number is below it: it is four bytes of a row's key."""

MOST_REVISIONS = 2**32
"""Likewise a revision's."""


class Session(WireModel):
    """One segment of a session.

    `events` are ordered by `occurred_at` (ties as they arrived), `traces` by `created_at`, then id; of a trace that came in several
    contents the last one stands. `turns_of` folds the events into invocations.
    """

    session_id: Identifier
    segment: Annotated[Count, Field(lt=MOST_SEGMENTS)]
    revision: Annotated[Count, Field(lt=MOST_REVISIONS)]
    closed_because: Closed
    first_record_at: Timestamp
    last_record_at: Timestamp
    events: list[InvocationEvent]
    traces: list[ReasoningTrace]

"""Joins the records that the simulated agents of the demo send, without a worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.cli.demo.sessions import JOINED, Emission

SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class SentRecords:
    """The events and traces of a session's records."""

    name: str
    events: list[InvocationEvent] = field(default_factory=list)
    traces: list[ReasoningTrace] = field(default_factory=list)

    def document(self) -> Session:
        """Returns the session. The time and the reason of its closing are arbitrary, because criteria ignore them."""
        return Session(
            session_id=self.name,
            segment=0,
            revision=0,
            closed_because=ClosingReason.IDLE,
            first_record_at=SOME_TIME,
            last_record_at=SOME_TIME,
            events=sorted(self.events, key=lambda event: event.occurred_at),
            traces=self.traces,
        )


def sessions_of(emissions: Iterable[Emission]) -> list[SentRecords]:
    """Returns the sessions of these records."""
    found: dict[str, SentRecords] = {}
    for one in emissions:
        if one.fate != JOINED:
            continue
        session = found.setdefault(one.session, SentRecords(one.session))
        if one.topic == "traces":
            session.traces.append(ReasoningTrace.model_validate_json(one.value or b""))
        else:
            session.events.append(EVENT.validate_json(one.value or b""))
    return list(found.values())

"""Folds the events of a session into its invocations."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.openai_chat import NOON

from traceweir.schemas.events import InvocationEvent
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.turns import turns_of


def folded(events: Sequence[InvocationEvent]) -> list[Invocation]:
    session = Session(
        session_id="s",
        segment=0,
        revision=0,
        closed_because=ClosingReason.IDLE,
        first_record_at=NOON,
        last_record_at=NOON,
        events=list(events),
        traces=[],
    )
    return [turn.invocation for turn in turns_of(session)]

"""Answers with the state of the feed and of what has to work so that scores arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

from traceweir.streams.board.dashboard.api.addresses import ONLY_HEAD
from traceweir.streams.board.dashboard.api.answers import RETRY_AFTER
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.live import MAX_STREAMS
from traceweir.streams.tools.doctor.finding import State as FindingState

router = APIRouter()


class HealthPart(BaseModel):
    """One part of what has to work so that scores arrive."""

    check: str
    """What was looked at."""
    state: FindingState
    """`failure`: scores do not arrive or records are lost, or it is unknown. `warning`: a person should look."""
    text: str
    """What was found."""


class State(BaseModel):
    """Whether the store receives what workers write."""

    problem: str | None
    """Why nothing is read or stored now, with the way out; null if there is no problem."""
    behind: int | None
    """Number of records, at most, that are not stored yet; null while that is unknown, as while no broker answers."""
    stored_rows: int
    """Number of rows that were stored since the start of this process."""
    unreadable: dict[str, int]
    """Number of records since the start that are not what a worker writes there, by topic."""
    health: list[HealthPart]
    """The brokers, the store, the workers and their lag, losses, dead letters, and scorers with their judges."""


async def _free_stream(dashboard: Serving) -> None:
    if dashboard.live.full:
        raise HTTPException(
            503,
            f"{MAX_STREAMS} streams are open, which is the most: ask for /api/v1/state every few seconds, as pages do now, and "
            "try again",
            RETRY_AFTER,
        )


@router.get("/state", response_model=State)
async def read_state(dashboard: Serving) -> Any:
    """Whether the store receives what workers write."""
    return _state_of(dashboard)


@router.get(
    "/events",
    response_class=EventSourceResponse,
    dependencies=[Depends(_free_stream)],
)
async def read_events(request: Request, dashboard: Serving) -> AsyncIterator[ServerSentEvent]:
    """The state now and after each change of the store, as server-sent events of the type `state`."""
    async for _ in dashboard.live.changes():
        yield ServerSentEvent(event="state", data=_state_of(dashboard))
        if ONLY_HEAD in request.scope:
            return


def _state_of(dashboard: Dashboard) -> State:
    found = dashboard.options.state()
    return State(
        problem=found.problem,
        behind=found.behind,
        stored_rows=found.stored_rows,
        unreadable=found.unreadable,
        health=[HealthPart(**part._asdict()) for part in dashboard.options.health()],
    )

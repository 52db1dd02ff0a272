"""Reads once a minute what anchors say about judges, while somebody looks. No page waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel

from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.repeated_look import LookPace, RepeatedLook
from traceweir.streams.tools.anchors.listing import AnchoredCriterion, ListedCriterion
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.worker.kafka.request_thread import in_request_thread

FIRST_LOOK_AFTER_S = 2.0
LOOK_EVERY_S = 60.0
"""Least seconds between two looks at the topics."""
MAX_RECORDS = 400_000
"""The most records of a topic that are read at once: a year of 1,000 verdicts a day."""


class AnchorStanding(BaseModel):
    """What anchors say about judges."""

    read_at: datetime | None = None
    """When the topics were last read; null: not yet."""
    problem: str | None = None
    """Why they cannot be read now; the criteria are then those of `read_at`."""
    unreadable: int = 0
    """Number of records that are no anchor or verdict; they are left out."""
    criteria: list[AnchoredCriterion] = []
    """Each criterion that has an anchor or a verdict, by name."""


def anchor_look(
    settings: Settings, is_watched: Callable[[], bool], now: Callable[[], datetime]
) -> RepeatedLook[AnchorStanding]:
    """Returns what reads once a minute what anchors say, while somebody looks at the dashboard."""
    reader = AnchorReader(settings, MAX_RECORDS)

    async def read(at: datetime) -> AnchorStanding:
        # A first look at a year of verdicts takes seconds, in which pages are answered.
        found, unreadable = await in_request_thread(lambda: asyncio.run(reader.look(at)))
        return standing_at(at, found, unreadable)

    pace = LookPace(LOOK_EVERY_S, FIRST_LOOK_AFTER_S, is_watched)
    return RepeatedLook("what anchors say", read, AnchorStanding(), with_problem, pace, now)


def standing_at(
    at: datetime, found: Sequence[ListedCriterion], unreadable: Mapping[str, Sequence[str]]
) -> AnchorStanding:
    """Returns the standing at a time, of what `AnchorReader` has found."""
    return AnchorStanding(
        read_at=at, unreadable=sum(map(len, unreadable.values())), criteria=[each.known for each in found]
    )


def with_problem(standing: AnchorStanding, problem: str) -> AnchorStanding:
    """Returns the standing with the reason why the topics cannot be read now."""
    return standing.model_copy(update={"problem": problem})

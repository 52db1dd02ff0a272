"""Reads once a minute what anchors say about judges, while somebody looks. No page waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import NoReturn

from pydantic import BaseModel

from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.anchors.listing import AnchoredCriterion
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.anchors.topics import AnchorsError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.request_thread import in_request_thread

log = logging.getLogger(__name__)

FIRST_LOOK_AFTER_S = 2.0
LOOK_EVERY_S = 60.0
"""Least seconds between two looks at the topics."""
PAUSES = 20
"""How many times the duration of a look passes before the next one, if this is longer."""
ASK_EVERY_S = 2.0
"""Seconds between two questions whether somebody looks."""
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


class AnchorLook:
    """What anchors say, as it was last read.

    Args:
        settings: Where Kafka is.
        is_watched: Returns whether somebody looks at the dashboard; nothing is read while nobody does.
        now: The clock.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        settings: Settings,
        is_watched: Callable[[], bool],
        now: Callable[[], datetime],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._reader = AnchorReader(settings, MAX_RECORDS)
        self._is_watched = is_watched
        self._now = now
        self._clock = clock
        self.standing = AnchorStanding()
        """The standing at the last look."""

    async def run(self) -> NoReturn:
        """Looks again and again, until it is cancelled. The feed begins first, so that results are stored sooner."""
        await asyncio.sleep(FIRST_LOOK_AFTER_S)
        while True:
            if self._is_watched():
                began_at_s = self._clock()
                await self.look()
                await asyncio.sleep(max(LOOK_EVERY_S, PAUSES * (self._clock() - began_at_s)))
            else:
                await asyncio.sleep(ASK_EVERY_S)

    async def look(self) -> None:
        """Looks once. After a failure the former criteria stay, and the problem is said."""
        now = self._now()
        try:
            # A first look at a year of verdicts takes seconds, in which pages are answered.
            found, unreadable = await in_request_thread(lambda: asyncio.run(self._reader.look(now)))
        except (AnchorsError, KafkaUnreachableError) as error:
            self._failed(printable(str(error), 1_000))
        except Exception as error:  # noqa: BLE001  # whatever it is, the dashboard goes on, and the page says it
            self._failed(printable(repr(error), 1_000))
        else:
            self.standing = AnchorStanding(
                read_at=now, unreadable=sum(map(len, unreadable.values())), criteria=[each.known for each in found]
            )

    def _failed(self, problem: str) -> None:
        if problem != self.standing.problem:
            log.warning("what anchors say cannot be read: %s; trying again", problem)
        self.standing = self.standing.model_copy(update={"problem": problem})

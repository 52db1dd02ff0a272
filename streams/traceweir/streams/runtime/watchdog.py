"""Watchdogs: what should go on and does not, ends the worker, so that its supervisor starts it again.

A duty is something that has to go on: a checkpoint, a fetch, a catch-up, Kafka's answers. It is late once there is something to do and
nothing has moved for too long. That is counted in looks, each worth `LOOK_EVERY_S`, and not by a clock: a process that was frozen
has waited for nothing. What moves is never late, however long it takes.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, NamedTuple

from mode import Service

from traceweir.streams.errors import WorkerError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
LOST_AFTER_S = 60.0
"""How long no broker may answer before the worker ends. Its clients would try again for ever, and look alive meanwhile."""
ASK_EVERY_S = 5.0
EXIT_LOST = 1
EXIT_HELD = 70


class Duty(NamedTuple):
    """Something that has to go on."""

    name: str
    """What it is, as the start of a sentence; tells it from all others."""
    due: bool
    """Whether there is something to do."""
    mark: Hashable
    """Another one after every step forward."""


class StuckError(WorkerError):
    """Something that should go on has stood still for too long."""


class Watchdogs:
    """Count for how long each duty has been due without a step forward."""

    def __init__(self, limit_s: float) -> None:
        """Give every duty so many seconds for a step."""
        self._limit_s = limit_s
        self._seen: dict[str, tuple[Hashable, float]] = {}

    def look(self, duties: Iterable[Duty]) -> list[str]:
        """A sentence for each duty that is late. To be called every `LOOK_EVERY_S`; what is not named any more is forgotten."""
        seen, late = {}, []
        for name, due, mark in duties:
            before, waited_s = self._seen.get(name, (None, 0.0))
            waited_s = waited_s + LOOK_EVERY_S if due and name in self._seen and mark == before else 0.0
            seen[name] = mark, waited_s
            if waited_s > self._limit_s:
                late.append(f"{name} has stood still for more than {self._limit_s:g} s")
        self._seen = seen
        return late


class Watch(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Looks at the duties, asks whether a broker answers, and ends the worker when something is late.

    While no broker answers nothing else can go on: only that is counted then.
    """

    def __init__(
        self,
        duties: Callable[[], Iterable[Duty]],
        failed: Callable[[BaseException], Awaitable[None]],
        ask: Callable[[], Awaitable[bool]],
        where: str,
        limit_s: float,
        **kwargs: Any,
    ) -> None:
        """Prepare it.

        Args:
            duties: Gives what has to go on.
            failed: Ends the worker.
            ask: Asks Kafka, for `ASK_EVERY_S` at most, and tells whether it has answered.
            where: The brokers, for the message.
            limit_s: Seconds for which a duty may stand still.
            kwargs: Of the service.
        """
        super().__init__(**kwargs)
        self._duties, self._failed, self._ask, self._where, self._limit_s = duties, failed, ask, where, limit_s
        self._dogs = Watchdogs(limit_s)
        self._looks = 0
        self._silent_s = 0.0
        self.problems: list[str] = []
        """What is late; a sentence each, without anything that came from outside."""

    async def on_start(self) -> None:
        """Begin to see to it that the looking itself goes on."""
        threading.Thread(target=self._see_that_it_looks, name="watchdog", daemon=True).start()

    @Service.task  # type: ignore[untyped-decorator]
    async def _look(self) -> None:
        while not self.should_stop:
            await self.sleep(LOOK_EVERY_S)
            self._looks += 1
            await self.look()

    async def look(self) -> None:
        """One look; what is late ends the worker."""
        if self._silent_s:  # what cannot go on is not counted; what stood still before has still done so afterwards
            self.problems = []
            return
        self.problems = self._dogs.look(self._duties())
        if self.problems:
            await self._failed(StuckError("; ".join(self.problems)))

    @Service.task  # type: ignore[untyped-decorator]
    async def _listen(self) -> None:
        while not self.should_stop:
            await self.sleep(ASK_EVERY_S)
            if self.hear(answered=await self._ask()):
                # Nothing more can be committed, and an orderly end would talk to the lost broker. This is as safe as to be killed.
                os._exit(EXIT_LOST)

    def hear(self, *, answered: bool) -> bool:
        """Take note of whether Kafka has answered this time. Returns whether it is lost, which is then logged."""
        self._silent_s = 0.0 if answered else self._silent_s + ASK_EVERY_S
        if self._silent_s <= LOST_AFTER_S:
            return False
        log.error(
            "no Kafka broker has answered at %s for %g s; see that it runs, and start the worker again: it goes on where its last "
            "checkpoint was",
            self._where,
            LOST_AFTER_S,
        )
        return True

    def _see_that_it_looks(self) -> None:
        # In a thread: what holds the event loop, such as a disk that does not answer, also keeps it from looking.
        looks, held_s = self._looks, 0.0
        while not self.should_stop:
            time.sleep(LOOK_EVERY_S)
            held_s = held_s + LOOK_EVERY_S if looks == self._looks else 0.0
            looks = self._looks
            if held_s > self._limit_s:
                log.error("something has held the event loop for more than %g s; the process ends", self._limit_s)
                os._exit(EXIT_HELD)

"""Ends the worker when work that must make progress makes none, so that its supervisor restarts the worker.

A duty is work that must make progress: a checkpoint, a fetch, a state restore, Kafka's answers. A duty is late if it
has work to do and has made no progress for too long. The time is counted in checks of `LOOK_EVERY_S` each instead of
by a clock, because the time for which a process was frozen must not count. A duty that makes progress is never late,
however long it takes.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, NamedTuple

from mode import Service

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.service_tasks import intervals, service_task
from traceweir.streams.worker.kafka.silence import ASK_EVERY_S, LOST_AFTER_S, LastAnswer

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
LIMIT_SETTING = "TRACEWEIR_STUCK_AFTER_S"
EXIT_LOST = 1
EXIT_HELD = 70


class Duty(NamedTuple):
    """Work that must make progress."""

    name: str
    """Unique name, and the start of the sentence that reports the duty."""
    due: bool
    """Whether there is work to do."""
    mark: Hashable
    """A value that changes with every step forward."""


class StuckError(WorkerError):
    """A duty has made no progress for too long."""


class Watchdogs:
    """Counts how long each duty has been due without progress."""

    def __init__(self, limit_s: float) -> None:
        """Sets the limit in seconds for a step of a duty."""
        self._limit_s = limit_s
        self._seen: dict[str, tuple[Hashable, float]] = {}

    def look(self, duties: Iterable[Duty]) -> list[str]:
        """Returns a sentence for each late duty; duties that are not passed any more are forgotten.

        A duty that has waited for half of the limit is logged once.

        Call this method every `LOOK_EVERY_S`.
        """
        seen = {}
        late = []
        for name, due, mark in duties:
            before, waited_s = self._seen.get(name, (None, 0.0))
            waited_s = waited_s + LOOK_EVERY_S if due and name in self._seen and mark == before else 0.0
            seen[name] = mark, waited_s
            # Once: the time grows by one look at a time.
            if 0 <= waited_s - self._limit_s / 2 < LOOK_EVERY_S and waited_s:
                log.warning(
                    "%s has made no progress for %g s; the worker ends after %g s (%s)",
                    name,
                    waited_s,
                    self._limit_s,
                    LIMIT_SETTING,
                )
            if waited_s > self._limit_s:
                late.append(f"{name} has made no progress for more than {self._limit_s:g} s")
        self._seen = seen
        return late


class Watch(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Checks the duties and the brokers, and ends the worker when a duty is late or no broker answers.

    While no broker answers, no duty can make progress: then only the silence of the brokers is counted.
    """

    def __init__(
        self,
        duties: Callable[[], Iterable[Duty]],
        failed: Callable[[BaseException], Awaitable[None]],
        ask: Callable[[], Awaitable[bool]],
        where: str,
        limit_s: float,
        *,
        last: LastAnswer | None = None,
        **kwargs: Any,
    ) -> None:
        """Stores the arguments; the service starts later.

        Args:
            duties: Returns the current duties.
            failed: Ends the worker.
            ask: Asks a broker, for at most `ASK_EVERY_S`, and returns whether it answered.
            where: Addresses of the brokers, for the message.
            limit_s: Time limit for a duty without progress, in seconds.
            last: Receives each answer; None: a new one.
            kwargs: Arguments of the service.
        """
        super().__init__(**kwargs)
        self._duties = duties
        self._failed = failed
        self._ask = ask
        self._where = where
        self._limit_s = limit_s
        self._dogs = Watchdogs(limit_s)
        self._looks = 0
        self.last_answer = LastAnswer() if last is None else last
        self._late: list[str] = []

    @property
    def problems(self) -> list[str]:
        """A sentence for each late duty, and one while the brokers are silent, without text from records."""
        silent = self.last_answer.problem
        return self._late if silent is None else [*self._late, silent]

    async def on_start(self) -> None:
        """Counts the silence of the brokers from now on, and starts the thread that checks the event loop."""
        self.last_answer.begin()
        threading.Thread(target=self._check_event_loop, name="watchdog", daemon=True).start()

    @service_task("checks the duties of the worker")
    async def _look(self) -> None:
        async for _ in intervals(self, LOOK_EVERY_S):
            self._looks += 1
            await self.look()

    async def look(self) -> None:
        """Checks all duties once; a late duty ends the worker."""
        # While all brokers are silent, the waiting times of duties do not increase.
        if self.last_answer.unanswered_s:
            self._late = []
            return
        self._late = self._dogs.look(self._duties())
        if self._late:
            await self._failed(StuckError("; ".join(self._late)))

    @service_task("asks the brokers for answers")
    async def _listen(self) -> None:
        async for _ in intervals(self, ASK_EVERY_S):
            if self.note_answer(answered=await self._ask()):
                # Nothing can be committed any more, and an orderly stop would wait for the brokers. This exit is as
                # safe as a kill.
                os._exit(EXIT_LOST)

    def note_answer(self, *, answered: bool) -> bool:
        """Notes whether a broker answered; returns whether all brokers are lost, and logs this."""
        self.last_answer.note(answered=answered)
        if self.last_answer.unanswered_s <= LOST_AFTER_S:
            return False
        log.error(
            "no Kafka broker has answered at %s for more than %g s; check that the brokers run, and start the worker again: it "
            "continues from its last checkpoint",
            self._where,
            LOST_AFTER_S,
        )
        return True

    def _check_event_loop(self) -> None:
        # Runs in a thread, because a block of the event loop, such as a hanging disk, also blocks its checks.
        looks = self._looks
        held_s = 0.0
        while not self.should_stop:
            time.sleep(LOOK_EVERY_S)
            held_s = held_s + LOOK_EVERY_S if looks == self._looks else 0.0
            looks = self._looks
            if held_s > self._limit_s:
                log.error("the event loop was blocked for more than %g s; the process ends", self._limit_s)
                os._exit(EXIT_HELD)

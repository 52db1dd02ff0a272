"""Knows whether scores arrive: the brokers, the store, the workers, losses and judges, as the dashboard shows them.

Each part is a finding, as `traceweir doctor` prints it. What was not learnt lately counts as unknown, which is a failure:
an answer of a broker that is gone says nothing about now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from time import monotonic
from typing import NoReturn

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.board.store.standing import Standing, standing
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.workers import WORKERS, check_workers, look_at_workers
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.group_states import GroupReader, GroupStates, furthest
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.silence import LastAnswer

log = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0
"""Seconds between two looks at the groups of the workers and at the store."""
TELL_EVERY_S = 5.0
"""Seconds between two looks whether pages have to be told, so that a silence shows."""
OLD_AFTER_S = 60.0
"""Age of a look in seconds from which on it says nothing about now."""
LOSSES = "losses"
LETTERS = "dead letters"
JUDGES = "scorers and judges"
BROKER = "broker"
STORE = "store"


class HealthWatch:
    """Looks at what is around the dashboard, again and again.

    Args:
        state: Returns the state of the feed as it is known now.
        last_answer: When a broker answered the feed last.
        look_at_groups: Returns the findings about the workers; it blocks, and raises KafkaUnreachableError.
        look_at_store: Returns what the store knows of losses; it blocks, and raises StoreError.
        changed: Called when a part has changed.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        state: Callable[[], FeedState],
        last_answer: LastAnswer,
        look_at_groups: Callable[[], Sequence[Finding]],
        look_at_store: Callable[[], Standing],
        *,
        changed: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._state = state
        self._last_answer = last_answer
        self._changed = changed
        self._clock = clock
        self._look_at_groups = look_at_groups
        self._look_at_store = look_at_store
        self._workers = _Look(WORKERS, "the groups of the workers were not looked at", clock)
        self._losses = _Look(LOSSES, "the store was not looked at", clock)

    @classmethod
    def of(
        cls,
        settings: Settings,
        store: Readable,
        now: Callable[[], datetime],
        state: Callable[[], FeedState],
        last_answer: LastAnswer,
        changed: Callable[[], object],
    ) -> HealthWatch:
        """Returns the health of a dashboard with these settings and this store."""
        return cls(state, last_answer, Workers(settings), lambda: standing(store, now()), changed=changed)

    def parts(self) -> list[Finding]:
        """Returns a finding for each part, as it is known now."""
        silent = self._last_answer.problem
        return [self._broker(silent), self._store(), *self._workers.known(silent), *self._losses.known(None)]

    async def run(self) -> NoReturn:
        """Looks until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_again_and_again())
            tasks.create_task(self._tell_again_and_again())
        raise AssertionError("the tasks never end")

    async def look(self) -> None:
        """Looks once at everything."""
        try:
            # An answer to this client says nothing about the feed's, whose nodes can all be gone.
            self._workers.found(await in_request_thread(self._look_at_groups))
        except KafkaUnreachableError as error:
            self._workers.failed(error)
        try:
            self._losses.found(_losses(await asyncio.to_thread(self._look_at_store)))
        except StoreError as error:
            self._losses.failed(error)

    async def _look_again_and_again(self) -> NoReturn:
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001  # whatever it is, the dashboard goes on, and what is not known turns red
                log.warning("the health could not be looked at: %s", printable(repr(error), 1_000))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _tell_again_and_again(self) -> NoReturn:
        reported: list[Finding] = []
        while True:
            if (parts := self.parts()) != reported:
                reported = parts
                self._changed()
            await asyncio.sleep(TELL_EVERY_S)

    def _broker(self, silent: str | None) -> Finding:
        age_s = self._last_answer.age_s
        if silent is not None:
            since = "" if age_s is None else f"; the last answer was {age_s:.0f} s ago"
            return Finding(BROKER, "failure", silent + since)
        if age_s is None:
            return Finding(BROKER, "failure", "unknown: no Kafka broker has answered yet")
        return Finding(BROKER, "ok", f"answered {age_s:.0f} s ago")

    def _store(self) -> Finding:
        state = self._state()
        unreadable = sum(state.unreadable.values())
        if state.problem is not None:
            return Finding(STORE, "failure", f"nothing is stored: {state.problem}")
        if state.behind is None:
            return Finding(STORE, "failure", "unknown: how many records are not stored yet")
        stored = f"{counted(state.behind, 'record')} not stored yet"
        if unreadable:
            return Finding(STORE, "warning", f"{stored}; {unreadable} since the start could not be read")
        return Finding(STORE, "ok", stored)


class Workers:
    """Looks at the workers again and again, and knows for how long their offsets have stood still.

    Args:
        settings: The settings of the workers.
        look: Asks for the groups; by default a client of its own does. It raises KafkaUnreachableError.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        settings: Settings,
        look: Callable[[], GroupStates] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._look = look
        self._clock = clock
        self._reader: GroupReader | None = None
        self._committed: object = None
        self._moved_at_s = clock()

    def __call__(self) -> list[Finding]:
        """Looks once, and returns what is found."""
        found = self._asked() if self._look is None else self._look()
        committed = {group: each.committed for group, each in found.groups.items()}
        if committed != self._committed or not _waits(found):
            self._committed = committed
            self._moved_at_s = self._clock()
        return list(check_workers(found, self._settings, still_s=self._clock() - self._moved_at_s))

    def _asked(self) -> GroupStates:
        # A client that does not start is tried again.
        if self._reader is None:
            self._reader = GroupReader(self._settings)
        return look_at_workers(self._reader, self._settings)


def _waits(found: GroupStates) -> bool:
    """Returns whether a record is in an input that no group has read."""
    read = furthest(found.groups.values())
    return any(end > max(read.get(place, 0), found.begins[place]) for place, end in found.ends.items())


class _Look:
    """What the last look at a part has found, and how old it is."""

    def __init__(self, check: str, never: str, clock: Callable[[], float]) -> None:
        self._check = check
        self._clock = clock
        self._problem = f"unknown: {never} yet"
        self._found: Sequence[Finding] = ()
        self._at_s: float | None = None

    def found(self, findings: Sequence[Finding]) -> None:
        self._found = findings
        self._at_s = self._clock()

    def failed(self, error: Exception) -> None:
        self._problem = f"unknown: {printable(str(error), 1_000)}"
        self._at_s = None

    def known(self, silent: str | None) -> Sequence[Finding]:
        if silent is not None:
            return [Finding(self._check, "failure", "unknown while no broker answers")]
        if self._at_s is None:
            return [Finding(self._check, "failure", self._problem)]
        if (age_s := self._clock() - self._at_s) >= OLD_AFTER_S:
            return [Finding(self._check, "failure", f"unknown: the last look was {age_s:.0f} s ago")]
        return self._found


def _losses(found: Standing) -> list[Finding]:
    gaps = counted(found.gaps, "gap")
    lost = Finding(
        LOSSES, "failure", f"{gaps} in inputs in the last day: Kafka removed records before a worker read them"
    )
    kept = Finding(LOSSES, "ok", "no record was removed unread in the last day")
    dead_letters = counted(found.waiting_letters, "dead letter")
    waiting = Finding(LETTERS, "warning", f"{dead_letters} not replayed: see `traceweir dlq list`")
    failed = sum(found.failed.values())
    if failed:
        reasons = ", ".join(f"{reason} {count}" for reason, count in found.failed.items())
        judged = Finding(
            JUDGES,
            "warning",
            f"{failed} of {counted(found.results, 'result')} of the last hour have no value ({reasons})",
        )
    else:
        judged = Finding(JUDGES, "ok", f"{counted(found.results, 'result')} of the last hour, none failed")
    return [
        lost if found.gaps else kept,
        waiting if found.waiting_letters else Finding(LETTERS, "ok", "none that was not replayed"),
        judged,
    ]

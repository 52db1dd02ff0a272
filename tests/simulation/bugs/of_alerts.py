"""Bugs of the watch of scores: how it writes alerts, state and offsets, and how another process takes over."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.simulation.bugs.registry import bug_of, put
from tests.simulation.watch_world import WatchWorld

from traceweir.streams.tools.alerts import state_topic
from traceweir.streams.tools.alerts.state_topic import StateTopic
from traceweir.streams.tools.alerts.watcher import Watcher
from traceweir.streams.tools.export.checkpoints import delivery_for


@bug_of(lambda scenario: scenario.kind == "alerts")
def state_is_written_before_the_alerts(world: WatchWorld) -> None:
    """The state and the offsets are committed in a transaction of their own, and the alerts in the next one."""
    write = StateTopic.write

    async def twice(self: Any, consumer: Any, cut: Any, offsets: Any) -> None:
        await write(self, consumer, cut._replace(alerts=[], attributed=[]), offsets)
        if cut.alerts or cut.attributed:
            await write(self, consumer, cut._replace(rows=[]), offsets)

    put(StateTopic, "write", twice)


@bug_of(lambda scenario: scenario.kind == "alerts")
def alerts_are_written_before_the_state(world: WatchWorld) -> None:
    """The alerts are committed in a transaction of their own, and the state in the next one."""
    write = StateTopic.write

    async def twice(self: Any, consumer: Any, cut: Any, offsets: Any) -> None:
        if cut.alerts or cut.attributed:
            await write(self, consumer, cut._replace(rows=[]), {})
        await write(self, consumer, cut._replace(alerts=[], attributed=[]), offsets)

    put(StateTopic, "write", twice)


@bug_of(lambda scenario: scenario.kind == "alerts")
def former_owner_of_the_watch_goes_on(world: WatchWorld) -> None:
    """Each process has a transactional id of its own, and commits as whichever member: the former owner is not fenced."""
    numbers = count()

    async def unfenced(settings: Any, transactional_id: str, group: str, member: Any) -> Any:
        delivery = await delivery_for(settings, f"{transactional_id}-{next(numbers)}", group, member)
        del delivery._producer._sender._do_txn_offset_commit  # as aiokafka commits, without a member
        return delivery

    put(state_topic, "delivery_for", unfenced)


@bug_of(lambda scenario: scenario.kind == "alerts")
def watch_keeps_its_memory_when_it_loses_the_partitions(world: WatchWorld) -> None:
    """A process whose partitions move away and come back goes on with the state of its memory, and does not read it."""
    take_over = Watcher._take_over

    async def keep(self: Any, consumer: Any, assigned: Any) -> None:
        known = getattr(self, "kept", None)
        await take_over(self, consumer, assigned)
        if self._watch is not None and known is not None:
            self._watch, self._positions = known
            for place, offset in self._positions.items():
                consumer.seek(place, offset)
        if self._watch is not None:
            self.kept = self._watch, self._positions

    put(Watcher, "_take_over", keep)

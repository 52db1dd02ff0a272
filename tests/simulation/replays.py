"""Replays of dead letters while the workers run: the code of `traceweir dlq replay`, each in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokafka.errors import KafkaError
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.seams import put

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.dead_letters import replay as replay_module
from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, DeadLettersError
from traceweir.streams.tools.dead_letters.replay import replay
from traceweir.streams.worker.kafka import bounded_reader
from traceweir.streams.worker.runtime.delivery import NoTransactionsError


class Replays:
    """The replays of a world.

    Args:
        loop: The loop of the world.
        settings: The settings of all replays.
        ended: Called when the process of a replay ends.
        tell: Adds a line to the story.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        settings: Settings,
        ended: Callable[[Process], object],
        tell: Callable[[str], object],
    ) -> None:
        self._loop, self._settings, self._ended, self._tell = loop, settings, ended, tell
        self.processes: list[Process] = []
        # These ask a cluster through a client in C, which knows no simulated world.
        for module in replay_module, bounded_reader:
            put(module, "reach", lambda settings: "simulated")
        put(replay_module, "check_partitions", lambda settings, names: [])
        put(bounded_reader, "partition_count", lambda settings, name, error: settings.partitions)

    def start(self) -> str:
        """Starts a replay of all dead letters; returns the name of its process."""
        process = Process(f"replay {len(self.processes) + 1}")
        process.ended = lambda: self._ended(process)
        self.processes.append(process)
        process.context.run(self._loop.create_task, self._run(process))
        return process.name

    @property
    def running(self) -> bool:
        """Whether a replay has not ended yet."""
        return any(process.alive for process in self.processes)

    async def _run(self, process: Process) -> None:
        sent, code = 0, 0
        try:
            async for step in replay(self._settings, DeadLetterFilter(), again=False, dry_run=False):
                sent += step.outcome == "sent"
        except (DeadLettersError, NoTransactionsError, KafkaError, asyncio.CancelledError) as error:
            code = 1
            self._tell(f"{process.name} fails: {str(error)[:90] or type(error).__name__}")
        self._tell(f"{process.name} has sent {sent} records")
        process.end(code)

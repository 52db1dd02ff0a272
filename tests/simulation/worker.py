"""Runs a real worker in a simulated process: the Faust app, its checkpoints, its scoring supervisor and its watchdog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.simulation.loop import Process, SimulatedLoop

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName
from traceweir.streams.worker import app as worker_app
from traceweir.streams.worker.faust_worker import STOP_WITHIN_S
from traceweir.streams.worker.runtime.row_formats import RowFormats
from traceweir.streams.worker.runtime.watchdog import Watch

EXIT_HARD = 70


class SimulatedWorker:
    """A worker in a process of its own.

    Args:
        loop: The loop of the world.
        name: The name of the process.
        settings: The settings of the worker; its state directory is real, for the files beside RocksDB.
        plan: The metrics, and the conditions of the gate.
        stages: The stages that it runs.
        answers: Returns whether a broker answers, for the watchdog.
        formats: The formats of rows of its version.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        name: str,
        settings: Settings,
        plan: Plan,
        stages: Sequence[StageName],
        answers: Callable[[Process], bool],
        formats: RowFormats,
    ) -> None:
        self.process = Process(name)
        self._loop, self._settings, self._plan, self._stages = loop, settings, plan, stages
        self._answers, self.formats = answers, formats
        self.checkpoints: Any = None
        self.app: Any = None
        self.scoring: Any = None
        self.configs: Any = None
        self._stopping = False
        self._services: list[Any] = []
        self._main: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the process."""
        Path(self._settings.state_dir).mkdir(parents=True, exist_ok=True)
        self._main = self.process.context.run(self._loop.create_task, self._run())

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._loop.call_soon(self._begin_to_stop, context=self.process.context)

    def _begin_to_stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._loop.call_later(STOP_WITHIN_S, self.process.end, EXIT_HARD)
        if self.app is None:
            self.process.end(0)
            return
        self._stop_task = self._loop.create_task(self._stop(0))

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception as error:  # noqa: BLE001  # as a process, which ends after any error
            if self.checkpoints is not None:
                self.checkpoints.report_end(error)
            await self._stop(1)

    async def _serve(self) -> None:
        built = worker_app.create_app(self._settings, self._plan, self._stages, transactions=True, formats=self.formats)
        self.app, self.checkpoints, self.scoring = built.app, built.checkpoints, built.scoring
        self.configs = built.configs

        async def answers() -> bool:
            await asyncio.sleep(0.01)
            return self._answers(self.process)

        watch = Watch(
            built.duties,
            built.checkpoints.fail,
            answers,
            self._settings.kafka_bootstrap_servers,
            self._settings.stuck_after_s,
        )
        watch.beacon.reattach(built.app.beacon)  # an error of one ends both, as with `faust.Worker`
        self._services = [built.app, watch]
        await watch.start()  # services come before the app, as `faust.Worker` starts them
        await built.app.start()
        await built.app.wait_until_stopped()
        if not self._stopping:
            await self._stop(1 if built.app.crashed or built.checkpoints.problems else 0)

    async def _stop(self, code: int) -> None:
        for service in self._services:
            await service.stop()
        self.process.end(code)

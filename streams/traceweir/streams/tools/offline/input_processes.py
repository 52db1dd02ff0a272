"""Starts the scoring processes of an input while the input is still read, and ends them with the run."""

from __future__ import annotations

from types import TracebackType

from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.processes import ScoringProcesses
from traceweir.streams.scoring.isolation.protocol import Setup, refuse_unsendable


class InputProcesses:
    """The scoring processes of an input. They start with the constructor, and score inside `async with`.

    Args:
        setup: What each process needs.
        count: Number of processes.

    Raises:
        ConfigError: a scorer cannot be sent to a process.
    """

    def __init__(self, setup: Setup, count: int) -> None:
        try:
            refuse_unsendable(setup.plan)
        except ConfigError as error:
            raise ConfigError([f"{problem}. Use --jobs 1 meanwhile" for problem in error.problems]) from error
        self._setup = setup
        self._launched = [LaunchedProcess() for _ in range(count)]

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that were started first."""
        return [each.process.pid for each in self._launched]

    async def __aenter__(self) -> ScoringProcesses:
        # The deaths by session matter to this run alone.
        processes = ScoringProcesses(self._setup, None, len(self._launched), launched=self._launched)
        self._processes = processes
        for supervisor in processes.supervisors:
            await supervisor.start()
        return processes

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for supervisor in self._processes.supervisors:
            await supervisor.stop()

    def close(self) -> None:
        """Ends the processes, even busy ones."""
        for each in self._launched:
            each.close()

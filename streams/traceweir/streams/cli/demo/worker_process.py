"""Runs the demo's worker in its own process, which ends on request and when the demo's process has ended.

`python -m traceweir.streams.cli.demo.worker_process CONFIG` runs all stages, with the settings of the environment,
until its standard input ends. A demo that is killed therefore leaves no worker that searches for its broker without
end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from traceweir.streams.base.attached import end_with_input
from traceweir.streams.base.setting_groups.group import ENV_PREFIX

STOP_WITHIN_S = 10.0
SHOWN_LOG_LINES = 40


class WorkerEndedError(RuntimeError):
    """The worker ended by itself; the message contains the end of the worker's log."""


class WorkerProcess:
    """Runs a worker within a `with` block."""

    def __init__(self, config: Path, log: Path, environment: Mapping[str, str]) -> None:
        """Stores the arguments; `with` starts the process.

        Args:
            config: File of the evaluation config.
            log: File for the worker's log.
            environment: The worker's `TRACEWEIR_*` settings. The worker does not inherit those of this process.
        """
        self._config = config
        self._log = log
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
        self._environment = inherited | dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WorkerProcess:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own module, by this interpreter
                [sys.executable, "-m", "traceweir.streams.cli.demo.worker_process", str(self._config)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment,
                # A Ctrl-C on the terminal is for the demo, which then stops the worker.
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def check(self) -> None:
        """Checks that the worker runs.

        Raises:
            WorkerEndedError: the worker has ended.
        """
        if self._process is not None and (code := self._process.poll()) is not None:
            raise WorkerEndedError(f"the worker ended with exit code {code}; the end of its log:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Returns the last lines of the worker's log."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-SHOWN_LOG_LINES:]) or "(empty)"


def main(config: str) -> int:
    """Runs a worker until a signal or until standard input ends; returns the exit code."""
    from traceweir.streams.scoring.isolation.launch import LaunchedProcess

    end_with_input()
    # Imports while this process does.
    launched = LaunchedProcess()
    try:
        from traceweir.scorers.evaluation.plan import read_plan
        from traceweir.streams.base.settings import load_settings
        from traceweir.streams.base.topics import STAGES
        from traceweir.streams.worker.run import run_worker

        return run_worker(load_settings(), read_plan(Path(config).read_bytes()), STAGES, launched=launched)
    finally:
        launched.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

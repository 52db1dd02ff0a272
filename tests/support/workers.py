"""Starts, kills, freezes and replaces worker processes for tests."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.dying_worker import VARIABLE as DEATH
from tests.support.stumbling_stages import VARIABLE as STUMBLE

ROOT = Path(__file__).parents[2]
SESSION_TIMEOUT_S = 6.0
START_WITHIN_S = 150.0
"""Time limit of a worker's steps. On a busy machine several workers that load litellm at once take a minute to start."""


@dataclass
class Worker:
    """A worker process, with the paths of its local state and its log."""

    name: str
    process: subprocess.Popen[bytes]
    state_dir: Path
    log: Path
    since: int = 0
    """Where the process's log starts in the file: an earlier process of the same name wrote to the same file."""

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    @property
    def serves(self) -> bool:
        """Whether the process runs and has taken over partitions."""
        return not self.ended and b"took over partitions" in self.log.read_bytes()[self.since :]

    def children(self) -> list[int]:
        """The process ids of the worker's children."""
        found = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = status.read_text().rpartition(")")[2].split()[1]
            except OSError:  # The process has just ended.
                continue
            if int(parent) == self.process.pid:
                found.append(int(status.parent.name))
        return found

    def wait_for_log(self, text: str, timeout: float = START_WITHIN_S) -> str:
        """Waits until the worker's log contains this text, and returns the log.

        Raises:
            AssertionError: the process ended or `timeout` seconds passed before the log contained the text.
        """
        deadline = time.monotonic() + timeout
        while text not in (found := self.log.read_bytes()[self.since :].decode()):
            assert not self.ended, (
                f"the worker ended with {self.process.returncode} without logging {text!r}:\n{self.log.read_text()}"
            )
            assert time.monotonic() < deadline, f"the worker did not log {text!r} in time:\n{found}"
            time.sleep(0.02)
        return found

    def ask(self, page: str) -> tuple[int, dict[str, Any]]:
        """Returns status and document of a health page of the worker."""
        status, body = self.get(page)
        return status, json.loads(body)

    def get(self, page: str) -> tuple[int, bytes]:
        """Returns status and body of a page of the worker."""
        url = re.findall(r"health: (http://\S+)/healthz", self.wait_for_log("health: "))[-1]
        with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)) as connection:
            connection.request("GET", page)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def until_ready(self, timeout: float = START_WITHIN_S) -> dict[str, Any]:
        """Waits until the worker has its place in the group, and returns its `/readyz` document.

        Raises:
            AssertionError: the process ended or `timeout` seconds passed before the worker was ready.
        """
        deadline = time.monotonic() + timeout
        while True:
            status, state = self.ask("/readyz")
            if status == 200:
                return state
            assert not self.ended, self.log.read_text()
            assert time.monotonic() < deadline, f"{state}; the worker's log:\n{self.log.read_text()}"
            time.sleep(0.02)

    def until_stopping(self, timeout: float = START_WITHIN_S) -> None:
        """Waits until the worker has received its stop signal, or has ended.

        Raises:
            AssertionError: `timeout` seconds passed before.
        """
        deadline = time.monotonic() + timeout
        while not self.ended:
            with suppress(OSError):
                if self.ask("/readyz")[1]["phase"] == "stopping":
                    return
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """Kills the worker at once, as a power loss does."""
        self.process.kill()
        self.process.wait()

    def doom(self, step: str, moment: str, count: int) -> None:
        """Makes the worker kill itself at a step of a checkpoint; it must be a `dying_worker` and serve."""
        fresh = _death_of(self.log).with_suffix(".new")
        fresh.write_text(f"{step} {moment} {count}")
        fresh.replace(_death_of(self.log))  # the worker must never read a partly written file

    def let_stumble(self, stage: str) -> None:
        """Makes a stage raise in the middle of its next batch; the worker must be a `dying_worker`."""
        fresh = _stumble_of(self.log).with_suffix(".next")
        fresh.write_text(stage)
        fresh.replace(_stumble_of(self.log))

    @property
    def stumbles(self) -> int:
        """How often a stage of the process has raised."""
        return self.log.read_bytes()[self.since :].count(b"raised StumbleError")

    def freeze(self) -> None:
        """Freezes the worker with SIGSTOP, which the worker cannot detect."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resumes a frozen worker with SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def terminate(self, timeout: float, code: int = 0) -> None:
        """Sends SIGTERM, and waits for the end.

        Raises:
            AssertionError: the worker did not end within `timeout` seconds, or not with this exit code.
        """
        self.process.terminate()
        self.wait_for_end(timeout, code)

    def wait_for_end(self, timeout: float, code: int = 0) -> None:
        """Waits for the end of the worker.

        Raises:
            AssertionError: the worker did not end within `timeout` seconds, or not with this exit code.
        """
        try:
            ended = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            ended = None
        assert ended == code, f"the worker ended with {ended}, not with {code}; its log:\n{self.log.read_text()}"


class Fleet:
    """Workers on the topics under one prefix."""

    def __init__(
        self,
        bootstrap_servers: str,
        prefix: str,
        folder: Path,
        config: Path,
        embedder: str = "hashing",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._folder, self._config = folder, config
        self._environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
            "TRACEWEIR_TOPIC_PREFIX": prefix,
            "TRACEWEIR_EMBEDDER": embedder,
            "TRACEWEIR_CLOSE_LINGER_S": "0.5",
            "TRACEWEIR_IDLE_GAP_S": "4",
            "TRACEWEIR_GRACE_S": "0",  # Each session is then one record of its topic.
            "TRACEWEIR_SESSION_TIMEOUT_S": str(SESSION_TIMEOUT_S),
            "TRACEWEIR_HEARTBEAT_INTERVAL_S": "1.5",
            "TRACEWEIR_WEB_PORT": "0",
            "PYTHONFAULTHANDLER": "1",  # the log of a worker that a signal ends tells where
            **(variables or {}),
        }
        self.started: list[Worker] = []

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kills all running workers."""
        for worker in self.started:
            worker.kill()

    def start(
        self,
        name: str,
        *,
        stages: str | None = None,
        state_dir: Path | None = None,
        mortal: bool = False,
        hanging: bool = False,
        stuck: str | None = None,
        ahead_s: float = 0.0,
        next_version: bool = False,
        variables: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
    ) -> Worker:
        """Starts a worker. An earlier worker of this name must have ended, because the state directory is the same.

        Args:
            name: Names the state directory and the log.
            stages: The worker's stages, separated by commas; None: all.
            state_dir: The state directory; None: a directory in the fleet's folder.
            mortal: Whether `doom` can kill the worker at a step of a checkpoint.
            hanging: Whether an orderly stop never ends.
            stuck: The duty that makes no progress, as `stuck_worker` names it.
            ahead_s: Seconds by which the clock of the worker is ahead of the real one.
            next_version: Whether the worker is of a version with the made-up next format of rows.
            variables: Additional environment variables.
            command: Another command of `traceweir` that runs a worker, with its options; None: `worker`.
        """
        state_dir, log = state_dir or self._folder / f"state-{name}", self._folder / f"{name}.log"
        program = ["tests.support.hanging_worker" if hanging else "traceweir.streams.cli.entry"]
        if stuck:
            program = ["tests.support.stuck_worker", stuck]
        if mortal:
            program = ["tests.support.dying_worker"]
        if next_version:
            program = ["tests.support.next_version_worker"]
        if ahead_s:
            program = ["tests.support.wrong_clock_worker", str(ahead_s)]
        if command is None:
            command = ["worker", "--config", str(self._config), *(["--stages", stages] if stages else [])]
        since = log.stat().st_size if log.exists() else 0
        _death_of(log).unlink(missing_ok=True)
        _stumble_of(log).unlink(missing_ok=True)
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *program, *command],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=self._environment
                | {"TRACEWEIR_STATE_DIR": str(state_dir), DEATH: str(_death_of(log)), STUMBLE: str(_stumble_of(log))}
                | dict(variables or {}),
            )
        worker = Worker(name, process, state_dir, log, since)
        self.started.append(worker)
        return worker


def _death_of(log: Path) -> Path:
    return log.with_suffix(".death")


def _stumble_of(log: Path) -> Path:
    return log.with_suffix(".stumble")

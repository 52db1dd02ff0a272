"""Runs commands of Traceweir as parts of another command: each in a process of its own, which ends with that command."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

STOP_WITHIN_S = 20.0
"""Seconds that the processes have together to stop; then they are killed."""
_READ_WITHIN_S = 1.0
"""Seconds in which the last lines of a process that has ended are read."""


class Line(NamedTuple):
    """A line that a part has written to its standard output or to its log."""

    part: str
    """Name of the part."""
    text: str
    """The line."""
    is_output: bool
    """Whether the line is from standard output, where programs say their addresses."""


class CommandProcess:
    """A process that runs a command.

    Args:
        name: The name of the part.
        command: The command and its options, without `traceweir`.
        environment: The environment of the process.
        lines: Receives what the part writes.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], lines: queue.SimpleQueue[Line]
    ) -> None:
        self.name = name
        self.command = command
        self.environment = environment
        self._lines = lines
        self.process = subprocess.Popen(  # noqa: S603  # our own module, by this interpreter
            [sys.executable, "-m", "traceweir.streams.cli.attached", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            # A Ctrl-C on the terminal is for this command, which then stops its parts.
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(stream, is_output), daemon=True)
            for stream, is_output in ((self.process.stdout, True), (self.process.stderr, False))
        ]
        for reader in self._readers:
            reader.start()

    def close(self) -> None:
        """Closes the pipes of a process that has ended."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        for reader in self._readers:
            reader.join(_READ_WITHIN_S)

    def _read(self, stream: IO[bytes], is_output: bool) -> None:
        with stream:
            for line in stream:
                text = line.decode(errors="replace").rstrip("\n")
                self._lines.put(Line(self.name, text, is_output))


def waiting(lines: queue.SimpleQueue[Line]) -> Iterator[Line]:
    """Returns the lines that have come, and waits for none."""
    with suppress(queue.Empty):
        while True:
            yield lines.get_nowait()


def stop(parts: Sequence[CommandProcess]) -> None:
    """Stops the parts, agents first, so that what they have sent is still scored and stored."""
    until = time.monotonic() + STOP_WITHIN_S
    for part in reversed(parts):
        part.process.terminate()
    for part in parts:
        try:
            part.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            part.process.kill()
            part.process.wait()
        part.close()

"""Launches a Python process that scores sessions.

A worker launches it first of all, so that the process imports its modules while the worker imports its own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

_STDERR = 2


class LaunchedProcess:
    """A Python process that imports the scorers, and then waits for its setup on a socket.

    It ends when this process ends, even when this process is killed: the kernel then closes this end of its lifeline.
    """

    def __init__(self) -> None:
        self.socket, its_socket = socket.socketpair()
        """Carries the messages between the two processes."""
        its_lifeline, self._lifeline = os.pipe()
        ends = its_socket.fileno(), its_lifeline
        # The child imports from the same places as this process, and not from the current folder.
        command = [sys.executable, "-P", "-m", "traceweir.streams.scoring.isolation.child", *map(str, ends)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        self.process = subprocess.Popen(  # noqa: S603  # our own command
            command,
            env=environment,
            pass_fds=ends,
            stdin=subprocess.DEVNULL,
            # What scorers print must not stand among the scores that a command prints.
            stdout=_STDERR,
            process_group=0,
        )
        its_socket.close()
        os.close(its_lifeline)

    def kill(self) -> None:
        """Kills the process and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kills the process and its children, and closes its socket; repeated calls do nothing."""
        if self._lifeline < 0:
            return
        self.kill()
        self.process.wait()
        self.socket.close()
        os.close(self._lifeline)
        self._lifeline = -1

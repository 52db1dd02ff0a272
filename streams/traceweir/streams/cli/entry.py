"""The program `traceweir`. Before a worker imports anything large, SIGTERM and Ctrl-C end it in an orderly way.

Without a handler, SIGTERM during the imports would end a worker with a signal in place of code 0. As the first process
of a container, the worker would not even receive the signal.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> NoReturn:
    """Runs a command and exits the process with its exit code."""
    if sys.argv[1:2] == ["worker"]:
        for stop in STOP_SIGNALS:  # Faust replaces both handlers before the worker reads a record
            signal.signal(stop, _end_before_start)
    from traceweir.streams.cli.main import main as run

    run()


def _end_before_start(number: int, frame: object) -> NoReturn:
    # The worker has read nothing, so nothing has to be committed, and scoring processes end with the worker. An
    # exception could be swallowed by the code that it interrupts, and that code can hold the lock of the log.
    name = signal.Signals(number).name
    os.write(2, f"received {name} during the start; the worker has read nothing, and ends\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()

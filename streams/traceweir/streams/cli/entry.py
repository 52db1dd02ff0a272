"""The program `traceweir`. Before a service imports anything large, SIGTERM and Ctrl-C end it in an orderly way.

Without a handler, SIGTERM during the imports would end a worker with a signal in place of code 0. As the first process
of a container, the worker would not even receive the signal. The OTLP endpoint would wait for Kafka before it ends.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from functools import partial
from typing import NoReturn

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
STARTING = {
    "worker": "the worker has read nothing",
    "otlp": "the endpoint has received nothing",
    "export": "the exporter has sent nothing",
}
"""What a service that has not started says when a signal ends it."""


def main() -> NoReturn:
    """Runs a command and exits the process with its exit code."""
    if (command := "".join(sys.argv[1:2])) in STARTING:
        # The service replaces both handlers before it reads or receives anything.
        for stop in STOP_SIGNALS:
            signal.signal(stop, partial(_end_before_start, STARTING[command]))
    from traceweir.streams.cli.main import main as run

    try:
        run()
    finally:
        # Python looks for cycles among all objects before it ends: seconds of CPU with litellm's. Nobody waits for them.
        # DuckDB prints a page about leaks if its objects are left.
        if "_duckdb" not in sys.modules:
            gc.freeze()


def _end_before_start(state: str, number: int, frame: object) -> NoReturn:
    # Nothing was read, so nothing has to be committed, and scoring processes end with the worker. An exception could
    # be swallowed by the code that it interrupts, and that code can hold the lock of the log.
    name = signal.Signals(number).name
    os.write(2, f"received {name} during the start; {state}, and ends\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()

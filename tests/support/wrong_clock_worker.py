"""Runs a worker whose clock is wrong, from its start on.

`python -m tests.support.wrong_clock_worker SECONDS worker ...` takes the arguments of `traceweir` after the seconds by
which the clock is ahead; negative: behind.
"""

from __future__ import annotations

import sys
from datetime import timedelta

from traceweir.streams.base import clock


def install(ahead_s: float) -> None:
    """Moves the clock of this process; call this before other modules of Traceweir are imported."""
    seconds_now, utc_now = clock.seconds_now, clock.utc_now
    clock.seconds_now = lambda: seconds_now() + ahead_s
    clock.utc_now = lambda: utc_now() + timedelta(seconds=ahead_s)


if __name__ == "__main__":
    install(float(sys.argv.pop(1)))
    from traceweir.streams.cli.main import main

    main(sys.argv[1:])

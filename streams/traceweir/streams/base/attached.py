"""Ends a process when its parent has ended.

The parent holds the other end of standard input. When the parent ends in any way, also by a kill, standard input ends,
and the process stops as with SIGTERM. A parent that is killed therefore leaves no process behind.
"""

from __future__ import annotations

import os
import signal
import threading
import time

ORPHANED_WITHIN_S = 3.0
"""Seconds that a command has for its stop when its parent has ended; Kafka may have ended with the parent."""


def end_with_input() -> None:
    """Starts a thread that stops this process when standard input ends."""
    threading.Thread(target=_end_with_input, name="stdin", daemon=True).start()


def _end_with_input() -> None:
    # This reads the raw descriptor, because a thread that waits in sys.stdin holds the lock of sys.stdin at interpreter
    # exit.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHANED_WITHIN_S)
    os._exit(1)

"""Calls a function when the process ends, also in processes of `multiprocessing`, which end without `atexit`."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable


def call_at_exit(function: Callable[[], object]) -> None:
    """Calls the function once at the end of this process. A forked child inherits it unless it is multiprocessing's."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, function, exitpriority=10)
    else:
        atexit.register(function)

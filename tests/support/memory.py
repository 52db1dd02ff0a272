"""What a piece of work leaves in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def bytes_kept(work: Callable[[], object]) -> int:
    """Bytes that the work allocated and that are still held after it; its result is dropped first."""
    tracemalloc.start()
    try:
        work()
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept

"""Measures the memory that a call leaves allocated."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from collections.abc import Callable


def bytes_kept(work: Callable[[], object]) -> int:
    """Returns the bytes that the call allocated and that are still held after its result was dropped."""
    tracemalloc.start()
    try:
        work()
        _collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept


def _collect() -> None:
    # Connections of earlier tests, which litellm keeps in caches, are not what is measured.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()

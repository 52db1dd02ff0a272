"""Explains to the operator why a worker ends."""

from __future__ import annotations


class WorkerError(RuntimeError):
    """The worker cannot continue; the message states the reason and the way out, so the log shows no traceback."""

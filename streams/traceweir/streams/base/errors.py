"""Explains to the operator why a worker ends."""

from __future__ import annotations


class WorkerError(RuntimeError):
    """The worker cannot continue; the message states the reason and the way out, so the log shows no traceback."""


class NotReadyError(RuntimeError):
    """A precondition of a process is not met; the message lists the problems and how to fix them."""

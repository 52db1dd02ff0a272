"""Explains to the operator why a worker or a command ends."""

from __future__ import annotations


class WorkerError(RuntimeError):
    """The worker cannot continue; the message states the reason and the way out, so the log shows no traceback."""


class NotReadyError(RuntimeError):
    """A precondition of a process is not met; the message lists the problems and how to fix them."""


class InvalidSettingsError(ValueError):
    """The environment holds settings that cannot be used. The message lists each of them with its variable."""

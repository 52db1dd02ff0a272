"""Decides when a silent scoring process is stuck: by the CPU time that the process used, not by a clock alone.

On a busy machine a process can be silent for long because the system does not run it. Its sessions are innocent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import psutil


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """The limits for the silence of a process that has work.

    The process sends a heartbeat every second unless a scorer blocks its event loop.
    """

    computing_s: float = 10.0
    """Silence in seconds, and CPU time in seconds during the silence, above which a process counts as stuck.

    A process that cannot run counts as stuck after this silence, whatever CPU time it used.
    """
    waiting_s: float = 120.0
    """Silence in seconds after which a process counts as stuck whatever CPU time it used: a scorer waits without end."""


class ProcessUse(NamedTuple):
    """What a process has done so far."""

    cpu_s: float
    """CPU time of all its threads in seconds, in user and kernel mode, without its child processes."""
    can_run: bool = True
    """False if a signal has stopped the process, or if it has ended and a child of it keeps its socket open."""


_CANNOT_RUN = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)


class Silence:
    """Measures the silence of a process, in checks: a clock would go on while the worker itself is frozen.

    Args:
        use: Returns what the process has done so far; called at each check.
    """

    def __init__(self, use: Callable[[], ProcessUse]) -> None:
        self._use = use
        self._silent_s = 0.0
        self._cpu_s_before: float | None = None

    def end(self) -> None:
        """Notes that the process has sent something, or has got work after a pause."""
        self._silent_s = 0.0
        self._cpu_s_before = None

    def check(self, interval_s: float, limits: SilenceLimits) -> str | None:
        """Counts one more interval of silence, in seconds, and returns why the process is stuck; None if it is not."""
        activity = self._use()
        if self._cpu_s_before is None:
            self._cpu_s_before = activity.cpu_s
        self._silent_s += interval_s
        used_s = activity.cpu_s - self._cpu_s_before
        if self._silent_s > limits.waiting_s:
            return (
                f"it has sent nothing for {limits.waiting_s:g} s and used {used_s:.1f} s of CPU time, so a scorer waits "
                "without end"
            )
        if self._silent_s <= limits.computing_s:
            return None
        if not activity.can_run:
            return f"it has sent nothing for {limits.computing_s:g} s, and it was stopped by a signal or has ended"
        if used_s > limits.computing_s:
            return (
                f"it has used {used_s:.1f} s of CPU time and sent nothing meanwhile, so a scorer blocks its event loop"
            )
        return None


def use_of(pid: int) -> Callable[[], ProcessUse]:
    """Returns a function that reads the activity of a process.

    The process must be a child of this process that nobody has waited for, so that its id is not used again.
    """
    process = psutil.Process(pid)
    latest = ProcessUse(0.0)

    def read() -> ProcessUse:
        nonlocal latest
        try:
            with process.oneshot():
                times = process.cpu_times()
                latest = ProcessUse(times.user + times.system, process.status() not in _CANNOT_RUN)
        except psutil.Error:
            # macOS gives no figures for a process that has ended.
            latest = ProcessUse(latest.cpu_s, can_run=False)
        return latest

    return read

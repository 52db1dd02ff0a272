"""Measures the CPU of other processes during a run: that of a worker's children, and that of the broker."""

import time
from contextlib import suppress
from threading import Event, Thread
from typing import NamedTuple

import numpy as np
import psutil

_LOOK_S = 0.25
"""Time between two looks, in seconds. A look reads the parents of all processes of the machine."""


class _Look(NamedTuple):
    at: float
    children: float
    broker: float


class ProcessCpu(Thread):
    """Looks at the CPU of a process's children and of a broker until `stop`; a process that has ended counts too."""

    def __init__(self, parent: int, broker: int | None) -> None:
        """Takes the ids of the parent and of the broker; None if the broker is not a process of its own."""
        super().__init__(daemon=True)
        self._parent = psutil.Process(parent)
        self._broker = None if broker is None else psutil.Process(broker)
        self._used: dict[int, float] = {}
        self._broker_s = 0.0
        self._looks: list[_Look] = []
        self._stopped = Event()

    def run(self) -> None:
        """Looks until `stop`."""
        while not self._stopped.wait(_LOOK_S):
            self._look()

    def stop(self) -> None:
        """Looks for the last time."""
        self._stopped.set()
        self.join()
        self._look()

    def used_s(self, since: float) -> tuple[float, float]:
        """Returns the CPU of the children and of the broker since a time of `time.perf_counter`, in seconds."""
        at = [look.at for look in self._looks]
        children, broker = ([look[place] for look in self._looks] for place in (1, 2))
        return children[-1] - float(np.interp(since, at, children)), broker[-1] - float(np.interp(since, at, broker))

    def _look(self) -> None:
        children: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):  # the parent has ended
            children = self._parent.children(recursive=True)
        for child in children:
            self._used[child.pid] = _cpu_s(child, self._used.get(child.pid, 0.0))
        if self._broker is not None:
            self._broker_s = _cpu_s(self._broker, self._broker_s)
        self._looks.append(_Look(time.perf_counter(), sum(self._used.values()), self._broker_s))


def _cpu_s(process: psutil.Process, before: float) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # its last figure stays
        return before
    return float(times.user + times.system)

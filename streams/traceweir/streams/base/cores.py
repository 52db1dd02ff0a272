"""Counts the cores that a process can use."""

from __future__ import annotations

import math
import os
from pathlib import Path


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Returns the number of cores that this process can use, at least 1.

    A container can have a quota of CPU time (`resources.limits.cpu` in Kubernetes, `--cpus` in Docker), which neither
    `os.cpu_count` nor the affinity contain. A part of a core counts as a whole one.

    Args:
        cgroup: Where Linux shows the control group of the container.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _quota(cgroup: Path) -> float | None:
    """Returns the quota in cores, by version 2 or version 1 of control groups; None if there is none."""
    try:
        of_period = (cgroup / "cpu.max").read_text().split()
    except OSError:
        try:
            of_period = [(cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")]
        except OSError:
            return None
    try:
        quota, period = map(int, of_period)
    except ValueError:
        # "max".
        return None
    return quota / period if quota > 0 and period > 0 else None

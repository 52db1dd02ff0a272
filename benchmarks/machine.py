"""Describes the machine and the software of a measurement."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("faust-streaming", "aiokafka", "pydantic", "numpy", "rocksdict", "uvloop")


def description() -> str:
    """Returns processor, cores, memory, Python and the relevant packages, in one line each."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}\n{packages}"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []

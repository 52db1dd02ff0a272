"""Measures many open sessions in one worker: memory a session, CPU a record, and the takeover with and without its disk.

Needs Apache Kafka. `BENCH_SESSIONS` is their number; a million take about 4 GB of memory and some minutes.
"""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import psutil

from benchmarks.takeover import Fleet, took_over

SESSIONS = 1_000_000
_RESTORED = re.compile(r"rows, ([\d.]+) MB in")
EVENTS = 3
"""Events of each session."""


def run(servers: str) -> None:
    """Prints the memory without and with the sessions, the CPU, the size of the state and the times of takeovers."""
    sessions = int(os.environ.get("BENCH_SESSIONS", SESSIONS))
    with Fleet(servers, linger_s="0", gap_s="1000000") as fleet:
        fleet.start("a", TRACEWEIR_PARTITION_MAX_OPEN_SESSIONS=str(sessions))
        print(f"  without load: {took_over(fleet, 'a')}", flush=True)
        time.sleep(2)
        pid = fleet.workers["a"].pid
        idle = _memory(pid), _memory_of_children(pid)
        print(f"  memory without load: {idle[0] / 1e6:.0f} MB, and {idle[1] / 1e6:.0f} MB of scoring", flush=True)
        cpu_s = sum(psutil.Process(pid).cpu_times()[:2])
        began = time.perf_counter()
        fleet.fill(sessions, 0)
        seconds = time.perf_counter() - began
        cpu_us = (sum(psutil.Process(pid).cpu_times()[:2]) - cpu_s) / sessions / EVENTS * 1e6
        a_session = (_memory(pid) - idle[0]) / sessions
        print(
            f"  {sessions:,} open sessions of {EVENTS} events: {a_session:,.0f} bytes of memory a session, "
            f"{cpu_us:.1f} us CPU a record ({seconds:.0f} s)",
            flush=True,
        )
        fleet.workers["a"].send_signal(signal.SIGTERM)
        code = fleet.workers["a"].wait(120)
        files = sum(file.stat().st_size for file in Path(fleet.folder / "state-a").rglob("*") if file.is_file())
        print(f"  {files / 1e6:,.0f} MB on disk; with it: {took_over(fleet, 'a', code)}", flush=True)
        shutil.rmtree(fleet.folder / "state-a")
        began = time.perf_counter()
        fleet.start("a", TRACEWEIR_PARTITION_MAX_OPEN_SESSIONS=str(sessions))
        line = took_over(fleet, "a")
        seconds = time.perf_counter() - began
        cpu_s = sum(psutil.Process(fleet.workers["a"].pid).cpu_times()[:2])
        gb = float(_RESTORED.findall(line)[0]) / 1e3
        print(
            f"  without it: {line}; {seconds:.1f} s from its start, {cpu_s:.1f} s of CPU, "
            f"{seconds / gb:.0f} s and {cpu_s / gb:.0f} s of CPU a GB of rows"
        )


def _memory(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


def _memory_of_children(pid: int) -> int:
    return sum(_memory(child.pid) for child in psutil.Process(pid).children(recursive=True))

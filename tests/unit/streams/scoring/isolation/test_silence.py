"""Tests when a silent scoring process counts as stuck, with the CPU time as an argument."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from traceweir.streams.scoring.isolation.silence import ProcessUse, Silence, SilenceLimits, use_of

LIMITS = SilenceLimits(computing_s=10, waiting_s=120)
INTERVAL_S = 0.5


class Process:
    """A process that gets a share of a CPU."""

    def __init__(self, share: float, *, can_run: bool = True) -> None:
        self.share, self.can_run = share, can_run
        self._cpu_s = 1_000.0
        """Used before the silence."""

    def __call__(self) -> ProcessUse:
        self._cpu_s += self.share * INTERVAL_S
        return ProcessUse(self._cpu_s, self.can_run)


def silent_s_until_stuck(process: Callable[[], ProcessUse], silence: Silence | None = None) -> tuple[float, str]:
    silence = silence or Silence(process)
    for checks in range(1, 1_000):
        stuck = silence.check(INTERVAL_S, LIMITS)
        if stuck is not None:
            return checks * INTERVAL_S, stuck
    raise AssertionError("never stuck")


@pytest.mark.parametrize(
    ("process", "silent_s", "why"),
    [
        (Process(1.0), 11.0, "used 10.5 s of CPU time and sent nothing meanwhile"),
        (Process(0.25), 41.0, "used 10.1 s of CPU time and sent nothing meanwhile"),
        (Process(16.0), 10.5, "so a scorer blocks its event loop"),
        (Process(0.01), 120.5, "nothing for 120 s and used 1.2 s of CPU time, so a scorer waits without end"),
        (Process(0.0), 120.5, "waits without end"),
        (Process(0.0, can_run=False), 10.5, "was stopped by a signal or has ended"),
    ],
    ids=["alone on a CPU", "busy machine", "many threads", "starved", "waits", "stopped"],
)
def test_a_silent_process_is_stuck_after_its_own_cpu_time_or_a_long_wait(
    process: Process, silent_s: float, why: str
) -> None:
    found_s, stuck = silent_s_until_stuck(process)
    assert found_s == silent_s
    assert why in stuck


def test_the_cpu_time_before_the_silence_does_not_count() -> None:
    process = Process(1.0)
    silence = Silence(process)
    for _ in range(19):
        assert silence.check(INTERVAL_S, LIMITS) is None
    silence.end()
    assert silent_s_until_stuck(process, silence)[0] == 11.0


@pytest.mark.slow
def test_the_use_of_a_process_has_its_cpu_time_and_shows_whether_it_can_run() -> None:
    endless = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    with subprocess.Popen(endless, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        read = use_of(process.pid)
        first = read()
        while read().cpu_s <= first.cpu_s:
            pass
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        stopped = read()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended = read()
    assert (first.can_run, stopped.can_run, ended.can_run) == (True, False, False)
    assert ended.cpu_s >= stopped.cpu_s > first.cpu_s

"""Measures `traceweir score` on files of traces: traces per second, and the peak memory of all its processes.

Each file is scored with one and with several processes, in turns. `BENCH_BASELINE=FOLDER` adds the code of another
checkout to the turns, and the ratio of its rate. `BENCH_TRACES=10000,80000,1000000` changes the sizes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import NamedTuple

import psutil
from tests.support.offline_inputs import generated_traces

from traceweir.streams.base.cores import usable_cores

SIZES = "10000,80000"
ROUNDS = 3
_LOOK_S = 0.25


class Scored(NamedTuple):
    """A run of the command."""

    seconds: float
    cpu_s: float
    """CPU time of all processes."""
    peak_bytes: int
    """The largest sum of the memory of all processes; memory that processes share counts once."""
    first_s: float
    """Seconds until the first score."""


def run() -> None:
    """Prints a line per size and kind of run."""
    sizes = [int(size) for size in os.environ.get("BENCH_TRACES", SIZES).split(",")]
    baseline = os.environ.get("BENCH_BASELINE")
    jobs = max(2, usable_cores())
    kinds: dict[str, tuple[Path | None, list[str]]] = {"1 job": (None, ["--jobs", "1"])}
    kinds[f"{jobs} jobs"] = (None, ["--jobs", f"{jobs}"])
    if baseline is not None:
        kinds["baseline"] = (Path(baseline), [])
    with TemporaryDirectory() as folder:
        for size in sizes:
            file = Path(folder) / f"{size}.jsonl"
            with file.open("wb") as stream:
                stream.writelines(line + b"\n" for line in generated_traces(size))
            print(f"  {size:,} traces, {file.stat().st_size / 1e6:,.0f} MB")
            found: dict[str, list[Scored]] = {kind: [] for kind in kinds}
            for _ in range(ROUNDS if size <= 100_000 else 1):
                for kind, (checkout, options) in kinds.items():
                    found[kind].append(_scored(file, checkout, options))
            for kind, runs in found.items():
                print(f"    {kind:9} {_described(size, runs, found.get('baseline', ()))}", flush=True)
            file.unlink()


def _described(size: int, runs: Sequence[Scored], baseline: Sequence[Scored]) -> str:
    seconds = median(each.seconds for each in runs)
    text = (
        f"{size / seconds:6,.0f} traces/s, {median(each.cpu_s for each in runs) / size * 1e6:5,.0f} us CPU a trace, "
        f"{max(each.peak_bytes for each in runs) / 1e6:5,.0f} MB, first score after "
        f"{median(each.first_s for each in runs):.1f} s"
    )
    if baseline and runs is not baseline:
        rates = [before.seconds / after.seconds for before, after in zip(baseline, runs, strict=True)]
        cpu = [after.cpu_s / before.cpu_s for before, after in zip(baseline, runs, strict=True)]
        text += f"; {median(rates):.2f} times the baseline's rate, {median(cpu):.2f} of its CPU"
    return text


def _scored(file: Path, checkout: Path | None, options: Sequence[str]) -> Scored:
    environment = dict(os.environ)
    if checkout is not None:
        roots = [str(checkout.resolve() / root) for root in ("schemas", "scorers", "streams")]
        environment["PYTHONPATH"] = os.pathsep.join(roots)
    command = [sys.executable, "-P", "-m", "traceweir.streams.cli.main", "score", str(file), "--embedder", "none"]
    begun = time.perf_counter()
    with subprocess.Popen(
        [*command, "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        watch = _Watch(psutil.Process(process.pid))
        watch.start()
        assert process.stdout is not None
        process.stdout.readline()
        first_s = time.perf_counter() - begun
        while process.stdout.read(1 << 20):
            pass
        _, _, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = 0
        watch.join()
    return Scored(seconds, used.ru_utime + used.ru_stime, watch.peak_bytes, first_s)


class _Watch(Thread):
    """Looks at the memory of a process and its children until the process ends."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.peak_bytes = 0

    def run(self) -> None:
        with suppress(psutil.Error):  # the process has ended
            while self._process.status() != psutil.STATUS_ZOMBIE:
                self.peak_bytes = max(self.peak_bytes, sum(self._sizes()))
                time.sleep(_LOOK_S)

    def _sizes(self) -> Iterator[int]:
        for each in (self._process, *self._process.children(recursive=True)):
            try:
                yield each.memory_full_info().pss
            except psutil.Error:  # the process has ended
                continue

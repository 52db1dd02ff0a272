"""Measures the rate and the CPU of scoring with one and with several scoring processes, without Kafka."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from pathlib import Path

import psutil

from benchmarks.workload import CONFIG, RECORDS_A_SESSION, record
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.process_setup import event_loop
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.processes import ScoringProcesses
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.testing import START_S, Flow

SESSIONS, TIMES, AT_ONCE, ROUNDS = 4_000, 5, 256, 3
COUNTS = (1, 2)


def run() -> None:
    """Prints, by number of processes, sessions per second, and microseconds of CPU per session of all processes."""
    sessions = asyncio.run(_sessions(SESSIONS))
    found: dict[int, list[tuple[float, float]]] = {count: [] for count in COUNTS}
    for _ in range(ROUNDS):
        for count in COUNTS:
            with asyncio.Runner(loop_factory=event_loop()) as runner:
                found[count].append(runner.run(_scored(sessions, count)))
    for count, rounds in found.items():
        rate, cpu_us = (statistics.median(each[place] for each in rounds) for place in (0, 1))
        print(f"MEDIAN {count} scoring processes: {rate:,.0f} sessions/s, {cpu_us:.0f} us of their CPU a session")


async def _sessions(count: int) -> list[bytes]:
    """Returns closed sessions, as on their topic."""
    flow = Flow(stages=("assemble",), idle_gap_s=60)
    at = datetime.fromtimestamp(START_S, UTC)
    for number in range(count):
        for place in range(RECORDS_A_SESSION):
            is_trace, value = record(f"session-{number}", place, at)
            flow.send(flow.topics.traces if is_trace else flow.topics.invocations, value)
    await flow.settle()
    flow.pass_time(120)
    await flow.settle()
    return [message.value for message in flow.read(flow.topics.sessions) if message.value]


async def _scored(sessions: list[bytes], count: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        setup = Setup.of(Settings(embedder="none"), read_plan(CONFIG))
        scoring = ScoringProcesses(setup, Path(folder) / "attempts.json", count, launched=[LaunchedProcess()])
        for each in scoring.supervisors:
            await each.start()
        processes = [psutil.Process(pid) for pid in scoring.pids]

        async def score(left: Iterator[bytes]) -> None:
            for raw in left:
                await scoring(raw)

        async def score_all(left: Iterator[bytes]) -> None:
            await asyncio.gather(*(score(left) for _ in range(AT_ONCE)))

        await score_all(iter(sessions))  # a process is slower at first
        began, cpu = time.perf_counter(), sum(sum(each.cpu_times()[:2]) for each in processes)
        await score_all(chain.from_iterable(repeat(sessions, TIMES)))
        wall, cpu = time.perf_counter() - began, sum(sum(each.cpu_times()[:2]) for each in processes) - cpu
        for each in scoring.supervisors:
            await each.stop()
        scored = TIMES * len(sessions)
        return scored / wall, cpu / scored * 1e6

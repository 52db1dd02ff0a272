"""Runs a worker that ends when a known load and its output are committed, and prints the time.

`python -m benchmarks.timed_worker STAGES RECORDS SESSIONS`, with the settings in the environment, and with `MORE_CRITERIA`.
"""

import cProfile
import json
import logging
import os
import resource
import sys
import time
from typing import Any

import faust
import uvloop
from pydantic import JsonValue

from benchmarks.workload import CONFIG
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.process_setup import tune_gc
from traceweir.streams.base.settings import load_settings
from traceweir.streams.scoring.tracing.switch import spans_of_environment
from traceweir.streams.worker.app import create_app
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.runtime.checkpoint import Checkpoints

MORE_CRITERIA = "BENCH_CRITERIA"
"""The variable with criteria beside those of the load, as a JSON object."""


class Stopwatch:
    """Measures from the first batch until everything is committed; adds up the time of each part of the work."""

    def __init__(self, checkpoints: Checkpoints, stages: list[str], records: int, sessions: int) -> None:
        self.checkpoints, self.stages, self.records, self.sessions = checkpoints, stages, records, sessions
        self.began = self.cpu = 0.0
        self.parts: dict[str, float] = {}
        self.profile = cProfile.Profile() if os.environ.get("PROFILE") else None
        self.real_take = checkpoints.take
        checkpoints.take = self.take  # type: ignore[method-assign]
        checkpoints.rounds.finished = self.finished

    async def take(self, tp: Any, records: Any) -> None:
        """Records the time of the first batch."""
        if not self.began:
            self.began, self.cpu = time.perf_counter(), time.process_time()
            if self.profile:
                self.profile.enable()
        await self.real_take(tp, records)

    def measure(self, owner: Any, name: str, part: str) -> None:
        """Adds up the time that a synchronous method takes."""
        real = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return real(*args, **kwargs)
            finally:
                self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - began

        setattr(owner, name, timed)

    def total(self, stage: str, count: str) -> int:
        """Returns a count of one stage over all lanes."""
        return sum(lane.stages[stage].counters[count] for lane in self.checkpoints.lanes.values())  # type: ignore[attr-defined]

    def finished(self) -> None:
        """Ends the process when all work is done and committed."""
        done = {"collect": "published", "assemble": "consumed", "score": "scored", "gate": "consumed"}
        records = 0 if "collect" in self.stages else self.records  # then the records of the load are requests of spans
        wanted = {"collect": self.sessions, "assemble": records, "score": self.sessions, "gate": self.sessions}
        if any(self.total(stage, done[stage]) < wanted[stage] for stage in self.stages):
            return
        if "assemble" in self.stages and self.total("assemble", "closed") < self.sessions * (self.sessions > 0):
            return
        if any(lane.in_checkpoint or lane.pending for lane in self.checkpoints.lanes.values()):
            return
        ended = time.perf_counter()
        wall, cpu = ended - self.began, time.process_time() - self.cpu
        if self.profile:
            self.profile.disable()
            self.profile.dump_stats(os.environ["PROFILE"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        parts = {part: seconds / self.records * 1e6 for part, seconds in self.parts.items()}
        rate, cpu_us = self.records / wall, cpu / self.records * 1e6
        report = {"rate": rate, "cpu_us": cpu_us, "rss": peak, "parts_us": parts, "ended": ended}
        sys.stdout.write(json.dumps(report))
        sys.stdout.flush()
        os._exit(0)


def main(stages: list[Any], records: int, sessions: int) -> None:
    """Runs the worker."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    uvloop.install()
    settings = load_settings()
    transactions = settings.delivery != "at_least_once"
    more: dict[str, JsonValue] = json.loads(os.environ.get(MORE_CRITERIA, "{}"))
    plan = read_plan({"criteria": {**CONFIG["criteria"], **more}})  # type: ignore[dict-item]
    app, checkpoints, *_ = create_app(settings, plan, stages, transactions=transactions, spans=spans_of_environment())
    watch = Stopwatch(checkpoints, stages, records, sessions)
    if os.environ.get("BREAKDOWN"):
        from traceweir.streams.pipeline.assemble.stage import AssembleStage
        from traceweir.streams.pipeline.gate.stage import GateStage
        from traceweir.streams.pipeline.score.stage import ScoreStage

        for applying in (AssembleStage, GateStage):
            watch.measure(applying, "apply", f"{applying.__name__.lower()} apply")
        for cutting in (AssembleStage, ScoreStage, GateStage):
            watch.measure(cutting, "cut", f"{cutting.__name__.lower()} cut")
        watch.measure(AssembleStage, "tick", "assemble tick")
        watch.measure(PartitionTable, "write", "RocksDB")
    tune_gc()
    faust.Worker(
        app, loglevel="WARN", quiet=True, override_logging=False, redirect_stdouts=False
    ).execute_from_commandline()


if __name__ == "__main__":
    main(sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]))

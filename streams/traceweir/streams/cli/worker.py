"""Runs the command `traceweir worker`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceweir.streams.base.process_setup import paused_gc
from traceweir.streams.base.topics import StageName
from traceweir.streams.scoring.isolation.launch import LaunchedProcess


def run(stages: Sequence[StageName], config: Path | None) -> int:
    """Runs a worker until a signal or a failure; returns the exit code of the command."""
    # First, because it imports while this process does.
    launched = LaunchedProcess() if "score" in stages else None
    try:
        with paused_gc():
            from traceweir.streams.cli.score.commands import read_config
            from traceweir.streams.cli.up_broker import kafka_settings
            from traceweir.streams.worker.run import run_worker
        plan = read_config(config)
        settings = kafka_settings()
        return run_worker(settings, plan, stages, config=config, launched=launched)
    finally:
        if launched is not None:
            launched.close()

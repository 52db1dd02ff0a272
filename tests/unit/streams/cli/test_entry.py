"""Tests that a worker that is asked to stop during its imports ends in an orderly way."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.support.paths import ROOT

PROGRAM = """
import sys

class Hold:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            print("importing", flush=True)
            sys.stdin.read()

sys.meta_path.insert(0, Hold())
from traceweir.streams.cli.entry import main

main()
"""
"""Runs `traceweir` and holds it in its imports, until standard input ends."""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_stopped_during_its_imports_ends_with_0(stop: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, "worker"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "importing\n"
        worker.send_signal(stop)
        _, log = worker.communicate()
    assert worker.returncode == 0
    assert log == f"received {stop.name} during the start; the worker has read nothing, and ends\n"


@pytest.mark.slow
def test_another_command_keeps_the_signals_of_python() -> None:
    command = [sys.executable, "-c", PROGRAM, "emit"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as emit:
        assert emit.stdout is not None
        assert emit.stdout.readline() == "importing\n"
        emit.send_signal(signal.SIGTERM)
        emit.communicate()
    assert emit.returncode == -signal.SIGTERM

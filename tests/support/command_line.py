"""Runs a command of `traceweir` in the test's process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import NamedTuple

import pytest
import typer.main

from traceweir.streams.cli.main import main


class Ended(NamedTuple):
    """The exit code of a command, and its output."""

    code: object
    out: str
    err: str


Run = Callable[..., Ended]

build_commands = typer.main.get_command
"""What builds the tree of all commands, for a test that adds one."""
_command_of = functools.cache(build_commands)
"""Builds the tree of all commands once a process; Typer builds it for each run, which takes longer than most commands."""


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs a command, on a wide terminal and without `TRACEWEIR_*` variables."""
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(typer.main, "get_command", _command_of)

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        return Ended(ended.value.code, *capfd.readouterr())

    return run

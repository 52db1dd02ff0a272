"""Runs a command of `traceweir` in the test's process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from traceweir.streams.cli.main import main


class Ended(NamedTuple):
    """The exit code of a command, and its output."""

    code: object
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs a command, on a wide terminal and without `TRACEWEIR_*` variables."""
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        return Ended(ended.value.code, *capfd.readouterr())

    return run

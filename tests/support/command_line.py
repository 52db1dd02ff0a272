"""A command of `traceweir`, run in the test's process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from traceweir.streams.cli.main import main


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: object
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command by its arguments, on a wide terminal, in an environment that says nothing of Traceweir."""
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        return Ended(ended.value.code, *capfd.readouterr())

    return run

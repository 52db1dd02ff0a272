"""Defines a scorer for tests that kills or blocks its own process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import ClassVar

from traceweir.schemas.invocation import Level
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan, read_plan

_LEFT_BEHIND: set[str] = set()
"""State that a session left behind in this process."""


class Deadly(Scorer):
    """Acts on the process as the start of the session's name says, and adds the name of each session to a file.

    `kill` kills the process. `hold` blocks the process, with the interpreter lock held, without end. `once` kills only
    the first process that scores the session. `fork` leaves a child process behind and kills its own process. `wait`
    waits until the file `go` exists. `trap` leaves state behind that kills the process at the next session.
    """

    level: ClassVar[Level] = "session"
    notes: str

    def score(self, subject: Subject) -> Measurement | Awaitable[Measurement]:
        """Acts as the session's name says; returns the value 1."""
        name = subject.session.session_id if subject.session else ""
        notes = Path(self.notes)
        with notes.open("a") as file:
            file.write(f"{name}\n")
        if name.startswith("fork") and not os.fork():
            time.sleep(600)
        if (
            name.startswith(("kill", "fork"))
            or (name.startswith("once") and notes.read_text().split().count(name) == 1)
            or "trap" in _LEFT_BEHIND
        ):
            os.kill(os.getpid(), signal.SIGKILL)
        if name.startswith("trap"):
            _LEFT_BEHIND.add("trap")
        if name.startswith("hold"):
            re.match(r"(a+)+$", "a" * 100 + "b")
        if name.startswith("wait"):
            return self._waiting()
        return Measurement(value=1.0)

    async def _waiting(self) -> Measurement:
        while not Path(self.notes).with_name("go").exists():  # noqa: ASYNC110  # Another process creates the file.
            await asyncio.sleep(0.01)
        return Measurement(value=1.0)


def deadly_plan(notes: Path) -> Plan:
    """Returns a plan with this scorer as its only metric."""
    plan = read_plan({})
    metric = Metric("deadly", 0.5, Deadly(notes=str(notes)), "digest")
    return Plan((metric,), plan.trace_value, plan.gate, {"deadly": 1.0}, plan.digest)

"""A scorer for tests that does to its process what no scorer should."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import ClassVar

from tracegate.schemas.invocation import Level
from tracegate.scorers.base import Measurement, Scorer, Subject
from tracegate.scorers.plan import Metric, Plan, read_plan


class Deadly(Scorer):
    """Kills its process over a session whose id begins with `kill`, holds it for ever over one that begins with `hold`.

    Over `once` it kills the first process only. Each start is noted in a file.
    """

    level: ClassVar[Level] = "session"
    notes: str

    def score(self, subject: Subject) -> Measurement:
        """Do it."""
        name = subject.session.session_id if subject.session else ""
        notes = Path(self.notes)
        with notes.open("a") as file:
            file.write(f"{name}\n")
        if name.startswith("kill") or (name.startswith("once") and notes.read_text().split().count(name) == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        while name.startswith("hold"):
            time.sleep(1)
        return Measurement(value=1.0)


def deadly_plan(notes: Path) -> Plan:
    """A plan with this scorer alone."""
    plan = read_plan(None)
    metric = Metric("deadly", 0.5, Deadly(notes=str(notes)), "digest")
    return Plan((metric,), plan.trace_value, plan.gate, {"deadly": 1.0}, plan.digest)

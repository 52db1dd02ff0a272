"""A scorer that does what a session's id says, which may be anything; and what makes workers find it, as they find a plug-in."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import zlib
from pathlib import Path
from typing import Any, ClassVar

from traceweir.schemas.invocation import Level
from traceweir.scorers.base import Measurement, Scorer, Subject

METRIC = "unsteady"


class Unsteady(Scorer):
    """Gives a session a number that follows from its id, unless the id ends with `~` and one of the marks of `ledger.py`.

    Over `raises`, `returns-rubbish` and `is-no-number` it fails in three ways, over `hangs` it never answers, the first session of a round
    with `kills-once` ends its process the first time, and `holds` holds the interpreter for ever.
    """

    level: ClassVar[Level] = "session"
    notes: str
    """Folder in which it is noted that a process was ended."""

    def score(self, subject: Subject) -> Any:
        """Do it."""
        name = subject.session.session_id if subject.session else ""
        mark = name.partition("~")[2]
        if mark == "raises":
            raise RuntimeError("no answer from the model")
        if mark == "returns-rubbish":
            return {"value": "very good"}
        if mark == "is-no-number":
            return Measurement(value=float("nan"))
        if mark == "hangs":
            return self._never()
        if mark == "kills-once" and self._is_first():
            os.kill(os.getpid(), signal.SIGKILL)
        if mark == "holds":
            re.match(r"(a+)+$", "a" * 100 + "b")
        return Measurement(value=zlib.crc32(name.encode()) % 101 / 100)

    async def _never(self) -> Measurement:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    def _is_first(self) -> bool:
        """Whether no session has ended a process yet: two at once would each have a death of its own and the other's, and be poison."""
        try:
            os.close(os.open(Path(self.notes) / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def offer_plugin(folder: Path) -> None:
    """Make a folder that offers the scorer to every process that has it on its path."""
    about = folder / "traceweir_unsteady-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: traceweir-unsteady\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[traceweir.scorers]\n{METRIC} = {__name__}:Unsteady\n")

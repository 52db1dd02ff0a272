"""Defines a scorer whose behaviour depends on the session's id, and installs it as a plug-in in a folder."""

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
    """Returns a number that depends on the session's id only, unless the id ends with `~` and a mark of `ledger.py`.

    For `raises`, `returns-rubbish` and `is-no-number` the scorer fails in three ways. For `hangs` it never returns.
    For `kills-once` the first such session of a round ends its process at the first attempt. For `holds` the scorer
    blocks the interpreter without end.
    """

    level: ClassVar[Level] = "session"
    notes: str
    """Folder with a file for each process that the scorer has ended."""

    def score(self, subject: Subject) -> Any:
        """Acts as the session's id says."""
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
        """Whether no session has ended a process yet.

        If two concurrent sessions ended the process, each would count two deaths and would be treated as poison.
        """
        try:
            os.close(os.open(Path(self.notes) / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def offer_plugin(folder: Path) -> None:
    """Creates a folder that offers the scorer to every process with the folder on its path."""
    about = folder / "traceweir_unsteady-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: traceweir-unsteady\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[traceweir.scorers]\n{METRIC} = {__name__}:Unsteady\n")

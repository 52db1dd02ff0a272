"""Keeps the ids and rationales of scores in a temporary file, because only a few of them are shown in the end."""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import NamedTuple

import orjson

from traceweir.schemas.score import Score

MAX_RATIONALE_CHARS = 2_000
"""A rationale is kept up to this length."""


class Told(NamedTuple):
    """What a person reads of a score."""

    session_id: str
    segment: int
    subject_id: str
    """Id of the invocation or of the trace; empty for the session."""
    threshold: float | None
    rationale: str


class Texts:
    """A temporary file of texts, within a `with` block. Only this process can open the file; it ends with the block.

    A second reading of the input would need no file, but standard input cannot be read twice, and the retention of a
    topic can delete a score between the two.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="traceweir-")  # noqa: SIM115  # closed by __exit__
        self._end = 0

    def __enter__(self) -> Texts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def keep(self, score: Score) -> int:
        """Returns the place of the texts of a score.

        Raises:
            OSError: the file cannot be written.
        """
        rationale = score.rationale
        if len(rationale) > MAX_RATIONALE_CHARS:
            rationale = rationale[: MAX_RATIONALE_CHARS - 1] + "…"
        fields = (
            score.session_id,
            score.segment,
            score.invocation_id or score.trace_id or "",
            score.threshold,
            rationale,
        )
        line = orjson.dumps(fields) + b"\n"
        place = self._end
        self._end = self._end + len(line)
        self._file.write(line)
        return place

    def read(self, place: int) -> Told:
        """Returns the texts of a score; call it after the last `keep`.

        Raises:
            OSError: the file cannot be read.
        """
        self._file.seek(place)
        return Told(*orjson.loads(self._file.readline()))

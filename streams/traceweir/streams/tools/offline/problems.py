"""Defines a problem of an input, and collects any number of problems in the order of their documents."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from traceweir.streams.tools.offline.block_file import BlockFile
from traceweir.streams.tools.offline.sorted_runs import SortedRuns

KEPT = 10_000
"""Problems that are kept in memory."""


class Problem(NamedTuple):
    """A document that could not be used or scored, and the reason."""

    document: int
    """Number of the document in the input; for a session, the number of its first document."""
    detail: str
    """One sentence for a person."""
    reason: str | None = None
    """The reason of the dead letter that the worker would write; None if the document resulted in no record."""


class Problems:
    """Collects problems; those beyond `kept` are written to a file.

    Iteration yields them in the order of their documents, and the problems of one document in the order of arrival.
    """

    def __init__(self, file: BlockFile, kept: int = KEPT) -> None:
        self._file = file
        self._kept = kept
        self._runs = SortedRuns(Problem, key=attrgetter("document"))
        self._latest: list[Problem] = []
        self._count = 0

    def add(self, problem: Problem) -> None:
        """Adds a problem.

        Raises:
            TemporaryFileError: the file cannot be written.
        """
        self._count += 1
        self._latest.append(problem)
        if len(self._latest) >= self._kept:
            self._runs.add(self._latest, self._file)
            self._latest = []

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Problem]:
        self._runs.add(self._latest)
        self._latest = []
        return iter(self._runs)

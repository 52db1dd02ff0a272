"""Reads records of one kind from a file of JSON Lines; a line that is none costs itself, and is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from traceweir.schemas.base import explain
from traceweir.streams.cli.terminal import complain
from traceweir.streams.intake.formats.documents import InputError

MAX_PROBLEMS = 10
"""How many unusable lines of a file are named."""
LineRecord = TypeVar("LineRecord", bound=BaseModel)


class RecordLines(Generic[LineRecord]):
    """The records of a file, one after the other.

    Raises:
        InputError: the file cannot be read.
    """

    def __init__(self, path: Path, model: type[LineRecord]) -> None:
        self._path = path
        self._model = model
        self.bad = 0
        """How many lines are no record, of those that were read."""

    def __iter__(self) -> Iterator[LineRecord]:
        """Yields each record, and says what is wrong with the first unusable lines."""
        try:
            with self._path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if not line.strip():
                        continue
                    try:
                        record = self._model.model_validate_json(line)
                    except ValidationError as error:
                        self.bad += 1
                        if self.bad <= MAX_PROBLEMS:
                            complain(f"{self._path}: line {number}: {explain(error)}; the line is left out")
                    else:
                        yield record
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}; check the path") from None
        if self.bad > MAX_PROBLEMS:
            complain(f"{self._path}: {self.bad - MAX_PROBLEMS:,} more lines are left out")

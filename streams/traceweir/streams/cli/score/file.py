"""Writes the scores of `traceweir score` to a file, which appears when it is complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from traceweir.schemas.score import Score
from traceweir.streams.cli.score.output import Write
from traceweir.streams.cli.table_files import open_table
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.writing import whole_file
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.tools.results.table import ScoreRows, UnwritableScoreError


@contextmanager
def score_file(path: Path) -> Iterator[Write]:
    """Yields a function that writes the scores of a session to the file, in the format that its suffix shows.

    The scores are written beside the file, under a temporary name that begins with a dot, and take the file's place at
    the end of the `with` block; an exception deletes them and leaves the old file.

    Raises:
        InputError: the file cannot be written, it needs pyarrow, or a score does not fit a column.
    """
    try:
        with whole_file(path) as stream:
            try:
                if path.suffix == ".jsonl":
                    yield _errors_named(path, _lines(stream))
                else:
                    with open_table(stream, path) as table:
                        yield _errors_named(path, _rows(table))
            except OSError as error:
                # `whole_file` would take it for an error of the file.
                raise _OfTheBlock(error) from None
    except _OfTheBlock as passed:
        raise passed.error from None


class _OfTheBlock(Exception):  # noqa: N818  # an outcome that the caller handles
    """An error of the code that writes the scores, not of the file."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error


def _lines(stream: BinaryIO) -> Write:
    return lambda scores: stream.writelines([score + b"\n" for score in scores])


def _rows(table: ScoreRows) -> Write:
    row = 0

    def write(scores: Sequence[bytes]) -> None:
        nonlocal row
        for value in scores:
            score = Score.model_validate_json(value)
            table.add(FoundScore(int(score.evaluated_at.timestamp() * 1000), 0, row, score, value))
            row += 1

    return write


def _errors_named(path: Path, write: Write) -> Write:
    def named(scores: Sequence[bytes]) -> None:
        try:
            write(scores)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}). Name a file on a disk with space."
            ) from None
        except UnwritableScoreError as error:
            raise InputError(f"{path}: a score does not fit its column: {error}. Use a .jsonl file.") from None

    return named

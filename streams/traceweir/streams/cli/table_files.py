"""Opens the tables that commands write to files: CSV or Parquet, by the suffix of the name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.tools.results.table import ScoreRows, csv_table, parquet_table


def open_table(stream: BinaryIO, file: Path) -> AbstractContextManager[ScoreRows]:
    """Returns a table that writes to a stream, in the format that the name of the file shows.

    Raises:
        InputError: the file is no `.csv`, and pyarrow is not installed.
    """
    if file.suffix == ".csv":
        return csv_table(stream)
    try:
        import pyarrow as _  # noqa: F401
    except ImportError:
        raise InputError(
            f"{file}: Parquet files are written with pyarrow, which is not installed; "
            "run `pip install '.[tables]'` in a clone of Traceweir, or export a .csv file"
        ) from None
    return parquet_table(stream)

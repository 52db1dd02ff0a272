"""Opens input files and reads their records."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePath
from typing import BinaryIO

from traceweir.streams.formats.base import UNKNOWN_TIME, DocumentRecords, InputContext, InputFormat
from traceweir.streams.formats.documents import InputError, name_of, read_documents
from traceweir.streams.formats.tables import read_csv, read_parquet

TABLES = {".csv": read_csv, ".parquet": read_parquet}
"""The reader of a table, by the extension of the file name."""


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Opens the file of this name for reading bytes; `-` is standard input, which stays open afterwards.

    Raises:
        InputError: the file cannot be opened.
    """
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115  # closed below; this message is only for errors of `open`
    except OSError as error:
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}). Name a readable file, or - for standard input."
        ) from None
    with stream:
        yield stream


def base_time_of(stream: BinaryIO) -> datetime:
    """Returns the start time of an undated transcript in this input: the modification time of the file.

    A pipe has no modification time; its start time is 1970-01-01. The current time would be more accurate, but then an
    input that is sent twice would produce every trace twice, with two different contents.
    """
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return UNKNOWN_TIME
    return datetime.fromtimestamp(found.st_mtime, UTC) if stat.S_ISREG(found.st_mode) else UNKNOWN_TIME


def read_input(
    stream: BinaryIO, input_format: InputFormat, *, task_domain: str, max_session_bytes: int
) -> Iterator[DocumentRecords]:
    """Yields the records of each document of a file, or of each row of a table.

    Args:
        stream: The file. A name that ends in `.csv` or `.parquet` makes it a table.
        input_format: The format of the documents or rows.
        task_domain: Domain of a document without a domain of its own.
        max_session_bytes: The largest session that can be scored, in bytes of its records.

    Raises:
        InputError: the input cannot be read to its end, or the input is a table and the format has no tables.
    """
    source = name_of(stream)
    context = InputContext(source, base_time_of(stream), task_domain, max_session_bytes)
    read_table = TABLES.get(PurePath(source).suffix.lower())
    if read_table is None:
        return input_format.read(read_documents(stream), context)
    if input_format.read_rows is None:
        raise InputError(
            f"{source}: is a table, but the format {input_format.name} reads only JSON documents; "
            "choose another --format, or omit --format"
        )
    return input_format.read_rows(read_table(stream, input_format.columns), context)

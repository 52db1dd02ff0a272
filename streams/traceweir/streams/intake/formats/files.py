"""Opens input files and reads their records."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import PurePath
from typing import BinaryIO

from traceweir.schemas.times import UNKNOWN_TIME
from traceweir.schemas.trace import Visibility
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext, InputFormat
from traceweir.streams.intake.formats.csv_rows import csv_columns, read_csv
from traceweir.streams.intake.formats.documents import InputError, name_of, read_documents
from traceweir.streams.intake.formats.recognition import format_of_table, read_recognized
from traceweir.streams.intake.formats.typed_rows import parquet_columns, read_parquet
from traceweir.streams.intake.formats.unread_keys import UnreadKeys

TABLES = {".csv": (csv_columns, read_csv), ".parquet": (parquet_columns, read_parquet)}
"""The readers of a table's column names and of its rows, by the extension of the file name."""
_EARLIEST_S = datetime(2, 1, 1, tzinfo=UTC).timestamp()
_END_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""The range of modification times, in seconds since 1970, that leave room for the times of a whole transcript."""


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Opens the file of this name for reading bytes; `-` is standard input, which stays open afterwards.

    Raises:
        InputError: the file cannot be opened.
    """
    if path == "-":
        _refuse_endless_device(sys.stdin.buffer, "standard input")
        yield sys.stdin.buffer
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115  # closed below; this message is only for errors of `open`
    except OSError as error:
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}). Name a readable file, or - for standard input."
        ) from None
    with stream:
        _refuse_endless_device(stream, path)
        yield stream


def _refuse_endless_device(stream: BinaryIO, name: str) -> None:
    """Checks that a stream is not a device such as /dev/zero, which would fill the memory before its first line ends.

    Raises:
        InputError: the stream is a device other than a terminal and /dev/null.
    """
    try:
        found = os.fstat(stream.fileno())
        is_device = stat.S_ISBLK(found.st_mode) or (stat.S_ISCHR(found.st_mode) and not stream.isatty())
        is_refused = is_device and found.st_rdev != os.stat(os.devnull).st_rdev
    except OSError:
        # A stream without a file descriptor.
        return
    if is_refused:
        raise InputError(f"{name}: is a device, not a file. Name a readable file, or - for standard input.")


def base_time_of(stream: BinaryIO) -> datetime:
    """Returns the start time of an undated transcript in this input: the modification time of the file.

    A pipe has no modification time; its start time is 1970-01-01. A modification time after the year 9998, which Python
    cannot represent or whose transcript could end after the last representable time, counts as none. The current time
    would be more accurate, but then an input that is sent twice would produce every trace twice, with two different
    contents.
    """
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return UNKNOWN_TIME
    is_known = stat.S_ISREG(found.st_mode) and _EARLIEST_S <= found.st_mtime < _END_S
    return datetime.fromtimestamp(found.st_mtime, UTC) if is_known else UNKNOWN_TIME


@contextmanager
def open_inputs(paths: Sequence[str]) -> Iterator[list[BinaryIO]]:
    """Opens several files as `open_input` opens one.

    Raises:
        InputError: a file cannot be opened.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(open_input(path)) for path in paths]


def read_inputs(
    streams: Sequence[BinaryIO],
    input_format: InputFormat,
    *,
    task_domain: str,
    max_session_bytes: int,
    visibility: Visibility,
    unread_keys: UnreadKeys | None = None,
) -> Iterator[DocumentRecords]:
    """Yields the records of the files of one input; only a format that reads whole files can read several.

    Args:
        streams: The files, at least one.
        input_format: The format of the files.
        task_domain: Domain of a document without a domain of its own.
        max_session_bytes: The largest session that can be scored, in bytes of its records.
        visibility: Visibility of traces that are made from spans.
        unread_keys: Receives the keys that the format does not read.

    Raises:
        InputError: a file cannot be read to its end, or the format reads only one file.
    """
    first, *others = streams
    if input_format.read_streams is not None:
        noted = UnreadKeys() if unread_keys is None else unread_keys
        context = InputContext(name_of(first), base_time_of(first), task_domain, max_session_bytes, visibility, noted)
        return input_format.read_streams(streams, context)
    if others:
        raise InputError(
            f"{name_of(others[0])}: the format {input_format.name} reads one file at a time, and this is a second one; "
            "run the command for each file, or put the documents into one file"
        )
    return read_input(
        first,
        input_format,
        task_domain=task_domain,
        max_session_bytes=max_session_bytes,
        unread_keys=unread_keys,
    )


def read_input(
    stream: BinaryIO,
    input_format: InputFormat,
    *,
    task_domain: str,
    max_session_bytes: int,
    unread_keys: UnreadKeys | None = None,
) -> Iterator[DocumentRecords]:
    """Yields the records of each document of a file, or of each row of a table.

    Args:
        stream: The file. A name that ends in `.csv` or `.parquet` makes it a table.
        input_format: The format of the documents or rows.
        task_domain: Domain of a document without a domain of its own.
        max_session_bytes: The largest session that can be scored, in bytes of its records.
        unread_keys: Receives the keys that the format does not read.

    Raises:
        InputError: the input cannot be read to its end, or the input is a table and the format has no tables, or the
            columns of a table fit two formats.
    """
    source = name_of(stream)
    noted = UnreadKeys() if unread_keys is None else unread_keys
    context = InputContext(source, base_time_of(stream), task_domain, max_session_bytes, unread_keys=noted)
    table = TABLES.get(PurePath(source).suffix.lower())
    if table is None:
        return read_recognized(input_format, read_documents(stream), context)
    if input_format.read_rows is None:
        raise InputError(
            f"{source}: is a table, but the format {input_format.name} reads only JSON documents; "
            "choose another --format, or omit --format"
        )
    columns_of, read_table = table
    found = format_of_table(input_format, columns_of(stream), source)
    assert found.read_rows is not None  # noqa: S101  # `format_of_table` returns formats with tables
    return found.read_rows(read_table(stream, found.columns), context)

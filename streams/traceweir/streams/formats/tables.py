"""Rows from tables: CSV and Parquet files, and pandas' DataFrames."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.documents import Document, InputError, name_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Array, RecordBatch

ReadCell = Callable[[str], JsonValue]
"""What a cell of a CSV file says, from its text. It raises ValueError, with the rule, for a text that says nothing."""

MAX_CELL = 64_000_000
"""Characters of the longest cell of a CSV file; a trace is long."""
AS_JSON = "write lists and objects as JSON (`json.dumps`) before `to_csv`, or write Parquet or JSON Lines"
"""The way out of a list or an object in CSV that is no JSON."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Row(NamedTuple):
    """A row of a table, not looked into yet."""

    number: int
    """From 1, the header not counted."""
    columns: JsonObject
    """Those that are read and not empty."""
    problem: str | None = None
    """Why it cannot be used, which begins with the column, if it is one column's fault."""


def row_of(document: Document) -> Row:
    """The row that a document is: an object with the columns in it. Anything else is a row with its problem."""
    try:
        found: JsonValue = orjson.loads(document.raw)
    except orjson.JSONDecodeError as error:
        return Row(document.number, {}, f"is not JSON ({error})")
    if not isinstance(found, dict):
        return Row(document.number, {}, "is no object; a row is one, with its columns in it")
    return Row(document.number, found)


def text(cell: str) -> JsonValue:
    """The text as it stands."""
    return cell


def number(cell: str) -> JsonValue:
    """The number that the text is; a text that is none stays a text.

    >>> number("51"), number("0.5"), number("soon")
    (51, 0.5, 'soon')
    """
    try:
        found = float(cell)
    except ValueError:
        return cell
    return (int(found) if found.is_integer() else found) if math.isfinite(found) else cell


def json_or_text(cell: str) -> JsonValue:
    """The list, the object or the null that the text begins like; any other text stays a text.

    >>> json_or_text('["a", "b"]'), json_or_text("a")
    (['a', 'b'], 'a')
    """
    if not cell.lstrip().startswith(("[", "{", "null")):
        return cell
    try:
        found: JsonValue = orjson.loads(cell)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error}); {AS_JSON}") from None
    return found


def read_csv(stream: BinaryIO, columns: Mapping[str, ReadCell]) -> Iterator[Row]:
    """The rows of a CSV file in UTF-8 with a header, in order. A row that cannot be read is handed on with its problem.

    An empty cell is none. Where a quote is missing, the lines up to the next
    quote are one row, and its problem says which: to begin anew within it would score text out of an answer as a row.

    Args:
        stream: The file.
        columns: The columns that are read, and what reads a cell of each; whatever is in another column is ignored.

    Raises:
        InputError: the file has no header that could be used.
    """
    head = stream.peek(2)[:2] if isinstance(stream, io.BufferedReader) else b""
    if head in _UTF16:
        raise InputError(f"{name_of(stream)}: is UTF-16; save it as UTF-8")
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    former = csv.field_size_limit(MAX_CELL)
    try:
        reader = csv.reader(lines, strict=True)
        header = _header(reader, columns, name_of(stream))
        count, behind = 0, reader.line_num
        while (cells := _next(reader)) is not None:
            first, behind = behind + 1, reader.line_num
            if cells == []:
                continue
            count += 1
            yield (
                _no_csv(count, cells, first, behind)
                if isinstance(cells, csv.Error)
                else _csv_row(count, header, columns, cells)
            )
    finally:
        csv.field_size_limit(former)
        lines.detach()


def read_parquet(stream: BinaryIO, names: Collection[str]) -> Iterator[Row]:
    """The rows of a Parquet file, in order. A row with a cell that Python cannot have is handed on with its problem.

    Args:
        stream: The file.
        names: The columns that are read; the others are not even decoded.

    Raises:
        InputError: it is no Parquet file, two columns that are read have one name, or pyarrow is not installed.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(
            f"{name_of(stream)}: Parquet files are read with pyarrow, which is not installed; "
            "run `pip install '.[tables]'` in a clone of Traceweir"
        ) from None
    count = 0
    try:
        file = ParquetFile(stream)
        read = _read(file.schema_arrow.names, names, name_of(stream))
        for batch in file.iter_batches(batch_size=500, columns=read):
            for cells in _cells(batch, read):
                count += 1
                yield _typed_row(count, read, cells)
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        where = f"cannot be read behind row {count}" if count else "cannot be read as Parquet"
        raise InputError(f"{name_of(stream)}: {where} ({error})") from None


def rows_of(frame: DataFrame, names: Collection[str], source: str) -> Iterator[Row]:
    """The rows of a DataFrame, in order, numbered from 1 whatever its index is.

    Args:
        frame: The rows.
        names: The columns that are read; whatever is in another is ignored.
        source: What to call the frame in a message.

    Raises:
        InputError: two columns that are read have one name.
    """
    found = [str(name) for name in frame.columns]
    read = _read(found, names, source)
    # The index comes along: without a column pandas 2 would give no rows.
    cells = frame.iloc[:, [found.index(name) for name in read]].itertuples(index=True, name=None)
    for at, (_, *row) in enumerate(cells, start=1):
        yield _typed_row(at, read, row)


def _read(found: Sequence[str], names: Collection[str], source: str) -> list[str]:
    """Those of a table's columns that are read, each of which must be there once."""
    read = [name for name in found if name in names]
    twice = next((name for name in read if read.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{source}: names column {twice!r} twice; rename or drop one of them")
    return read


def _cells(batch: RecordBatch, read: Sequence[str]) -> Iterator[Sequence[Any]]:
    """The cells of each row; those of a column that cannot be converted as a whole are still Arrow's."""
    columns = [_converted(batch.column(name)) for name in read]
    return (tuple(column[at] for column in columns) for at in range(batch.num_rows))


def _converted(column: Array) -> Sequence[Any]:
    try:
        return list(column.to_pylist())
    except Exception:  # noqa: BLE001  # pytz's, Python's and Arrow's own; each cell is tried by itself
        return list(column)


def _next(reader: Iterator[list[str]]) -> list[str] | csv.Error | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        return error


def _header(reader: Iterator[list[str]], names: Collection[str], source: str) -> list[str]:
    cells = _next(reader)
    if not isinstance(cells, list):
        raise InputError(f"{source}: has no header; the first line of a CSV file names its columns")
    header = [name.strip() for name in cells]
    _read(header, names, source)
    return header


def _no_csv(at: int, error: csv.Error, first: int, last: int) -> Row:
    swallowed = (
        f"; lines {first} to {last} were read as this one row, and nothing in them is scored" if last > first else ""
    )
    return Row(at, {}, f"is no CSV ({error}){swallowed}; is a quote missing, or not doubled inside of a cell?")


def _csv_row(at: int, header: list[str], columns: Mapping[str, ReadCell], cells: list[str]) -> Row:
    if len(cells) != len(header):
        return Row(at, {}, f"has {len(cells)} cells, and the header names {len(header)} columns")
    found: JsonObject = {}
    for name, cell in zip(header, cells, strict=True):
        if cell == "" or name not in columns:
            continue
        try:
            found[name] = columns[name](_decoded(cell))
        except ValueError as error:
            return Row(at, found, f"column {name!r}: {error}")
    return Row(at, found)


def _decoded(cell: str) -> str:
    broken = next((at for at, character in enumerate(cell) if "\udc80" <= character <= "\udcff"), None)
    if broken is not None:
        byte = ord(cell[broken]) - 0xDC00
        raise ValueError(f"is not UTF-8 (byte 0x{byte:02x} after {broken} characters); save the file as UTF-8")
    return cell


class _NotJson(Exception):  # noqa: N818  # an outcome that the caller handles
    """A value that JSON does not have, and the rule."""


def _typed_row(at: int, names: Iterable[str], cells: Iterable[Any]) -> Row:
    columns: JsonObject = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            value = _plain(cell.as_py() if hasattr(cell, "as_py") else cell)
        except RecursionError:
            return Row(at, columns, f"column {name!r}: is nested too deep")
        except _NotJson as error:
            return Row(at, columns, f"column {name!r}: {error}")
        except Exception as error:  # noqa: BLE001  # whatever the value's own class raises
            return Row(at, columns, f"column {name!r}: cannot be read ({type(error).__name__}: {str(error)[:200]})")
        if value is not None:
            columns[name] = value
    return Row(at, columns)


def _plain(value: Any) -> JsonValue:
    """A cell as JSON has it. Of an object the empty fields are left out: a table gives every object all fields that any of them has."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        fields = {str(name): _plain(field) for name, field in value.items()}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime | date):
        # pandas' NaT is a datetime that is not equal to itself.
        return value.isoformat() if value == value else None
    if isinstance(value, Decimal):
        return _plain(float(value))
    return _foreign(value)


def _foreign(value: Any) -> JsonValue:
    """What numpy, pandas and MLflow have of their own."""
    if callable(to_json := getattr(value, "to_json", None)):  # mlflow.entities.Trace
        written = to_json()
        return written if isinstance(written, str) else None
    if callable(tolist := getattr(value, "tolist", None)):  # numpy's arrays and scalars
        return _plain(tolist())
    if type(value).__name__ == "NAType":
        return None
    raise _NotJson(f"holds a value of type {type(value).__name__}, which JSON does not have")

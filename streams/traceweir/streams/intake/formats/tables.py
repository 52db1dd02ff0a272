"""Reads rows from tables: CSV files, Parquet files and pandas DataFrames."""

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
from traceweir.streams.base.json_values import read_json
from traceweir.streams.intake.formats.documents import Document, InputError, name_of, unreadable

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Array, RecordBatch

ReadCell = Callable[[str], JsonValue]
"""Parses the text of a CSV cell. Raises ValueError, with the rule as its message, for a text that breaks the rule."""

MAX_CELL_CHARACTERS = 64_000_000
"""Length of the longest cell of a CSV file, in characters. Python's default of 131,072 is too short for a trace."""
AS_JSON = "write lists and objects as JSON (`json.dumps`) before `to_csv`, or write Parquet or JSON Lines"
"""The way out when a CSV cell contains a list or an object that is not JSON."""
_UTF16_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Row(NamedTuple):
    """A row of a table, not validated yet."""

    number: int
    """The position, from 1; the header is not counted."""
    columns: JsonObject
    """The values of the columns that are read, without empty values."""
    problem: str | None = None
    """The reason why the row cannot be used; it begins with the column if a single column is the reason."""
    notes: str = ""
    """What had to be replaced in the row, which can be used; empty if nothing."""
    other_columns: tuple[str, ...] = ()
    """The columns of a table that are not read, and that can have content in the row."""


def row_of(document: Document) -> Row:
    """Returns a JSON object as a row with its keys as columns; any other document becomes a row with a problem."""
    try:
        found = read_json(document.raw)
    except ValueError as error:
        return Row(document.number, {}, f"is not JSON ({error})")
    if not isinstance(found.value, dict):
        return Row(document.number, {}, "is not a JSON object; write a row as an object with its columns as keys")
    return Row(document.number, found.value, notes="; ".join(found.notes))


def text(cell: str) -> JsonValue:
    """Returns the text unchanged."""
    return cell


def number(cell: str) -> JsonValue:
    """Returns the number that the text represents; any other text is returned unchanged.

    >>> number("51"), number("0.5"), number("soon")
    (51, 0.5, 'soon')
    """
    try:
        found = float(cell)
    except ValueError:
        return cell
    return (int(found) if found.is_integer() else found) if math.isfinite(found) else cell


def json_or_text(cell: str) -> JsonValue:
    """Returns the list, object or null that the text contains as JSON; any other text is returned unchanged.

    Raises:
        ValueError: the text begins like a list, an object or null, but is not JSON.

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


def csv_columns(stream: BinaryIO) -> list[str]:
    """Returns the names in the header of a CSV file, without reading on in the stream; `read_csv` checks the header.

    Names that are not in the buffer of the stream (8 kB by default) are left out.
    """
    try:
        head = stream.peek() if isinstance(stream, io.BufferedReader) else b""
        cells = next(csv.reader(head.decode("utf-8-sig", "replace").splitlines()[:1]), [])
    except (OSError, csv.Error):
        # `read_csv` reports the reason.
        return []
    return [name.strip() for name in cells]


def parquet_columns(stream: BinaryIO) -> list[str]:
    """Returns the names of a Parquet file's columns; none if the file cannot be read: `read_parquet` says why."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return []
    try:
        return list(ParquetFile(stream).schema_arrow.names)
    except (ArrowException, OSError, UnicodeDecodeError):
        return []


def read_csv(stream: BinaryIO, columns: Mapping[str, ReadCell]) -> Iterator[Row]:
    """Yields the rows of a CSV file in UTF-8 with a header, in order. A row that cannot be read has a problem.

    An empty cell counts as absent. Where a quote is missing, the lines up to the next quote are one row, and its
    problem names these lines. Reading does not restart within these lines, because then a part of an answer could be
    scored as a row.

    Args:
        stream: The file.
        columns: The columns that are read, each with the parser of its cells; other columns are ignored.

    Raises:
        InputError: the file cannot be read, it is UTF-16, it has no header, or two columns that are read have the same
            name.
    """
    try:
        head = stream.peek(2)[:2] if isinstance(stream, io.BufferedReader) else b""
    except OSError as error:
        raise unreadable(name_of(stream), error) from None
    if head in _UTF16_BYTE_ORDER_MARKS:
        raise InputError(f"{name_of(stream)}: is UTF-16; save it as UTF-8")
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    limit_before = csv.field_size_limit(MAX_CELL_CHARACTERS)
    try:
        reader = csv.reader(lines, strict=True)
        header = _header(reader, columns, name_of(stream))
        row_number = 0
        last_line = reader.line_num
        while (cells := _next_cells(reader)) is not None:
            first_line = last_line + 1
            last_line = reader.line_num
            if cells == []:
                continue
            row_number += 1
            yield (
                _malformed_row(row_number, cells, first_line, last_line)
                if isinstance(cells, csv.Error)
                else _csv_row(row_number, header, columns, cells)
            )
    except OSError as error:
        raise unreadable(name_of(stream), error) from None
    finally:
        csv.field_size_limit(limit_before)
        lines.detach()


def read_parquet(stream: BinaryIO, names: Collection[str]) -> Iterator[Row]:
    """Yields the rows of a Parquet file, in order. A row with a cell that Python cannot represent has a problem.

    Args:
        stream: The file.
        names: The columns that are read; other columns are not decoded.

    Raises:
        InputError: the file is not Parquet or is damaged, two columns that are read have the same name, or pyarrow is
            not installed.
    """
    try:
        from pyarrow import ArrowException, types
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(
            f"{name_of(stream)}: Parquet files are read with pyarrow, which is not installed; "
            "run `pip install '.[tables]'` in a clone of Traceweir"
        ) from None
    row_number = 0
    try:
        file = ParquetFile(stream)
        schema = file.schema_arrow
        selected = _selected_columns(schema.names, names, name_of(stream))
        others = tuple(
            each.name
            for each in schema
            if each.name not in names and (types.is_nested(each.type) or types.is_string(each.type))
        )
        for batch in file.iter_batches(batch_size=500, columns=selected):
            for cells in _cells(batch, selected):
                row_number += 1
                yield _typed_row(row_number, selected, cells)._replace(other_columns=others)
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        where = f"cannot be read after row {row_number}" if row_number else "cannot be read as Parquet"
        raise InputError(f"{name_of(stream)}: {where} ({error})") from None


def rows_of(frame: DataFrame, names: Collection[str], source: str) -> Iterator[Row]:
    """Yields the rows of a DataFrame, in order, numbered from 1; the index of the DataFrame is not used.

    Args:
        frame: The rows.
        names: The columns that are read; other columns are ignored.
        source: The name of the frame in messages.

    Raises:
        InputError: two columns that are read have the same name.
    """
    present = [str(name) for name in frame.columns]
    selected = _selected_columns(present, names, source)
    others = tuple(
        name for name, kind in zip(present, frame.dtypes, strict=True) if name not in names and kind.kind in "OUT"
    )
    # The index is included, because pandas 2 yields no tuples for a frame without columns.
    cells = frame.iloc[:, [present.index(name) for name in selected]].itertuples(index=True, name=None)
    for row_number, (_, *row) in enumerate(cells, start=1):
        yield _typed_row(row_number, selected, row)._replace(other_columns=others)


def _selected_columns(present: Sequence[str], names: Collection[str], source: str) -> list[str]:
    """Returns the columns of a table that are read.

    Raises:
        InputError: two of these columns have the same name.
    """
    selected = [name for name in present if name in names]
    duplicate = next((name for name in selected if selected.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"{source}: has more than one column {duplicate!r}; rename or drop all but one of them")
    return selected


def _cells(batch: RecordBatch, selected: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yields the cells of each row; the cells of a column that cannot be converted as a whole are Arrow scalars."""
    columns = [_converted(batch.column(name)) for name in selected]
    return (tuple(column[index] for column in columns) for index in range(batch.num_rows))


def _converted(column: Array) -> Sequence[Any]:
    try:
        return list(column.to_pylist())
    except Exception:  # noqa: BLE001  # errors of pytz, Python and Arrow; `_typed_row` then converts each cell alone
        return list(column)


def _next_cells(reader: Iterator[list[str]]) -> list[str] | csv.Error | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        return error


def _header(reader: Iterator[list[str]], names: Collection[str], source: str) -> list[str]:
    cells = _next_cells(reader)
    if not isinstance(cells, list):
        raise InputError(f"{source}: has no header; the first line of a CSV file must name its columns")
    header = [name.strip() for name in cells]
    _selected_columns(header, names, source)
    return header


def _malformed_row(row_number: int, error: csv.Error, first_line: int, last_line: int) -> Row:
    lines = (
        f"; lines {first_line} to {last_line} were read as one row, and nothing in these lines is scored"
        if last_line > first_line
        else ""
    )
    fix = "check whether a quote is missing, or is not doubled inside a cell"
    return Row(row_number, {}, f"is not valid CSV ({error}){lines}; {fix}")


def _csv_row(row_number: int, header: list[str], columns: Mapping[str, ReadCell], cells: list[str]) -> Row:
    if len(cells) != len(header):
        return Row(row_number, {}, f"has {len(cells)} cells, but the header names {len(header)} columns")
    values: JsonObject = {}
    others: list[str] = []
    for name, cell in zip(header, cells, strict=True):
        if cell == "":
            continue
        if name not in columns:
            if isinstance(number(cell), str):
                others.append(name)
            continue
        try:
            values[name] = columns[name](_decoded(cell))
        except ValueError as error:
            return Row(row_number, values, f"column {name!r}: {error}")
    return Row(row_number, values, other_columns=tuple(others))


def _decoded(cell: str) -> str:
    # `surrogateescape` decodes an invalid byte as U+DC00 plus the byte.
    invalid = next((index for index, character in enumerate(cell) if "\udc80" <= character <= "\udcff"), None)
    if invalid is not None:
        byte = ord(cell[invalid]) - 0xDC00
        raise ValueError(f"is not UTF-8 (byte 0x{byte:02x} after {invalid} characters); save the file as UTF-8")
    return cell


class _NotJson(Exception):  # noqa: N818  # an outcome that the caller handles
    """JSON cannot represent a value; the message is the rule."""


def _typed_row(row_number: int, names: Iterable[str], cells: Iterable[Any]) -> Row:
    columns: JsonObject = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            value = _json_value(cell.as_py() if hasattr(cell, "as_py") else cell)
        except RecursionError:
            return Row(row_number, columns, f"column {name!r}: is nested too deeply to be read")
        except _NotJson as error:
            return Row(row_number, columns, f"column {name!r}: {error}")
        except Exception as error:  # noqa: BLE001  # the class of the value can raise anything
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            return Row(row_number, columns, f"column {name!r}: cannot be read ({reason})")
        if value is not None:
            columns[name] = value
    return Row(row_number, columns)


def _json_value(value: Any) -> JsonValue:
    """Returns a cell as a JSON value.

    Empty fields of an object are omitted, because a table adds to every object all fields that any object has.
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        fields = {str(name): _json_value(field) for name, field in value.items()}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, datetime | date):
        # NaT of pandas is a datetime that is not equal to itself.
        return value.isoformat() if value == value else None
    if isinstance(value, Decimal):
        return _json_value(float(value))
    return _json_value_of_library_type(value)


def _json_value_of_library_type(value: Any) -> JsonValue:
    """Returns a value of a type of numpy, pandas or MLflow as a JSON value."""
    # mlflow.entities.Trace.
    if callable(to_json := getattr(value, "to_json", None)):
        written = to_json()
        return written if isinstance(written, str) else None
    # numpy's arrays and scalars.
    if callable(tolist := getattr(value, "tolist", None)):
        return _json_value(tolist())
    if type(value).__name__ == "NAType":
        return None
    raise _NotJson(
        f"contains a value of type {type(value).__name__}, which JSON cannot represent; convert it to a type of JSON"
    )

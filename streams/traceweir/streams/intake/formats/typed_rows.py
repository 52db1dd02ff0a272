"""Reads rows from tables whose cells have types: Parquet files and pandas DataFrames."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.documents import InputError, name_of
from traceweir.streams.intake.formats.tables import Row, selected_columns

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Array, RecordBatch


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
        selected = selected_columns(schema.names, names, name_of(stream))
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
    selected = selected_columns(present, names, source)
    others = tuple(
        name for name, kind in zip(present, frame.dtypes, strict=True) if name not in names and kind.kind in "OUT"
    )
    # The index is included, because pandas 2 yields no tuples for a frame without columns.
    cells = frame.iloc[:, [present.index(name) for name in selected]].itertuples(index=True, name=None)
    for row_number, (_, *row) in enumerate(cells, start=1):
        yield _typed_row(row_number, selected, row)._replace(other_columns=others)


def _cells(batch: RecordBatch, selected: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yields the cells of each row; the cells of a column that cannot be converted as a whole are Arrow scalars."""
    columns = [_converted(batch.column(name)) for name in selected]
    return (tuple(column[index] for column in columns) for index in range(batch.num_rows))


def _converted(column: Array) -> Sequence[Any]:
    try:
        return list(column.to_pylist())
    except Exception:  # noqa: BLE001  # errors of pytz, Python and Arrow; `_typed_row` then converts each cell alone
        return list(column)


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

"""Reads rows from CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from typing import BinaryIO

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.documents import InputError, name_of, unreadable
from traceweir.streams.intake.formats.tables import ReadCell, Row, number, selected_columns

MAX_CELL_CHARACTERS = 64_000_000
"""Length of the longest cell of a CSV file, in characters. Python's default of 131,072 is too short for a trace."""
_UTF16_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


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
    selected_columns(header, names, source)
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

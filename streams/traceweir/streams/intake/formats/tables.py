"""Defines the rows of a table, and parses the text of their cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.base.json_values import read_json
from traceweir.streams.intake.formats.documents import Document, InputError

ReadCell = Callable[[str], JsonValue]
"""Parses the text of a CSV cell. Raises ValueError, with the rule as its message, for a text that breaks the rule."""

AS_JSON = "write lists and objects as JSON (`json.dumps`) before `to_csv`, or write Parquet or JSON Lines"
"""The way out when a CSV cell contains a list or an object that is not JSON."""


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


def selected_columns(present: Sequence[str], names: Collection[str], source: str) -> list[str]:
    """Returns the columns of a table that are read.

    Raises:
        InputError: two of these columns have the same name.
    """
    selected = [name for name in present if name in names]
    duplicate = next((name for name in selected if selected.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"{source}: has more than one column {duplicate!r}; rename or drop all but one of them")
    return selected

"""Reads the question and the answer in a cell of CSV, and finds Python's text of an object in place of one."""

from __future__ import annotations

import re

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.tables import AS_JSON
from traceweir.streams.intake.formats.written_objects import is_printed_object, parts_in

_IN_PYTHON = re.compile(r"\s*(?:\{|\[\s*\{)'(?:messages|query|history|choices|role|content|output|candidates)': ")
"""An object, or a list of objects, as Python prints it, with a key of a request or of an answer first."""


def request(cell: str) -> JsonValue:
    """Returns the request in a cell: an object with `messages` or `query`, or a list of messages; otherwise the text."""
    return _decoded(cell, {"messages", "query"})


def response(cell: str) -> JsonValue:
    """Returns the answer in a cell: an object of a model's API, or a list of messages; otherwise the text."""
    return _decoded(cell, {"choices", "messages", "candidates", "output"})


def with_parts_read(columns: JsonObject) -> JsonObject:
    """Returns the columns of a row with the parts of a question or an answer that somebody has written as a text.

    >>> with_parts_read({"response": "[{'type': 'text', 'text': 'Hi'}]"}), with_parts_read({"response": "[1]"})
    ({'response': [{'type': 'text', 'text': 'Hi'}]}, {'response': '[1]'})
    """
    found: JsonObject = {}
    for name in ("request", "response", "outputs"):
        value = columns.get(name)
        parts = parts_in(value, is_of_user=name == "request") if isinstance(value, str) else None
        if parts is not None:
            found[name] = parts if name != "request" else {"messages": [{"role": "user", "content": parts}]}
    return {**columns, **found} if found else columns


def object_in_place_of_text(columns: JsonObject) -> str:
    """Returns which of the texts of a row is an object as Python prints it, and what to do; empty if none is.

    >>> object_in_place_of_text({"response": "ChatCompletion(id='c', choices=[Choice(index=0)])"})
    "column 'response': is Python's text of an object, and not the answer; write the text that is in it"
    >>> object_in_place_of_text({"response": "Point(x=1)"})
    ''
    """
    for name in ("request", "response", "outputs"):
        value = columns.get(name)
        if not isinstance(value, str):
            continue
        if _IN_PYTHON.match(value):
            kind = "a list" if value.lstrip().startswith("[") else "an object"
            return f"column {name!r}: is {kind} in Python's notation, not JSON; {AS_JSON}"
        if name != "request" and is_printed_object(value):
            return f"column {name!r}: is Python's text of an object, and not the answer; write the text that is in it"
    return ""


def _decoded(cell: str, keys: set[str]) -> JsonValue:
    if not cell.lstrip().startswith(("{", "[")):
        return cell
    try:
        found: JsonValue = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell
    if isinstance(found, dict):
        return found if found.keys() & keys else cell
    are_messages = isinstance(found, list) and all(isinstance(each, dict) and "role" in each for each in found)
    return found if found and are_messages else cell

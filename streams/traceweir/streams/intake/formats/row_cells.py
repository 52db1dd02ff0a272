"""Reads the question and the answer in a cell of CSV, and finds Python's text of an object in place of one."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.row_texts import read_request, read_response
from traceweir.streams.intake.formats.tables import AS_JSON
from traceweir.streams.intake.formats.written_objects import parts_in
from traceweir.streams.intake.spans.printed_objects import printed_in_place_of

_QUESTIONS = ("request", "inputs")
_USERS = ("user", "human")


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
    for name in (*_QUESTIONS, "response", "outputs"):
        value = columns.get(name)
        part = "question" if name in _QUESTIONS else "answer"
        for text in () if value is None else _texts(part, value):
            if kind := printed_in_place_of(part, text, or_code=text is value):
                way_out = AS_JSON if kind.endswith("JSON") else "write the text that is in it"
                return f"column {name!r}: is {kind}; {way_out}"
    return ""


def _texts(part: str, value: JsonValue) -> Iterator[str]:
    """Yields the text that is read as a question or an answer, and the newest one of a user's if several are read."""
    read = read_request(value) if part == "question" else read_response(value)
    yield from [read.text] if read.text is not None else []
    messages = value.get("messages") if isinstance(value, dict) else value
    if part == "question" and isinstance(messages, list):
        of_user = [each.get("content") for each in messages if isinstance(each, dict) and each.get("role") in _USERS]
        yield from (newest for newest in of_user[-1:] if isinstance(newest, str))


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

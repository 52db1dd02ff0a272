"""Parses JSON, and finds and removes the comments and trailing commas that people add to JSON files."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.streams.intake.formats.documents import InputError

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a file that is read as one document. Parsing takes about twenty times the file's size in memory."""
_NAMED = 5
TOO_DEEP = ": is nested too deeply to be read."
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|//[^\n]*|/\*|,|[^\s"#/,]')
_BOM = "\ufeff"


class Slip(NamedTuple):
    """A comment or trailing comma: JSON does not allow it, and its removal loses no data."""

    begin: int
    end: int
    what: str


def decoded(raw: bytes, name: str) -> str:
    """Decodes the content of a file.

    Raises:
        InputError: the content is not UTF-8.
    """
    try:
        return raw.decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise InputError(f"{name}, line {line}, byte {column}: is not UTF-8. Save the file as UTF-8.") from None


def parsed(text: str, name: str) -> JsonValue:
    """Parses a JSON text.

    Raises:
        InputError: the text is no JSON; the message shows each place and its fix.
    """
    try:
        document: JsonValue = json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise InputError(f"{name}{TOO_DEEP}") from None
    except json.JSONDecodeError as error:
        raise InputError(_explained(text, name, error)) from None
    except _NotFiniteError as error:
        raise InputError(f"{name}: {error}; write null, or remove the key.") from None
    except ValueError:
        # Python's limit, which keeps the conversion of digits from taking quadratic time.
        raise InputError(f"{name}: {too_many_digits()}") from None
    return document


def too_many_digits() -> str:
    """Returns the problem of a document whose integer exceeds Python's limit, and its fix."""
    return f"has an integer of more than {sys.get_int_max_str_digits()} digits; write a shorter number, or a string."


def rendered(document: JsonValue, name: str) -> str:
    """Returns the JSON text of a document.

    Raises:
        InputError: the document is nested too deeply to be written, which can happen although it could be read.
    """
    try:
        return json.dumps(document)
    except RecursionError:
        raise InputError(f"{name}{TOO_DEEP}") from None


def slips(text: str) -> list[Slip]:
    """Returns the comments (`#`, `//`, `/* */`) and trailing commas outside strings, in order.

    >>> [slip.what for slip in slips('{"a": "#", # one\\n}')]
    ['a comma before }', 'a comment']
    """
    found: list[Slip] = []
    comma: int | None = None
    at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        first = token[0][0]
        if token[0] == "/*":
            end = text.find("*/", at)
            at = len(text) if end < 0 else end + 2
            found.append(Slip(token.start(), at, "a comment"))
        elif first == "#" or token[0].startswith("//"):
            found.append(Slip(token.start(), at, "a comment"))
        else:
            if comma is not None and first in "}]":
                found.append(Slip(comma, comma + 1, f"a comma before {first}"))
            comma = token.start() if first == "," else None
    return sorted(found)


def without_slips(text: str) -> str:
    """Returns the text without comments and trailing commas; line numbers do not change."""
    kept = []
    at = 0
    for slip in slips(text):
        kept += [text[at : slip.begin], "\n" * text.count("\n", slip.begin, slip.end)]
        at = slip.end
    return "".join([*kept, text[at:]])


def _explained(text: str, name: str, error: json.JSONDecodeError) -> str:
    found = slips(text)
    try:
        json.loads(without_slips(text))
    except (ValueError, RecursionError):
        is_fixable = False
    else:
        is_fixable = bool(found)
    if not is_fixable:
        before = [slip for slip in found if slip.begin <= error.pos][-1:]
        what = f" ({before[0].what} is at {_place(text, before[0].begin)}; JSON does not allow it)" if before else ""
        return f"{name}, {_place(text, error.pos)}: is not JSON ({error.msg}){what}. Correct the file at this place."
    places = [
        f"{name}, {_place(text, slip.begin)}: {slip.what}; JSON does not allow it, remove it" for slip in found[:_NAMED]
    ]
    if len(found) > _NAMED:
        places.append(f"and {len(found) - _NAMED} more")
    file = shlex.quote(name)
    return "\n".join([*places, f"`traceweir migrate {file} --out {file}` removes all of them."])


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


class _NotFiniteError(ValueError):
    """A number is not finite, so that JSON cannot represent it; the message names the number."""


def _refused(constant: str) -> None:
    raise _NotFiniteError(f"{constant} is not valid JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise _NotFiniteError(f"{number[:40]} is beyond the range of a double")
    return value

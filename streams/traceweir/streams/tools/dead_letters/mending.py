"""Writes dead letters as lines that a person can edit, and reads the edited lines."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.documents import Document, InputError
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter, LetterId

_VALUE_KEYS = ("value", "text", "base64")
_FORM = 'write {"id": "2:17", "value": {...}}, with `text` or `base64` in place of `value` for a value that is not JSON'


@dataclass(frozen=True, slots=True)
class Mended:
    """The lines of an edited file."""

    values: dict[LetterId, bytes] = field(default_factory=dict)
    """The new value of each dead letter."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each line that cannot be used."""


def export_line(found: FoundDeadLetter) -> str:
    """Returns a dead letter as a line of JSON: what it is, and its value.

    The value is `value` if it is JSON, with its numbers as written; else `text` if it is UTF-8; else `base64`. Characters
    that cannot be printed are escaped, so that the line cannot move the cursor of a terminal.
    """
    letter = found.letter
    about: JsonObject = {
        "id": str(found.id),
        "reason": letter.reason,
        "detail": letter.detail,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "key": None if letter.key is None else letter.key.decode(errors="backslashreplace"),
        "headers": [
            [name, None if text is None else text.decode(errors="backslashreplace")] for name, text in letter.headers
        ],
    }
    head = json.dumps(about, ensure_ascii=False).removesuffix("}")
    return _escaped(f"{head}, {_value(letter.value or b'')}}}")


def _value(value: bytes) -> str:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        try:
            return f'"text": {json.dumps(value.decode(), ensure_ascii=False)}'
        except UnicodeDecodeError:
            return f'"base64": "{base64.b64encode(value).decode()}"'
    # Line breaks in JSON are between its values: a text of JSON contains none.
    return f'"value": {" ".join(value.decode().split(chr(10))).replace(chr(13), " ").strip()}'


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line.replace("\t", " "))


def read_mended(documents: Iterable[Document], source: str) -> Mended:
    """Returns the values of edited lines by the ids of their dead letters; all keys but the id and the value are ignored.

    A line that cannot be used becomes a problem, and reading continues.
    """
    mended = Mended()
    twice = set[LetterId]()
    for document in documents:
        try:
            letter_id, value = _mended(document.raw)
        except ValueError as error:
            mended.problems.append(f"{source}: document {document.number}: {error}")
            continue
        if letter_id in mended.values:
            mended.problems.append(
                f"{source}: document {document.number}: has the id {letter_id} of an earlier document, so neither is sent; "
                "keep one of them"
            )
            twice.add(letter_id)
        mended.values[letter_id] = value
    for letter_id in twice:
        del mended.values[letter_id]
    return mended


def _mended(raw: bytes) -> tuple[LetterId, bytes]:
    try:
        found: JsonValue = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({printable(str(error))})") from None
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        raise InputError(f"has no id of a dead letter; {_FORM}")
    letter_id = LetterId.parse(str(found["id"]))
    names = [name for name in _VALUE_KEYS if name in found]
    if len(names) != 1:
        raise InputError(f"has {' and '.join(names) or 'no value'}; {_FORM}")
    value = found[names[0]]
    try:
        if names[0] == "value":
            return letter_id, _json(value)
        if not isinstance(value, str):
            raise InputError(f"{names[0]} must be a string")
        return letter_id, value.encode() if names[0] == "text" else base64.b64decode(value, validate=True)
    except UnicodeEncodeError:
        raise InputError(f"{names[0]} contains half of a surrogate pair, which UTF-8 cannot represent") from None
    except binascii.Error as error:
        raise InputError(f"base64 is not valid ({error})") from None


def _json(value: JsonValue) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError(
            "value has a number that JSON cannot represent, such as NaN or 1e400; write another number, or null"
        ) from None
    return text.encode()

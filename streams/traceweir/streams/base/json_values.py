"""Reads and writes the JSON that people have in files: integers of any size, and values that are no JSON.

Integers keep all their digits; a fast parser makes floats of those beyond 64 bits. `NaN` and the infinities, which Python
and pandas write, are read as null, and half of a surrogate pair, which programs leave that cut a text, as U+FFFD. Both
cost the value and not the document, and a note says it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field

import orjson
from pydantic import JsonValue

from traceweir.schemas.figures import counted

_LONG_NUMBER = re.compile(rb"[0-9]{20}")
_SURROGATE = re.compile("[\ud800-\udfff]")


_CONSTANTS = "NaN and Infinity are no JSON and count as null"
_HALVES = "half of a surrogate pair is no text and counts as U+FFFD"
_COUNTED = {_CONSTANTS: "value", _HALVES: "place"}


@dataclass(frozen=True, slots=True)
class ReadJson:
    """A JSON value, and what had to be replaced in it."""

    value: JsonValue
    replaced: Counter[str] = field(default_factory=Counter)
    """How often what is no JSON was replaced, by what became of it."""

    @property
    def notes(self) -> list[str]:
        """A sentence for each kind of value that is no JSON, with its count."""
        return notes_of(self.replaced)


def notes_of(replaced: Counter[str]) -> list[str]:
    """Returns a sentence for each kind of value that was replaced, with its count.

    Args:
        replaced: How often it was, of one value or of several together.
    """
    return [f"{kind}: {counted(count, _COUNTED[kind])}" for kind, count in replaced.items()]


def read_json(raw: bytes | str) -> ReadJson:
    """Returns a JSON value.

    >>> read_json(b'{"id": 123456789012345678901234567890}').value
    {'id': 123456789012345678901234567890}
    >>> found = read_json('{"score": NaN}')
    >>> found.value, found.notes
    ({'score': None}, ['NaN and Infinity are no JSON and count as null: 1 value'])

    Raises:
        ValueError: the text is not JSON.
    """
    encoded = raw if isinstance(raw, bytes) else raw.encode(errors="surrogatepass")
    if not _LONG_NUMBER.search(encoded):
        try:
            return ReadJson(orjson.loads(encoded))
        except orjson.JSONDecodeError as error:
            refused = error
    else:
        refused = None
    constants: list[str] = []
    halves = [0]
    try:
        # Python's parser takes surrogates and constants.
        value = json.loads(encoded, parse_constant=constants.append)
        if b"\\u" in encoded or b"\xed" in encoded:
            value = _without_halves(value, halves)
    except (ValueError, RecursionError) as error:
        raise refused or ValueError(str(error)) from None
    return ReadJson(value, +Counter({_CONSTANTS: len(constants), _HALVES: halves[0]}))


def json_as_written(text: bytes | str) -> JsonValue:
    """Returns a JSON value in which `NaN` and halves of surrogate pairs are as they are written.

    `write_as_written` writes it, so that who joins such values leaves the notes to the reader of the whole.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        found: JsonValue = json.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    return found


def write_as_written(value: JsonValue) -> bytes:
    """Returns what `json_as_written` reads. Two halves that stand together are one character again.

    >>> read_json(write_as_written(["\\ud83d" + "\\ude00"])).value
    ['😀']

    Raises:
        ValueError: the value is nested too deeply.
    """
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError as error:
        raise ValueError(str(error)) from None


def write_json(value: JsonValue, *, sorted_keys: bool = False) -> bytes:
    """Returns a value as JSON, in UTF-8.

    Raises:
        ValueError: JSON cannot represent the value.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sorted_keys else None)
    except orjson.JSONEncodeError as error:
        if "64-bit" not in str(error):
            raise ValueError(str(error)) from None
        try:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sorted_keys, allow_nan=False)
        except RecursionError as too_deep:
            raise ValueError(str(too_deep)) from None
        return text.encode()


def _without_halves(value: JsonValue, halves: list[int]) -> JsonValue:
    match value:
        case str():
            if not _SURROGATE.search(value):
                return value
            halves[0] += len(_SURROGATE.findall(value))
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_without_halves(each, halves) for each in value]
        case dict():
            return {str(_without_halves(name, halves)): _without_halves(each, halves) for name, each in value.items()}
        case _:
            return value

"""Reads attributes: the first of several keys that is there, and JSON that instrumentations write as text."""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final

import msgspec
import orjson

from traceweir.streams.intake.spans.span import Attributes

MAX_LEVELS = 3
"""Maximum number of times that a text is JSON within JSON, as that of a list of messages with arguments."""
MAX_NESTING = 40
"""Maximum depth of a value; deeper parts are left out."""
_WORDS = {"true": True, "false": False, "null": None}
_JSON_SPACE = " \t\n\r"
_OPENING = frozenset('{["')
_MIN_INT, _MAX_INT = -(2**63), 2**64 - 1
"""The whole numbers that orjson writes."""


class Absent:
    """The type of `ABSENT`."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()
"""An attribute that is not there, in contrast to an empty text, 0, and null, which are values."""


def first(attributes: Attributes, *keys: str) -> Any:
    """Returns the value of the first key that is there and not null; `ABSENT` if none is.

    >>> first({"b": "", "c": 1}, "a", "b", "c"), first({}, "a")
    ('', ABSENT)
    """
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            return value
    return ABSENT


def first_text(attributes: Attributes, *keys: str) -> str:
    """Returns the first non-empty text under the keys, without the quotes of JSON; empty if there is none.

    >>> first_text({"session.id": '"s-1"'}, "session.id")
    's-1'
    """
    for key in keys:
        value = attributes.get(key)
        # Of most keys, and this function is called a hundred times for a trace of ten spans.
        if value is None:
            continue
        if isinstance(value, str) and value:
            if value[0] != '"':
                return value
            if value[-1] == '"' and len(value) > 1:
                inner = decoded(value)
                value = inner if isinstance(inner, str) else value
            if value:
                return value
        elif isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def count(attributes: Attributes, *keys: str) -> int | None:
    """Returns the first whole number of at least 0 under the keys, also if it is written as text; None if none is.

    >>> count({"a": "x", "b": "12"}, "a", "b")
    12
    """
    for key in keys:
        value = attributes.get(key)
        if value is None:
            continue
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return None


def decoded(value: Any) -> Any:
    """Returns the JSON in a text; any other value, and a text that is not JSON, unchanged.

    >>> decoded('{"a": "{}"}'), decoded("cut {")
    ({'a': '{}'}, 'cut {')
    """
    if not isinstance(value, str):
        return value
    begin = value.lstrip()[:1]
    if not begin or begin not in '{["-0123456789tfn':
        return value
    # Most texts that begin so are no JSON, and an exception is slow.
    if begin in "tfn":
        return _WORDS.get(value.strip(_JSON_SPACE), value)
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        pass
    try:
        # Which also reads NaN, infinities and halves of surrogate pairs.
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def structure(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Returns the object or the list in a text, also if the text is JSON within JSON; any other value unchanged.

    A text that is JSON of a number or a word stays a text: only a convention can say that it is more than a text.

    >>> structure('"[1]"'), structure("12")
    ([1], '12')
    """
    if not isinstance(value, str):
        return value
    # As most texts.
    if value.lstrip()[:1] not in _OPENING:
        return value
    inner: Any = value
    for _ in range(levels):
        if not isinstance(inner, str) or not inner.lstrip().startswith(("{", "[", '"')):
            break
        following = decoded(inner)
        if following is inner:
            break
        inner = following
    # `dict | list` would be built in each call.
    return inner if isinstance(inner, (dict, list)) else value


def json_in_text(value: Any) -> Any:
    """Returns the value in a JSON text, also if that is JSON within JSON; any other value unchanged.

    >>> json_in_text("12"), json_in_text('"[1]"')
    (12, [1])
    """
    return structure(decoded(value))


def is_cut(value: Any) -> bool:
    """Returns whether a text begins as an object or a list of JSON, and does not parse: a limit has cut it.

    >>> is_cut('{"a": "b'), is_cut("{}"), is_cut("[see below]")
    (True, False, False)
    """
    if not isinstance(value, str) or not value.startswith(('{"', '[{"', '["')):
        return False
    return isinstance(decoded(value), str)


def plain_text(text: str) -> str:
    """Returns a text that JSON can represent: a half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(value: Any, depth: int = 0) -> Any:
    """Returns a value that JSON can represent.

    Bytes become base64; NaN, infinities and whole numbers of more than 64 bits become text; too deep parts become null.

    Args:
        value: The value.
        depth: Number of objects and lists around the value in its document.
    """
    kind = type(value)
    if kind is str:
        return plain_text(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, int):
        return int(value) if _MIN_INT <= value <= _MAX_INT else str(int(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if depth >= MAX_NESTING:
        return None
    if isinstance(value, dict):
        found = {}
        for key, each in value.items():
            if type(key) is not str or not key.isascii():
                key = plain(str(key))
            # Most values are such texts: a call for each of them is most of this function's cost.
            found[key] = each if type(each) is str and each.isascii() else plain(each, depth + 1)
        return found
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, str):
        return plain(str(value))
    return str(value)


def text_of(value: Any) -> str:
    """Returns a text as it is, nothing for null, and any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, sort_keys=True)


def has_word(value: Any, *words: str) -> bool:
    """Returns whether a JSON text, or a value that an exporter writes as a map or a list, has one of these words in it.

    >>> has_word('{"a": 1}', '"a"'), has_word({"a": 1}, '"a"'), has_word(None, '"a"')
    (True, True, False)
    """
    if value is None:
        return False
    text = text_of(value) if isinstance(value, dict | list) else value
    return isinstance(text, str) and any(word in text for word in words)


def args_text(args: Any) -> bytes | None:
    """Returns a text that is equal for equal arguments; None if there are none."""
    if args is ABSENT:
        return None
    try:
        return orjson.dumps(args, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # orjson.JSONEncodeError: bytes, large numbers, halves of surrogate pairs.
        return orjson.dumps(plain(args), option=orjson.OPT_SORT_KEYS)

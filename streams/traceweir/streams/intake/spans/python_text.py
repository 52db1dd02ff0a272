"""Reads objects and lists in Python's text of them, which some frameworks write in place of JSON."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_TOKEN = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|\b(?:True|False|None)\b", re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|[\\'\"nrt])|\"")
_OUTSIDE = re.compile(rf"\\.|{_TOKEN.pattern}", re.DOTALL)
"""The tokens, and an escape outside of them, at which a text without an end would be sought again and again."""
_BRACKET = re.compile(r"[\[\](){}]")
_MAX_CHARS = 65_536


def python_value(value: Any) -> Any:
    """Returns the object, or the list of objects, in a text of Python; any other value, and a text in which not all has
    a form in JSON, unchanged.

    The text is translated to JSON. Python's own parser takes ten times as long, which an agent could make use of.

    >>> python_value("{'a': [1, None, 'it\\\\'s'], 'b': \\"x's\\"}"), python_value("{'a': (1, 2)}")
    ({'a': [1, None, "it's"], 'b': "x's"}, "{'a': (1, 2)}")
    """
    if not isinstance(value, str) or not value.startswith(("{'", "[{'")) or len(value) > _MAX_CHARS:
        return value
    try:
        return msgspec.json.decode(_TOKEN.sub(_as_json, value))
    except (ValueError, RecursionError):
        return value


def is_one_value(text: str) -> bool:
    """Returns whether the first bracket of a text is closed at its end: it is one object or one list, and nothing else.

    >>> is_one_value("{'a': Point(x=1)}"), is_one_value("{'a': '}'}"), is_one_value("{'a': 1} or {}"), is_one_value("{'a'")
    (True, True, False, False)
    """
    text = _OUTSIDE.sub("", text.strip())
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += 1 if found[0] in "[({" else -1
        if depth <= 0:
            return found.end() == len(text)
    return False


def _as_json(token: re.Match[str]) -> str:
    text = token[1] if token[1] is not None else token[2]
    if text is None:
        return _WORDS[token[0]]
    return f'"{_ESCAPE.sub(_escaped, text) if chr(92) in text or chr(34) in text else text}"'


def _escaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape is None:
        return '\\"'
    if escape == "'":
        return "'"
    return f"\\u00{escape[1:]}" if escape[0] == "x" else f"\\{escape}"

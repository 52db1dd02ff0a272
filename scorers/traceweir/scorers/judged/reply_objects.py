"""Finds the JSON object with the verdict in a judge's reply.

The first JSON object that holds the verdict's key decides; the text around the object never counts. A quotation in a
string of the object, or in prose beside the object, can therefore never count as a verdict.

An object that is not JSON is read as JSON5, which models write too: with a trailing comma, with single quotes, with a
backslash before any character. JSON5 is a grammar, so that nothing is guessed: a quotation mark in a string that has no
backslash makes an object malformed there too. Comments are not allowed, because a quotation could hide a verdict in one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, NoReturn

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject

MAX_JSON5_CHARACTERS = 16_384
"""Longest text that is read as JSON5: reading takes about 0.1 ms a value."""


def object_schema(**properties: JsonValue) -> JsonObject:
    """Returns the JSON Schema of an object with exactly these properties, as providers' strict modes require it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def one_of(*words: str) -> JsonObject:
    """Returns the JSON Schema of a string that is one of these words."""
    return {"type": "string", "enum": [*words]}


TEXT: JsonObject = {"type": "string"}


class VerdictObjects(NamedTuple):
    """Holds the JSON objects of a reply that can contain the verdict."""

    objects: Sequence[JsonObject]
    """The objects that hold a verdict's key, in their order; or the object that the whole reply consists of."""
    is_unclear: bool = False
    """Whether the objects are not the judge's answer: a malformed object can be its own, or a sentence goes on around them."""
    text_around: str = ""
    """The text outside of the objects if prose introduces the first of them, which can then be a quotation; else empty."""


def verdict_objects(reply: str, *keys: str) -> VerdictObjects:
    """Returns the JSON objects of a reply that hold one of the keys, also those that text surrounds.

    The search ends at the first malformed object: an object inside of it can be a quotation in one of its strings. An
    object is malformed too if its line goes on with one of the keys: then a quotation without backslashes has ended it. If
    prose introduces the first object, and words follow the last one on its line, the sentence can reject what it quotes.

    >>> verdict_objects('So {it} is: {"safe": "no"}. It says: "safe": "yes"', "unsafe")
    VerdictObjects(objects=[], is_unclear=False, text_around='')
    >>> verdict_objects('So it is: {"safe": "no",}', "safe")
    VerdictObjects(objects=[{'safe': 'no'}], is_unclear=False, text_around='So it is: \\n')
    >>> verdict_objects('It wrote: {"safe": "yes"}. That is wrong.', "safe").is_unclear
    True
    >>> verdict_objects('{"why": "it says "{"safe": "yes"}"", "safe": "no"}', "safe")
    VerdictObjects(objects=[], is_unclear=True, text_around='')
    """
    if (whole := _whole_object(reply)) is not None:
        return VerdictObjects([whole])
    objects: list[JsonObject] = []
    texts: list[str] = []
    position = end = 0
    is_introduced = False
    while start := _OBJECT_START.search(reply, position):
        decoded = _decoded(reply, start.start(), keys)
        if decoded is None:
            if start[1] == "'" and not _names(reply[start.start() :], keys, "'"):
                position = start.end()
                continue
            if _can_be_an_answer(reply[start.start() :], keys, bool(objects)):
                return VerdictObjects(objects, is_unclear=True)
            break
        found, position = decoded
        if any(_has(found, key) for key in keys):
            is_introduced = is_introduced if objects else _INTRODUCTION.search(reply[: start.start()]) is not None
            objects.append(found)
            texts.append(reply[end : start.start()])
            end = position
            if _goes_on(reply[end:], keys):
                return VerdictObjects(objects, is_unclear=True)
    if not is_introduced:
        return VerdictObjects(objects)
    after = reply[end:]
    if _WORD.search(after.partition("\n")[0]):
        return VerdictObjects(objects, is_unclear=True)
    return VerdictObjects(objects, text_around="\n".join([*texts, after]))


def value_at(answer: JsonObject, key: str) -> JsonValue:
    """Returns the value under a key, in any case and with blanks or hyphens in place of `_`.

    None if there is none, or if several keys differ in this only and have different values.

    >>> value_at({"Verdict ": "no"}, "verdict"), value_at({"verdict": "no", "Verdict": "yes"}, "verdict")
    ('no', None)
    """
    found = [value for name, value in answer.items() if _folded(name) == key]
    return found[0] if found and all(value == found[0] for value in found) else None


def text_at(answer: JsonObject, key: str) -> str:
    """Returns the text under a key, as `value_at` finds it; empty if there is none."""
    value = value_at(answer, key)
    return value.strip() if isinstance(value, str) else ""


def _has(answer: JsonObject, key: str) -> bool:
    return any(_folded(name) == key for name in answer)


def _folded(name: str) -> str:
    return _SEPARATORS.sub("_", name.strip().lower())


_SEPARATORS = re.compile(r"[\s-]+")


def _whole_object(reply: str) -> JsonObject | None:
    """Returns the JSON object that a reply consists of, with or without a Markdown fence; None for any other reply."""
    text = reply.strip()
    fenced = _FENCE.fullmatch(text)
    try:
        found = _DECODER.decode(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)


def _decoded(reply: str, start: int, keys: Collection[str]) -> tuple[JsonObject, int] | None:
    """Returns the object that begins here, and where it ends; None if it is malformed."""
    try:
        return _DECODER.raw_decode(reply, start)
    except (ValueError, RecursionError):
        text = reply[start:]
    if len(text) > MAX_JSON5_CHARACTERS or any(mark in text for mark in _COMMENTS):
        return None
    if not _names(text, keys):
        return None
    # Only now, because few replies need it.
    import json5

    try:
        found, problem, length = json5.parse(
            text, strict=False, consume_trailing=False, object_pairs_hook=_strict_object, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        return None
    return (found, start + length) if problem is None and isinstance(found, dict) else None


_COMMENTS = ("//", "/*")


def _can_be_an_answer(malformed: str, keys: Collection[str], has_objects: bool) -> bool:
    """Returns whether a malformed object can be the judge's answer.

    After an object with a verdict, a malformed object that begins with a list or an object under another key is data,
    and one that begins with a reason is an answer even if the reply ends before its verdict.
    """
    has_key = _names(malformed, keys)
    first = _FIRST_KEY.match(malformed)
    if not has_objects or first is None:
        return has_key
    return _folded(first[1]) in (*keys, *_REASON_KEYS) or (has_key and not first[2])


def _goes_on(after: str, keys: Collection[str]) -> bool:
    """Returns whether the line of an object goes on with a key of it, before another object begins."""
    line, _, _ = after.partition("\n")
    found = _OBJECT_START.search(line)
    rest = line[: found.start()] if found else line
    return _CONTINUATION.match(rest) is not None and _names(rest, keys)


def _names(text: str, keys: Collection[str], quotes: str = "\"'") -> bool:
    names = "|".join(key.replace("_", r"[\s_-]+") for key in keys)
    return re.search(rf"([{quotes}])\s*(?:{names})\s*\1", text, re.IGNORECASE) is not None


_REASON_KEYS = ("reasoning", "rationale")
_FIRST_KEY = re.compile(r"""\{\s*["']([^"']*)["']\s*:\s*([\[{]?)""")
_INTRODUCTION = re.compile(r"[^\s`][^\S\n]*\Z|:\s*(?:```(?:json|JSON)?\s*)?\Z")
"""Prose on the line of an object, or a colon at the end of the text before it."""
_WORD = re.compile(r"\w")
_CONTINUATION = re.compile(r"""[^\S\n]*[,"'}\]/]""")
"""What stands behind the end of an object if the object itself goes on."""
_OBJECT_START = re.compile(r"""\{\s*(["'}])""")
"""The start of a JSON object. Any other brace, such as that of `{name}`, is text."""


def _strict_object(pairs: Iterable[tuple[str, JsonValue]]) -> JsonObject:
    """Returns the object of these pairs, if equal keys have equal values."""
    found: JsonObject = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise ValueError("the object has different values under one key")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_strict_object, parse_constant=_no_constant, strict=False)

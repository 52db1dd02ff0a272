"""Reads a text of a message that is a list of parts, as JSON or as Python prints it."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

from pydantic import JsonValue

from traceweir.streams.base.json_values import read_json
from traceweir.streams.intake.spans.python_text import python_value

_Keys = Mapping[str, type | tuple[type, ...]]
_TEXT: tuple[_Keys, _Keys] = (
    {"text": str},
    {
        "citations": (list, NoneType),
        "cache_control": (dict, NoneType),
        "annotations": list,
        "logprobs": (list, NoneType),
        # Of LangChain.
        "index": int,
        "id": str,
    },
)
_IMAGE: tuple[_Keys, _Keys] = ({"image_url": (dict, str)}, {"detail": str})
_OF_USER: Mapping[str, tuple[_Keys, _Keys]] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "image_url": _IMAGE,
    "input_image": _IMAGE,
    "image": ({"source": dict}, {"cache_control": (dict, NoneType)}),
}
"""The parts of a user by their type: the keys that each has beside its type, and those that it can have."""
_OF_ASSISTANT: Mapping[str, tuple[_Keys, _Keys]] = {
    **_OF_USER,
    "output_text": _TEXT,
    "refusal": ({"refusal": str}, {}),
    "thinking": ({"thinking": str, "signature": str}, {}),
    "tool_use": ({"id": str, "name": str, "input": dict}, {"cache_control": (dict, NoneType), "caller": dict}),
}
_TELLING = frozenset(("text", "input_text", "output_text", "refusal", "tool_use"))
"""The types of which a list of parts has one."""


def parts_in(text: str, *, is_of_user: bool = False) -> list[JsonValue] | None:
    """Returns the parts in a text that is nothing but a list of them; None for any other text.

    Each part has the keys of its type and no others, because an answer or a question can be JSON that has a `type` too.

    Args:
        text: The text.
        is_of_user: Whether a user has written the text, in which there are no calls and no results.

    >>> parts_in('[{"type": "text", "text": "Hi"}]'), parts_in("[{'type': 'text', 'text': 'Hi'}]")
    ([{'type': 'text', 'text': 'Hi'}], [{'type': 'text', 'text': 'Hi'}])
    >>> parts_in('[{"type": "text", "text": "Your mail", "name": "email"}]'), parts_in("Hi")
    (None, None)
    """
    if not text.startswith(('[{"', "[{'")):
        return None
    if text.startswith("[{'"):
        found = python_value(text)
    else:
        try:
            found = read_json(text).value
        except ValueError:
            return None
    kinds = _OF_USER if is_of_user else _OF_ASSISTANT
    if not isinstance(found, list) or not all(_is_part(each, kinds) for each in found):
        return None
    return found if any(isinstance(each, dict) and each["type"] in _TELLING for each in found) else None


def _is_part(value: JsonValue, kinds: Mapping[str, tuple[_Keys, _Keys]]) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in kinds:
        return False
    needed, further = kinds[kind]
    known = {**needed, **further, "type": str}
    if not needed.keys() <= value.keys() or not value.keys() <= known.keys():
        return False
    return value.get("name") != "" and all(isinstance(each, known[key]) for key, each in value.items())

"""Reads messages that conventions spread over attributes such as `llm.input_messages.0.message.role`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.message import Role, SpanMessage
from traceweir.streams.intake.spans.messages import read_message

MAX_INDEX = 10_000


class _Branch(dict[str, Any]):
    """An object that the keys of attributes make, in contrast to one that is the value of an attribute."""


def indexed(spread: Mapping[str, Any], prefix: str, role: Role = "user") -> list[SpanMessage]:
    """Returns messages that are spread over attributes such as `llm.input_messages.0.message.role`."""
    if not spread:
        return []
    tree = _Branch()
    for key, value in spread.items():
        if value is not None and key.startswith(prefix):
            parts = key[len(prefix) :].split(".")
            if not parts[0].isdecimal() or len(parts) > 16:
                continue
            node = tree
            for part in parts[:-1]:
                following = node.setdefault(part, _Branch())
                # An attribute whose value is an object is no place for others: it is not to change.
                if not isinstance(following, _Branch):
                    break
                node = following
            else:
                node.setdefault(parts[-1], value)
    return [read_message(each, role) for each in _as_list(tree) if isinstance(each, dict)]


def _as_list(tree: dict[str, Any]) -> list[Any]:
    """Returns an object whose keys are numbers as a list, in the order of the numbers; its objects likewise."""
    numbered = sorted((int(key), key) for key in tree if key.isdecimal() and len(key) < 9)
    return [_with_lists(tree[key]) for _, key in numbered[:MAX_INDEX]]


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return _as_list(value)
    return {key: _with_lists(inner) for key, inner in value.items()}

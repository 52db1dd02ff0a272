"""Turns any Python value into bounded JSON, and says what the JSON does not contain."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

MAX_CHARS = 100_000
"""Maximum number of characters of one value. JSON writes at most 6 bytes for a character, and Kafka's default limit of a
record is 1 MB."""
MAX_NODES = 10_000
"""Maximum number of values in one value, itself included."""
MAX_DEPTH = 32
"""Maximum nesting."""
_CONTAINERS = frozenset({dict, list})
_MAX_INTEGER_BITS = 1_024
_ENTRY_CHARS = 8
"""What an item costs of the characters, so that many small items are bounded, too."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))


def encode(document: Any) -> bytes:
    """Returns a value that `plain` returned as JSON. Half surrogate pairs, which UTF-8 has no bytes for, become `?`."""
    return _ENCODER.encode(document).encode("utf-8", "replace")


def short_text(value: object, max_chars: int) -> str:
    """Returns a name or an id as text, cut at its maximum; None is empty.

    A value whose `str` raises is named by its class.
    """
    if value is None:
        return ""
    try:
        return str(value)[:max_chars]
    except Exception:  # noqa: BLE001  # the code of foreign objects runs here
        return f"<{type(value).__name__}>"


def plain(value: Any, max_chars: int = MAX_CHARS) -> tuple[Any, str]:
    """Returns the value as JSON has it, and what was lost, as the end of a sentence; empty if nothing was lost.

    Dates, UUIDs, paths and decimals become texts, an enum its value, a dataclass or pydantic model its fields, and any
    other object its `repr`. The value may be anything: this function raises nothing that derives from `Exception`.

    >>> plain({"at": date(2026, 1, 31), "tags": ("a", "b")})
    ({'at': '2026-01-31', 'tags': ['a', 'b']}, '')
    >>> plain([1.5, float("nan")])
    ([1.5, None], 'a number is NaN or infinite')
    >>> plain("abcdef", max_chars=3)
    ('abc', 'it has more than 3 characters')
    """
    if type(value) is str and len(value) <= max_chars:
        return value, ""
    try:
        if type(value) in _CONTAINERS:
            copied = _Copying(max_chars).of(value, 1)
            if copied is not None:
                return copied, ""
        walk = _Walk(max_chars)
        return walk.of(value, 0), "; ".join(walk.losses)
    except Exception as error:  # noqa: BLE001  # the code of foreign objects runs here
        return None, f"reading it raised {type(error).__name__}"


class _Copying:
    """Copies a dict or a list of the types that JSON has, as most values are, if nothing of it is lost.

    It takes a third of the time of the general way, in the agent's own time.
    """

    __slots__ = ("chars",)

    def __init__(self, max_chars: int) -> None:
        # So many characters are fewer than MAX_NODES values.
        self.chars = min(max_chars, MAX_NODES * _ENTRY_CHARS)

    def of(self, value: Any, depth: int) -> Any:
        """Returns the copy; None if the general way is needed, for another type or a bound that is reached."""
        self.chars -= len(value) * _ENTRY_CHARS
        if depth > MAX_DEPTH or self.chars <= 0:
            return None
        found: Any
        if type(value) is dict:
            found = {}
            # Another thread can change the dict meanwhile, which raises.
            for key, each in value.items():
                if type(key) is not str:
                    return None
                self.chars -= len(key)
                kind = type(each)
                if kind is str:
                    self.chars -= len(each)
                elif kind is int:
                    if not -(2**63) <= each < 2**64:
                        return None
                elif kind is float:
                    # NaN or infinite.
                    if each - each != 0:
                        return None
                elif kind in _CONTAINERS:
                    # The document gets a copy of it.
                    each = self.of(each, depth + 1)
                    if each is None:
                        return None
                elif each is not None and kind is not bool:
                    return None
                found[key] = each
        else:
            found = []
            for each in value:
                kind = type(each)
                if kind is str:
                    self.chars -= len(each)
                elif kind is int:
                    if not -(2**63) <= each < 2**64:
                        return None
                elif kind is float:
                    # NaN or infinite.
                    if each - each != 0:
                        return None
                elif kind in _CONTAINERS:
                    # The document gets a copy of it.
                    each = self.of(each, depth + 1)
                    if each is None:
                        return None
                elif each is not None and kind is not bool:
                    return None
                found.append(each)
        return found if self.chars > 0 else None


class _Walk:
    """Copies one value within its bounds."""

    __slots__ = ("above", "chars", "losses", "max_chars", "nodes")

    def __init__(self, max_chars: int) -> None:
        self.max_chars = self.chars = max_chars
        self.nodes = MAX_NODES
        self.above: set[int] = set()
        self.losses: dict[str, None] = {}

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self.integer(value)
        if kind is float:
            return self.real(value)
        if kind is dict:
            return self.inside(value, depth)
        if kind is list or kind is tuple:
            return self.inside(value, depth)
        return self.other(value, depth)

    def other(self, value: Any, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth + 1) if depth < MAX_DEPTH else self.lost(_too_deep())
        if isinstance(value, str):
            return self.text(str.__str__(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return self.lost("bytes are not JSON", f"<{len(value)} bytes>")
        if isinstance(value, date | time):
            return self.text(value.isoformat())
        if isinstance(value, UUID | Decimal | Fraction | PurePath | timedelta):
            return self.text(str(value))
        if isinstance(value, numbers.Integral):
            return self.integer(int(value))
        if isinstance(value, numbers.Real):
            return self.real(float(value))
        if isinstance(value, Mapping | Sequence | Set):
            return self.inside(value, depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
            return self.inside(fields, depth, value)
        dump = getattr(type(value), "model_dump", None)
        if callable(dump):
            return self.inside(dump(value), depth, value)
        return self.represented(value)

    def represented(self, value: Any) -> Any:
        """Returns the `repr` of an object; that of an object with an address tells nothing of its content."""
        text = repr(value)
        if text.startswith("<") and " at 0x" in text:
            return self.lost("an object has no form in JSON", f"<{type(value).__name__}>")
        return self.text(text)

    def inside(self, value: Any, depth: int, origin: Any = None) -> Any:
        """Returns a container with its items.

        Args:
            value: A mapping, or an iterable with a length.
            depth: Its nesting.
            origin: The object whose content it is, if it is none of its own: objects can contain themselves.
        """
        if depth >= MAX_DEPTH:
            return self.lost(_too_deep())
        identity = id(value if origin is None else origin)
        if identity in self.above:
            return self.lost("it contains itself")
        self.above.add(identity)
        try:
            if isinstance(value, Mapping):
                return self.entries(value, depth + 1)
            return self.items(value, depth + 1)
        finally:
            self.above.discard(identity)

    def entries(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, each in value.items():
            if not self.has_room():
                break
            name = self.text(key if type(key) is str else str(key))
            if name in found:
                self.losses["two of its keys have the same text"] = None
            else:
                found[name] = self.of(each, depth)
        return found

    def items(self, value: Iterable[Any], depth: int) -> list[Any]:
        found = []
        for each in value:
            if not self.has_room():
                break
            found.append(self.of(each, depth))
        return found

    def has_room(self) -> bool:
        self.nodes -= 1
        self.chars -= _ENTRY_CHARS
        if self.nodes <= 0:
            self.losses[f"it has more than {MAX_NODES} values"] = None
            return False
        if self.chars <= 0:
            self.losses[self.too_long()] = None
            return False
        return True

    def text(self, value: str) -> str:
        room = max(self.chars, 0)
        self.chars -= len(value)
        if len(value) <= room:
            return value
        self.losses[self.too_long()] = None
        return value[:room]

    def too_long(self) -> str:
        return f"it has more than {self.max_chars} characters"

    def integer(self, value: int) -> Any:
        """Returns an integer of up to 64 bits, and the digits of a larger one as text: JSON readers round larger ones."""
        if -(2**63) <= value < 2**64:
            return value
        if value.bit_length() <= _MAX_INTEGER_BITS:
            return self.text(str(value))
        return self.lost(f"an integer has more than {_MAX_INTEGER_BITS} bits")

    def real(self, value: float) -> Any:
        return value if math.isfinite(value) else self.lost("a number is NaN or infinite")

    def lost(self, what: str, instead: Any = None) -> Any:
        self.losses[what] = None
        return instead


def _too_deep() -> str:
    return f"it has more than {MAX_DEPTH} levels"

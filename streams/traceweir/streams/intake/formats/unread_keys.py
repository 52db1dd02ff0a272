"""Collects the keys of an input that no reader reads, so that a misspelt key does not vanish."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import BaseModel, JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.model_keys import inner_model, spellings
from traceweir.schemas.text import printable

_MOST_KEYS = 1_000
"""Different keys that are named; hostile documents can have any number of them."""
_SHOWN_CHARS = 60
_SIMILARITY = 0.8
"""How similar a key must be to one that is read, as `difflib` measures it, from 0 to 1."""


@dataclass(frozen=True)
class KnownKeys:
    """The keys of an object that a reader knows."""

    where: str
    """What has the keys, for messages, such as `column` or `key of a message`."""
    read: Collection[str]
    """The keys that are read."""
    ignored: Collection[str] = ()
    """Well-known keys that are not read, such as metadata of the source."""

    @cached_property
    def plain(self) -> dict[str, str]:
        """The keys that are read, by their spelling without case, hyphens, underscores and spaces."""
        # Of two spellings of a key, the first one in `read` is shown.
        return {_plain(name): name for name in reversed([*self.read])}

    @cached_property
    def known(self) -> frozenset[str]:
        """The keys that are never named."""
        return frozenset((*self.read, *self.ignored))

    def nearest(self, name: str) -> str | None:
        """Returns the key that is read whose spelling is close to a name; None without one.

        >>> KnownKeys("column", ["retrieved_context"]).nearest("retreivedContext")
        'retrieved_context'
        """
        plain = _plain(name[:_SHOWN_CHARS])
        found = difflib.get_close_matches(plain, self.plain, n=1, cutoff=_SIMILARITY)
        return self.plain[found[0]] if found else None


class UnreadKeys:
    """Counts the keys of one input that are neither read nor well known.

    Such a key is named if it can hold content, which is a text, a list or an object that is not empty, or if its spelling
    is close to a key that is read.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._nearest: dict[tuple[str, str], str | None] = {}
        self._others = 0

    def note(self, found: JsonObject, known: KnownKeys) -> None:
        """Counts the unread keys of an object."""
        for name in [each for each in found if each not in known.known]:
            self.note_key(name, known, has_content=bool(found[name]) and isinstance(found[name], str | list | dict))

    def note_all(self, found: JsonObject, known: KnownKeys) -> None:
        """Counts the unread keys of an object of which any value, such as a number, can be content.

        A value that is null or empty is none.
        """
        for name, value in found.items():
            if name not in known.known and value not in (None, "", [], {}):
                self.note_key(name, known)

    def note_key(self, name: str, known: KnownKeys, *, has_content: bool = True, count: int = 1) -> None:
        """Counts a key that is not read.

        Args:
            name: The key.
            known: The keys that the reader knows.
            has_content: Whether its value can hold content.
            count: How often it is there, at least 1.
        """
        if name in known.known or not name:
            return
        key = (known.where, name)
        if key not in self._nearest:
            if len(self._nearest) >= _MOST_KEYS:
                self._others += 1
                return
            self._nearest[key] = known.nearest(name)
        if has_content or self._nearest[key] is not None:
            self._counts[key] += count

    def note_model(self, model: type[BaseModel], found: JsonValue, ignored: IgnoredKeys) -> None:
        """Counts the unread keys of an object that a model reads, and of the objects in it."""
        if not isinstance(found, dict):
            return
        fields = spellings(model)
        if not found.keys() <= fields.keys():
            self.note(found, KnownKeys(ignored.where(model, found), fields, ignored.of(model)))
        for name, value in found.items():
            inner = fields.get(name)
            for each in value if isinstance(value, list) else [value]:
                if inner and isinstance(each, dict) and (kind := inner_model(inner, each)) not in ignored.models:
                    self.note_model(kind, each, ignored)

    def lines(self, source: str) -> Iterator[str]:
        """Yields a sentence for each key.

        Args:
            source: The name of the input.
        """
        for (where, name), count in self._counts.items():
            nearest = self._nearest[where, name]
            hint = "" if nearest is None else f"; the nearest that is read is {nearest!r}"
            shown = printable(name, _SHOWN_CHARS)
            yield f"{source}: {where} {shown!r} is not read ({counted(count, 'time')}){hint}"
        if self._others:
            yield f"{source}: {counted(self._others, 'further key')} that {'is' if self._others == 1 else 'are'} not read"


@dataclass(frozen=True)
class IgnoredKeys:
    """What is well known, and not read, in objects that models read."""

    keys: Mapping[type[BaseModel], Collection[str]]
    """Keys by the model of their object."""
    models: Collection[type[BaseModel]] = ()
    """Models whose objects are not looked into."""
    names: Mapping[type[BaseModel], str] | None = None
    """What an object is called in messages, if not by the name of its model."""

    def with_keys(self, keys: Mapping[type[BaseModel], Collection[str]]) -> IgnoredKeys:
        """Returns the same with keys of further models."""
        return replace(self, keys={**self.keys, **keys})

    def of(self, model: type[BaseModel]) -> Collection[str]:
        """Returns the ignored keys of a model's objects."""
        return self.keys.get(model, ())

    def where(self, model: type[BaseModel], found: JsonObject) -> str:
        """Returns what has the keys: the type of an event, or the name of the model."""
        named = (self.names or {}).get(model)
        kind = found.get("type")
        return f"key of {named or (kind if isinstance(kind, str) and '.' in kind else model.__name__)}"


def _plain(name: str) -> str:
    return "".join(each for each in name.lower() if each not in "-_ ")

"""Remembers what the keys of a span's attributes tell alone: the spans of an instrumented agent have few sets of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

_MAX_CACHED_KEYS = 32
"""Maximum number of keys of a span whose set of keys is remembered."""
_MAX_CACHED_CHARS = 2_000
"""Maximum number of characters of these keys together: an agent chooses its keys, and the sets stay in memory."""

_Found = TypeVar("_Found")


class KeySet:
    """The keys of a span's attributes, with what was found out from them.

    Args:
        keys: The keys, in the order of the attributes; the values do not count.
    """

    __slots__ = ("found", "keys")

    def __init__(self, keys: Mapping[str, Any]) -> None:
        self.keys = keys
        self.found: dict[KeyTable[Any], Any] = {}


def key_set_of(attributes: Mapping[str, Any]) -> KeySet:
    """Returns the keys of these attributes; usually the object that another span with the same keys has."""
    if len(attributes) > _MAX_CACHED_KEYS or sum(map(len, attributes)) > _MAX_CACHED_CHARS:
        return KeySet(attributes)
    return _cached(tuple(attributes))


@lru_cache(maxsize=512)
def _cached(keys: tuple[str, ...]) -> KeySet:
    return KeySet(dict.fromkeys(keys))


class KeyTable(Generic[_Found]):
    """Tells something that depends on the keys of a span's attributes alone, found out once for each set of keys.

    Args:
        find: Finds it out; None is no answer.
    """

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[Mapping[str, Any]], _Found]) -> None:
        self._find = find

    def of(self, key_set: KeySet) -> _Found:
        """Returns what the table tells of the spans with these keys."""
        found: _Found | None = key_set.found.get(self)
        if found is None:
            found = key_set.found[self] = self._find(key_set.keys)
        return found


def keys_there(keys: Iterable[str]) -> KeyTable[tuple[str, ...]]:
    """Returns the table of those of some keys that are there, in the order in which they are looked for.

    >>> keys_there(["a", "b", "c"]).of(key_set_of({"c": 1, "x": 2, "a": 3}))
    ('a', 'c')
    """
    wanted = tuple(keys)
    return KeyTable(lambda there: tuple(key for key in wanted if key in there))

"""Defines Waiting: values in an order, of which each is taken once, by any of its keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """Values in the order in which they were added. Adding and taking cost the same for any number of values.

    >>> waiting = Waiting()
    >>> waiting.add("first", "a", "b")
    >>> waiting.add("second", "b")
    >>> waiting.take("b"), waiting.take("a", "b"), waiting.take("b")
    ('first', 'second', None)
    """

    def __init__(self) -> None:
        self._values: list[T] = []
        self._taken: set[int] = set()
        self._places: dict[Hashable, deque[int]] = {}

    def __bool__(self) -> bool:
        """Returns whether a value was added, also if it is taken by now."""
        return bool(self._values)

    def add(self, value: T, *keys: Hashable) -> None:
        """Adds a value after all others, under keys of its own or of others."""
        for key in keys:
            self._places.setdefault(key, deque()).append(len(self._values))
        self._values.append(value)

    def take(self, *keys: Hashable) -> T | None:
        """Takes the first value that has one of the keys; returns None if there is none."""
        found = [place for key in keys if (place := self._place_of(key)) is not None]
        if not found:
            return None
        self._taken.add(min(found))
        return self._values[min(found)]

    def first(self, key: Hashable) -> T | None:
        """Returns the value that `take` would take for a key; None if there is none."""
        place = self._place_of(key)
        return None if place is None else self._values[place]

    def _place_of(self, key: Hashable) -> int | None:
        places = self._places.get(key)
        while places and places[0] in self._taken:
            places.popleft()
        return places[0] if places else None

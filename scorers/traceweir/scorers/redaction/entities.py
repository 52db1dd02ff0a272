"""Defines how a recogniser of names takes part in redaction. The gate has the recogniser; this package knows no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from traceweir.scorers.redaction.hits import Hit

ENTITY_RANK = 2_000
"""Rank of recognised entities: where a hit of the gate's own rules overlaps, that rule names the kind."""

FindEntities: TypeAlias = Callable[[str], Sequence[Hit]]
"""Returns the entities in a text; raises `NotSearchedError` if a part of the text cannot be searched."""


class NotSearchedError(Exception):
    """A text could not be searched, so it must not be published; `reason` is the gate's reason for the rejection."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EntityFinder(Protocol):
    """Recognises names of persons, places and other entities in a text."""

    @property
    def max_chars(self) -> int:
        """Number of characters of one trace that may be searched."""

    def find(self, text: str) -> Sequence[Hit]:
        """Returns the entities in a text, with the rank `ENTITY_RANK`.

        Raises:
            NotSearchedError: a part of the text was not searched.
        """


_CHARS_PER_SEARCH = 100
"""The least number of characters that a search counts as: thousands of short texts cost more than one long text."""


def limited(finder: EntityFinder) -> FindEntities:
    """Returns the search of a finder for the texts of one trace, which together have at most `max_chars` characters.

    The search raises NotSearchedError with the reason `too_long_for_presidio` for the first text beyond this limit.
    """
    left = finder.max_chars

    def find(text: str) -> Sequence[Hit]:
        nonlocal left
        left -= max(len(text), _CHARS_PER_SEARCH)
        if left < 0:
            raise NotSearchedError("too_long_for_presidio")
        return finder.find(text)

    return find

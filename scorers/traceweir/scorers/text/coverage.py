"""Finds the elements of one text that another text covers: by equality, or by containment for longer elements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.text.segments import is_from_pairs

SHORT = 3
"""Letters. Only an equal element covers an element with this many letters or fewer."""
OVERLAP = 0.6
"""Share of the longer element's letters that the shorter element must exceed, where either contains the other."""
LONGEST = 48
"""Letters. Only an equal element covers a longer element, because finding contained elements would take too much time.

Such elements are keys and data, not words.
"""


def covered(elements: Sequence[str], by: Collection[str]) -> list[bool]:
    """Returns for each element whether an element of `by` covers it, in time proportional to the number of letters.

    A Korean syllable counts as its two or three letters. A single character of a script without spaces is covered by
    any element that contains it, because in the other text the character can be part of a bigram.

    Words of alphabets whose languages inflect are also covered by a word with another ending: by a common beginning of
    more than 70 % of the letters of both. A Korean compound and the words in it cover one another, because writers
    put a blank between them or none.

    >>> covered(["engine", "cat", "abcdef"], ["engineer", "cats", "abcdefghij"])
    [True, False, False]
    >>> covered(["설정", "光", "библиотека", "погода"], ["설정하", "光合", "библиотеку", "погоня"])
    [True, True, True, False]
    >>> covered(["회의실예약", "예약"], ["회의실", "예약"]), covered(["회의실"], ["회의실예약"])
    ([True, True], [True])
    """
    others = {_letters(element) for element in by}
    spellings = [_letters(element) for element in elements]
    equal = [spelling in others for spelling in spellings]
    uncovered = {
        spelling
        for spelling, done in zip(spellings, equal, strict=True)
        if not done and SHORT < len(spelling) <= LONGEST
    }
    overlapping = _contained(uncovered, others) | _containing(uncovered, others)
    inflected = _beginnings(filter(_INFLECTING.fullmatch, others))
    compounds = _compounds(by)
    single = {character for element in by if is_from_pairs(element) for character in element}
    return [
        done
        or spelling in overlapping
        or (len(element) == 1 and element in single)
        or element in compounds
        or (_INFLECTING.fullmatch(spelling) is not None and not inflected.isdisjoint(_beginnings([spelling])))
        for element, spelling, done in zip(elements, spellings, equal, strict=True)
    ]


_INFLECTING = re.compile("[\u0370-\u03ff\u0400-\u052f\u0900-\u097f]{4,48}")
"""Words in Greek, Cyrillic and Devanagari letters."""
BEGINNING = 0.7
"""Share of the letters of two words that their common beginning must exceed."""


def _beginnings(words: Iterable[str]) -> set[str]:
    """Returns the beginnings of words that have enough of their letters."""
    return {word[:length] for word in words for length in range(int(BEGINNING * len(word)) + 1, len(word) + 1)}


def _compounds(words: Collection[str]) -> set[str]:
    """Returns what Korean words are with another blank or without one: two neighbours, and a word's beginning or end."""
    korean = [word for word in words if _KOREAN.fullmatch(word)]
    parts = {part for word in korean for at in range(2, len(word) - 1) for part in (word[:at], word[at:])}
    return parts.union(map(str.__add__, korean, korean[1:]))


_KOREAN = re.compile("[\uac00-\ud7a3]{2,12}")


def _letters(element: str) -> str:
    return normal_form("NFD", element) if "\uac00" <= element[:1] <= "\ud7a3" else element


def _contained(wanted: set[str], others: Collection[str]) -> set[str]:
    """Returns the wanted elements that one of the others contains, if they have enough of its letters."""
    lengths = {len(element) for element in wanted}
    return {
        part for other in others if len(other) <= LONGEST / OVERLAP for part in _parts(other, lengths) if part in wanted
    }


def _containing(wanted: set[str], others: set[str]) -> set[str]:
    """Returns the wanted elements that contain one of the others, if the other has enough of their letters."""
    lengths = {len(other) for other in others}
    return {element for element in wanted if any(part in others for part in _parts(element, lengths))}


def _parts(text: str, lengths: Collection[int]) -> Iterator[str]:
    """Yields the parts of a text that have one of these lengths and enough of its letters."""
    for length in range(len(text) - 1, 0, -1):
        if length / len(text) <= OVERLAP:
            return
        if length in lengths:
            for begin in range(len(text) - length + 1):
                yield text[begin : begin + length]

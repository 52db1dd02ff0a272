"""Which elements of one text another covers: equal ones, and long ones of which either contains the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.text.segments import is_from_pairs

SHORT = 3
"""Letters. An element of no more is covered by an equal one alone."""
OVERLAP = 0.6
"""An element that contains another, or is contained in it, counts if the shorter has more than this share of the longer's letters."""
LONGEST = 48
"""Letters. Longer elements, no words but keys and data, are covered by equal ones alone: what they contain would cost too much to find."""


def covered(elements: Sequence[str], by: Collection[str]) -> list[bool]:
    """For each element, whether the others cover it, in time that grows with their letters.

    A Korean syllable counts as its two or three letters. A single character of a script without blanks is covered by any element that
    has it, for there it may be part of a pair.

    >>> covered(["engine", "cat", "abcdef"], ["engineer", "cats", "abcdefghij"])
    [True, False, False]
    >>> covered(["설정", "光"], ["설정하", "光合"])
    [True, True]
    """
    others = {_letters(element) for element in by}
    letters = [_letters(element) for element in elements]
    found = [one in others for one in letters]
    open_ones = {one for one, done in zip(letters, found, strict=True) if not done and SHORT < len(one) <= LONGEST}
    reached = _contained(open_ones, others) | _containing(open_ones, others)
    single = {character for element in by if is_from_pairs(element) for character in element}
    return [
        done or one in reached or (len(element) == 1 and element in single)
        for element, one, done in zip(elements, letters, found, strict=True)
    ]


def _letters(element: str) -> str:
    return normal_form("NFD", element) if "\uac00" <= element[:1] <= "\ud7a3" else element


def _contained(wanted: set[str], others: Collection[str]) -> set[str]:
    """Those of the wanted that are contained in one of the others and have enough of its letters."""
    lengths = {len(one) for one in wanted}
    return {
        part for other in others if len(other) <= LONGEST / OVERLAP for part in _parts(other, lengths) if part in wanted
    }


def _containing(wanted: set[str], others: set[str]) -> set[str]:
    """Those of the wanted that contain one of the others, which has enough of their letters."""
    lengths = {len(other) for other in others}
    return {one for one in wanted if any(part in others for part in _parts(one, lengths))}


def _parts(text: str, lengths: Collection[int]) -> Iterator[str]:
    """The parts of a text that have enough of its letters, of these lengths."""
    for length in range(len(text) - 1, 0, -1):
        if length / len(text) <= OVERLAP:
            return
        if length in lengths:
            for begin in range(len(text) - length + 1):
                yield text[begin : begin + length]

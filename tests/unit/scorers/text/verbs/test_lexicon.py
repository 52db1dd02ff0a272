"""Tests that the classification of a word depends neither on earlier words nor on other threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from traceweir.scorers.text.elements import elements, elements_as_mastra
from traceweir.scorers.text.verbs import lexicon
from traceweir.scorers.text.verbs.lexicon import LONGEST, Word, known, known_as_mastra

TEXT = "The seats have been booked upon arrival, the closed doors are not seen and she was going."


@pytest.mark.slow
def test_a_text_has_the_same_elements_at_every_interleaving_of_two_threads() -> None:
    expected = elements(TEXT), elements_as_mastra(TEXT)
    seen: set[tuple[str, int]] = set()
    different: list[tuple[str, int]] = []

    def at_line(frame: FrameType, _: str, __: Any) -> Any:
        line = (frame.f_code.co_name, frame.f_lineno)
        if frame.f_code.co_filename == lexicon.__file__ and line not in seen:
            seen.add(line)
            if (elements(TEXT), elements_as_mastra(TEXT)) != expected:
                different.append(line)
        return at_line

    more_than_remembered = [
        str(number).translate(str.maketrans("0123456789", "abcdefghij")) for number in range(17_000)
    ]
    unknown = " ".join(word + "q" * lexicon.LONGEST for word in more_than_remembered)  # too long to be looked up
    before = sys.gettrace()
    sys.settrace(at_line)
    try:
        elements(unknown)
        elements_as_mastra(unknown)
    finally:
        sys.settrace(before)
    assert seen
    assert not different
    assert (elements(TEXT), elements_as_mastra(TEXT)) == expected


@pytest.mark.parametrize("look_up", [known, known_as_mastra])
def test_overlong_words_are_not_cached(look_up: Callable[[str], Word]) -> None:
    kept = [cached.cache_info().currsize for cached in (lexicon._looked_up, lexicon._known_as_mastra)]
    assert {look_up(letter * (LONGEST + 1)).kind for letter in "abcdefgh"} == {"other"}
    assert [cached.cache_info().currsize for cached in (lexicon._looked_up, lexicon._known_as_mastra)] == kept

"""Tests normal forms on adversarial texts: the result, and that it is computed in time."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.normal_form import JOINER, MAX_MARKS, NormalForm, normal_form
from traceweir.schemas.reference import normalised_question
from traceweir.scorers.base import Subject
from traceweir.scorers.metrics.content_similarity import ContentSimilarity
from traceweir.scorers.text.elements import elements, elements_as_mastra
from traceweir.scorers.text.rouge import tokens

FORMS: tuple[NormalForm, ...] = get_args(NormalForm)
MARKS = st.sampled_from("\u0301\u0323\u0344\u0730\u0731\u3099\u0f71\u0f73\uff9e\uff9f")
ROWS = st.lists(
    st.one_of(st.builds(str.__mul__, st.text(MARKS, max_size=4), st.integers(1, 100)), st.sampled_from("aé가ﾊ…👍 ـ"))
).map("".join)


def is_mark(character: str) -> bool:
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


def longest_row(text: str) -> int:
    longest = row = 0
    for character in text:
        row = row + 1 if unicodedata.combining(character) else 0
        longest = max(longest, row)
    return longest


@given(st.text(), st.sampled_from(FORMS))
def test_normal_texts_equal_unicodedatas_result(text: str, form: NormalForm) -> None:
    assert normal_form(form, text) == unicodedata.normalize(form, text)


@given(ROWS, st.sampled_from(FORMS))
def test_runs_of_marks_are_split_and_no_mark_is_lost(text: str, form: NormalForm) -> None:
    found = normal_form(form, text)
    assert longest_row(found) <= 2 * MAX_MARKS + 1  # a mark can decompose into two marks, and a letter can contain one
    whole = found.replace(JOINER, "")
    assert unicodedata.normalize(form, whole) == unicodedata.normalize(form, text)


def test_every_combining_mark_of_unicode_counts_as_a_mark() -> None:
    marks = [mark for mark in map(chr, range(sys.maxunicode + 1)) if is_mark(mark)]
    assert len(marks) > 900
    for mark in marks:
        assert JOINER not in normal_form("NFC", "a" + mark * MAX_MARKS)
        assert normal_form("NFC", "a" + mark * (MAX_MARKS + 1)).count(JOINER) == 1


VAST = 200_000
"""Number of pairs of marks in the wrong order, 800 kB; a quadratic algorithm would exceed the suite's timeout."""
ROW = "a" + "\u0301\u0323" * VAST
APART = "a" + "\u0731\u0730\u0640" * VAST
"""Marks that become consecutive only when the stroke between them is removed."""
HALF_WIDTH = "ﾊ" + "\u0301\uff9e" * VAST


def similarity(text: str) -> float | None:
    turn = Invocation(user_content=Content.of(text), final_response=Content.of("a" + text))
    return ContentSimilarity().score(Subject(invocation=turn)).value


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (elements, ROW, ["a"]),
        (elements_as_mastra, ROW, ["a"]),
        (lambda text: len(elements(text)), APART, 1),
        (lambda text: len(elements(text)), HALF_WIDTH, 1),
        (lambda text: len(tokens(text)), ROW, 1),
        (lambda text: len(tokens(text)) > VAST, HALF_WIDTH, True),  # in Japanese text each mark is a token
        (lambda text: normalised_question(text) == normalised_question(text.upper()), ROW, True),
        (lambda text: round(similarity(text) or 0, 3), ROW, 1.0),
    ],
    ids=["elements", "as Mastra", "apart", "half-width", "ROUGE", "half-width ROUGE", "question", "similarity"],
)
def test_800_kilobytes_of_marks_are_normalised_in_time(
    read: Callable[[str], object], text: str, expected: object
) -> None:
    assert read(text) == expected

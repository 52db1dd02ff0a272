"""Compares the plain copy of a text, and where its characters came from, with a slow definition of both."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import takewhile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceweir.scorers.redaction.plain_text import plain, plain_name

PIECES = (
    *("password=hunter2", "a", "1", " ", "=", "<", "\n", "\U0001f600", "e", "é"),
    *("用户询问退款的状态", "，", "：", "！", "\u3000", "パスワード", "비밀번호"),
    *("ｐａｓｓ", "２", "①", "㎡", "…", "ﬁ", "ﷺ", "\U0001d41a", "\u00a0", "½", "㍿"),
    *("ﾊﾟｽﾜｰﾄﾞ", "ｶ", "ﾞ", "ﾟ", "は\u3099", "\u3099", "゛"),
    *("\u1112\u1161\u11ab", "\u1112", "\u1161", "\u11a8", "\uac00", "\u3131", "\u314f", "\uffa1", "\uffc2", "\u1160"),
    *("\u0301", "\u0323", "\u0338", "´", "\u0345", "\u0f77", "\u09c7", "\u09be", "\u0cc6", "\u0cc2", "\u0cd5"),
    *("नमस्ते", "น้ำ", "ำ"),
    *("\u200b", "\u00ad", "\u2060", "\ufe0f", "\u034f", "\ufeff", "\U000e0041"),
)
short = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), max_size=8).map("".join)
fillers = st.builds(lambda char, count: char * count, st.sampled_from("a中，"), st.integers(0, 600))
"""They move what stands around them to the end of a block and over it."""
texts = st.lists(short | fillers, max_size=6).map("".join)


@cache
def is_unseen(char: str) -> bool:
    return plain_name(char) == ""


@cache
def is_mark(char: str) -> bool:
    """Returns whether a character can become one with the letter before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    is_korean = "\u1161" <= first <= "\u11ff" or "\ud7b0" <= first <= "\ud7fb"
    return not is_unseen(char) and (unicodedata.category(first)[0] == "M" or is_korean)


def letters(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each letter with its marks, and of each character that is not seen."""
    start = 0
    while start < len(text):
        rest = takewhile(lambda at: is_unseen(text[at]) or is_mark(text[at]), range(start + 1, len(text)))
        marks = [] if is_unseen(text[start]) else [at for at in rest if is_mark(text[at])]
        end = max([start, *marks]) + 1
        yield start, end
        start = end


def defined(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Returns the plain copy, and for each of its characters the part of the text that it came from."""
    copy, sources = "", list[tuple[int, int]]()
    for start, end in letters(text):
        seen = "".join(char for char in text[start:end] if not is_unseen(char))
        read = unicodedata.normalize("NFKC", seen)
        is_same = read == text[start:end]
        sources += [(start + at, start + at + 1) if is_same else (start, end) for at in range(len(read))]
        copy += read
    return copy, sources


@given(texts, st.data())
@example("a" * 511 + "e\u0301\u200b", None)
@example("ｶ" * 512 + "ﾞ", None)
def test_the_copy_and_the_source_of_each_part_are_those_of_the_slow_definition(
    text: str, data: st.DataObject | None
) -> None:
    copy, sources = defined(text)
    view = plain(text)
    assert (text if view is None else view.text) == copy
    if view is not None:
        assert [view.source(at, at + 1) for at in range(len(copy))] == sources
        if copy and data is not None:
            start = data.draw(st.integers(0, len(copy) - 1))
            end = data.draw(st.integers(start + 1, len(copy)))
            assert view.source(start, end) == (sources[start][0], sources[end - 1][1])


@given(texts)
def test_the_copy_is_the_text_in_nfkc_without_what_is_not_seen(text: str) -> None:
    seen = "".join(char for char in text if not is_unseen(char))
    assert plain_name(text) == unicodedata.normalize("NFKC", seen)


UNASSIGNED = ("Cn", "Co")
"""Categories of characters that Unicode leaves free, and of those for private use."""


@pytest.mark.parametrize("plane", range(17))
def test_each_character_and_each_pair_that_unicode_joins_is_read_as_in_nfkc(plane: int) -> None:
    places = range(plane * 0x10000, (plane + 1) * 0x10000)
    # Unicode joins and replaces no character that it has not assigned: of those, some are read.
    chars = [chr(each) for each in places if each % 64 == 0 or unicodedata.category(chr(each)) not in UNASSIGNED]
    pairs = [pair for char in chars if (pair := unicodedata.normalize("NFD", char)) != char]
    written = [f"e{each}x" for each in (*chars, *pairs) if not any(map(is_unseen, each))]
    assert [each for each in written if plain_name(each) != unicodedata.normalize("NFKC", each)] == []


def test_a_letter_with_very_many_marks_is_read_in_parts() -> None:
    """Python sorts the marks of a letter in quadratic time, so nothing longer than a block is one letter."""
    text = "e" + "\u0301\u0323" * 50_000
    view = plain(text)
    assert view is not None
    assert len(view.text) == len(text) - 1
    assert all(end - start <= 512 for start, end in map(view.source, range(0, 90_000, 1_000), range(1, 90_001, 1_000)))

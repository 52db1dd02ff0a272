"""Tests completeness on generated texts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceweir.scorers.metrics.completeness import completeness
from traceweir.scorers.metrics.content_similarity import dice
from traceweir.scorers.metrics.keyword_coverage import keywords, keywords_as_mastra
from traceweir.scorers.text.coverage import LONGEST, OVERLAP, SHORT, covered
from traceweir.scorers.text.elements import elements
from traceweir.scorers.text.messages import Compat

SAMPLES = "the dogs were not seen I'm non-stop 침실의 光合作用 สวัสดี 👍 ... getUserName U.S. don’t"
WORDS = st.lists(st.sampled_from(SAMPLES.split()))
TEXTS = st.one_of(st.text(), WORDS.map(" ".join), st.text("ab'- .,nt"))
MODES: list[Compat] = [None, "mastra"]


@given(TEXTS, TEXTS)
@example("\u0301", "e\u0301")
@example("\ud800", "\udfff")
@example("n't", "")
def test_the_score_is_a_share(given_text: str, answer: str) -> None:
    for compat in MODES:
        found = completeness(given_text, answer, compat=compat)
        assert 0.0 <= found.score <= 1.0
        assert {*found.missing_elements} == {*found.input_elements} - {*found.output_elements}
        assert all(element.strip() for element in found.input_elements)


@given(TEXTS)
def test_a_text_covers_itself(text: str) -> None:
    for compat in MODES:
        found = completeness(text, text, compat=compat)
        assert found.score == 1.0
        assert not found.missing_elements


@given(TEXTS, TEXTS)
@example("SEEN", "HE")
def test_an_answer_that_repeats_the_question_and_adds_a_line_covers_it_completely(text: str, more: str) -> None:
    # In Mastra's mode a sentence continues on the next line, so that the words there can change how a verb is read.
    found = completeness(text, f"{text}\n{more}")
    assert found.score == 1.0 or not found.input_elements


@given(
    st.lists(st.text("abc", min_size=1, max_size=12), unique=True), st.lists(st.text("abc", min_size=1, max_size=12))
)
def test_coverage_equals_its_definition(wanted: list[str], others: list[str]) -> None:
    def covers(one: str, other: str) -> bool:
        if len(one) <= SHORT:
            return one == other
        shorter, longer = sorted((one, other), key=len)
        return shorter in longer and len(shorter) / len(longer) > OVERLAP

    assert covered(wanted, others) == [any(covers(one, other) for other in others) for one in wanted]


HOSTILE = {
    "one letter": "a" * 100_000,
    "marks": "e" + "\u0301" * 100_000,
    "Thai marks": "ก" + "็" * 100_000,
    "punctuation": "<.!?(" * 20_000,
    "apostrophes": "a'" * 50_000,
    "hyphens": "a-" * 50_000,
    "camels": "aA" * 50_000,
    "joiners": "\u200d" * 100_000,
    "like words": " ".join("ab" * 20 + f"{number:06d}" for number in range(4_000)),
    "long words": " ".join("ab" * 30 + f"{number:06d}" for number in range(3_000)),
    "negations": "not isn't " * 10_000,
    "auxiliaries": "is been " * 12_500,
    "Hangul": "".join(chr(0xAC00 + number * 7919 % 11_172) for number in range(50_000)),
    "ideographs": "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(50_000)),
    "right to left": "שלום \u202eعالم " * 7_500,
    "groups of digits": "1" + "'000" * 25_000 + "0",
    "particles": "のはが" * 30_000,
    "kana and digits": "か1," * 30_000,
    "emoji": "👩‍👩‍👧❤️" * 12_500,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_compared(text: str) -> None:
    # A quadratic algorithm would take hours here, and exceed the suite's timeout.
    for compat in MODES:
        assert completeness(text, text[: len(text) // 2], compat=compat).score <= 1.0
    keywords(text)
    keywords_as_mastra(text)
    assert 0.0 <= dice(text, text[1:]) <= 1.0


def test_a_very_long_word_is_one_element() -> None:
    assert [len(element) for element in elements("x" * (LONGEST * 3))] == [LONGEST * 3]

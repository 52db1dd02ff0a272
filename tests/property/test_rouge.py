"""What must hold of ROUGE-1 whatever the texts are."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from traceweir.scorers.text.rouge import _Words, rouge1_f, tokens

texts = st.text(max_size=60) | st.lists(
    st.sampled_from(
        ["running", "runs", "the", "예약", "했습니다", "สวัสดี", "ยี่", "東京", "café", "x²", "_", "10", "İ", "ß"]
    ),
    max_size=12,
).map(" ".join)
ascii_texts = st.text(st.characters(max_codepoint=127), max_size=200)


@given(texts, texts)
def test_it_lies_between_0_and_1_and_does_not_depend_on_the_side(one: str, other: str) -> None:
    value = rouge1_f(one, other)
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(rouge1_f(other, one), abs=1e-15)


@given(texts, texts)
def test_it_is_1_for_the_same_tokens_in_any_order_and_only_for_them(one: str, other: str) -> None:
    same = bool(tokens(one)) and Counter(tokens(one)) == Counter(tokens(other))
    assert (rouge1_f(one, other) == 1.0) == same


@given(texts)
def test_a_text_is_as_near_to_itself_as_can_be(text: str) -> None:
    assert rouge1_f(text, text) == (1.0 if tokens(text) else 0.0)


@given(texts)
@example("İstanbul ⁵ ㎏ ﬁ")
def test_tokens_hold_neither_blanks_nor_capitals(text: str) -> None:
    for token in tokens(text):
        assert token
        assert not any(character.isspace() for character in token)
        assert token == token.lower()


@given(texts, texts)
def test_a_blank_between_two_texts_keeps_their_tokens_apart(one: str, other: str) -> None:
    assert tokens(f"{one} {other}") == tokens(one) + tokens(other)


@given(ascii_texts, ascii_texts)
def test_on_ascii_it_is_what_the_rouge_score_package_gives(response: str, reference: str) -> None:
    scorer = rouge_scorer.RougeScorer(["rouge1"], use_stemmer=True)
    assert rouge1_f(response, reference) == scorer.score(reference, response)["rouge1"].fmeasure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("नमस्ते।", ["नमस्ते"]),
        ("مَرْحَبًا", ["مَرْحَبًا"]),
        ("กขa๑ข", ["ก", "ขa", "๑", "ข"]),
        ("ー・ア", ["ー", "・", "ア"]),
    ],
)
def test_marks_stay_with_their_word(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_a_word_too_long_to_be_remembered_is_stemmed_all_the_same() -> None:
    assert tokens("a" * 100 + "ing") == ["a" * 100]


def test_what_is_remembered_is_bounded() -> None:
    words = _Words()
    for number in range(_Words.FULL + 10):
        assert words[str(number)] == (str(number),)
        assert len(words) <= _Words.FULL
    before = len(words)
    assert words["x" * 1_000] == ("x" * 1_000,)
    assert len(words) == before

"""Tests the properties of ROUGE-1 for all texts."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceweir.scorers.text.porter import PorterStemmer
from traceweir.scorers.text.rouge import rouge1_f, tokens

texts = st.text(max_size=60) | st.lists(
    st.sampled_from(
        ["running", "runs", "the", "예약", "했습니다", "สวัสดี", "ยี่", "東京", "café", "x²", "_", "10", "İ", "ß"]
    ),
    max_size=12,
).map(" ".join)
SUFFIXES = [
    *("able", "al", "alism", "aliti", "alize", "alli", "ance", "anci", "ant", "ate", "ately", "ation", "ational"),
    *("ative", "ator", "biliti", "bli", "ed", "eed", "eli", "ement", "ence", "enci", "ent", "entli", "er", "ful"),
    *("fulli", "fulness", "ible", "ic", "ical", "icate", "iciti", "ied", "ies", "ing", "ion", "ism", "iti", "ive"),
    *("iveness", "iviti", "ization", "ize", "izer", "ll", "logi", "ment", "ness", "ou", "ous", "ousli", "ousness"),
    *("s", "sses", "tional", "y"),
]
IRREGULAR = [
    *("canning", "cannings", "dying", "exceed", "howe", "inning", "innings", "lying", "news", "outing", "outings"),
    *("proceed", "skies", "sky", "succeed", "tying"),
]
STARTS = ["", "t", "rat", "abat", "sbdix", "toyy", "ayy", "ous", "dy", "fizz", "fall", "4b"]
NUMBERS_AND_LETTERS = ascii_lowercase + digits
words = st.text(NUMBERS_AND_LETTERS, max_size=12) | st.builds(
    lambda start, suffixes: start + "".join(suffixes),
    st.text("aeiouybdlstwxz7", max_size=5),
    st.lists(st.sampled_from(SUFFIXES), min_size=1, max_size=3),
)
ascii_texts = st.text(st.characters(max_codepoint=127), max_size=200)


ROOT = Path(__file__).parents[2]
# One process imports the package: nltk, which it uses, takes a second of CPU.
RUNS_ROUGE_SCORE = pytest.mark.xdist_group("rouge_score")


@cache
def stemmer_of_rouge_score() -> Any:
    from rouge_score.tokenizers import porter

    return porter.PorterStemmer()


@given(texts, texts)
def test_rouge_is_between_0_and_1_and_symmetric(one: str, other: str) -> None:
    value = rouge1_f(one, other)
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(rouge1_f(other, one), abs=1e-15)


@given(texts, texts)
def test_rouge_is_1_exactly_for_the_same_tokens_in_any_order(one: str, other: str) -> None:
    same = bool(tokens(one)) and Counter(tokens(one)) == Counter(tokens(other))
    assert (rouge1_f(one, other) == 1.0) == same


@given(texts)
def test_a_text_has_the_maximum_similarity_with_itself(text: str) -> None:
    assert rouge1_f(text, text) == (1.0 if tokens(text) else 0.0)


@given(texts)
@example("İstanbul ⁵ ㎏ ﬁ")
def test_tokens_contain_neither_white_space_nor_upper_case(text: str) -> None:
    for token in tokens(text):
        assert token
        assert not any(character.isspace() for character in token)
        assert token == token.lower()


@given(texts, texts)
def test_a_blank_between_two_texts_keeps_their_tokens_apart(one: str, other: str) -> None:
    assert tokens(f"{one} {other}") == tokens(one) + tokens(other)


@RUNS_ROUGE_SCORE
@given(ascii_texts, ascii_texts)
def test_rouge_on_ascii_equals_the_rouge_score_package(response: str, reference: str) -> None:
    from rouge_score import rouge_scorer

    scorer = rouge_scorer.RougeScorer(["rouge1"], use_stemmer=True)
    assert rouge1_f(response, reference) == scorer.score(reference, response)["rouge1"].fmeasure


@RUNS_ROUGE_SCORE
@given(words)
def test_stems_equal_those_of_rouge_scores_stemmer(word: str) -> None:
    assert PorterStemmer().stem(word) == stemmer_of_rouge_score().stem(word)


@RUNS_ROUGE_SCORE
def test_words_of_every_rule_have_the_stems_of_rouge_scores_stemmer() -> None:
    built = [start + "".join(suffixes) for start in STARTS for suffixes in product(SUFFIXES, ["", *SUFFIXES])]
    ours = PorterStemmer()
    theirs = stemmer_of_rouge_score()
    assert [(word, ours.stem(word)) for word in IRREGULAR + built] == [
        (word, theirs.stem(word)) for word in IRREGULAR + built
    ]


def test_rouge_does_not_import_nltk() -> None:
    code = (
        "import sys; from traceweir.scorers.text.rouge import rouge1_f; "
        "assert rouge1_f('running', 'run') == 1.0; print('nltk' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


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


def test_a_word_too_long_for_the_cache_is_stemmed() -> None:
    assert tokens("a" * 100 + "ing") == ["a" * 100]


@pytest.mark.large
@pytest.mark.parametrize(
    ("words", "bound"),
    [
        # A cache of all of these words keeps 9 MB.
        ('f"é{number}" for number in range(40_000)', 7_000_000),
        ("letter * 20_000 for letter in ascii_letters", 500_000),
    ],
)
def test_the_token_cache_is_bounded_by_the_number_and_the_length_of_words(words: str, bound: int) -> None:
    # In a process of its own: a table of all names of a process, which grows by megabytes at once, counts too.
    code = (
        "from string import ascii_letters; from tests.support.memory import bytes_kept; "
        f"from traceweir.scorers.text.rouge import tokens; print(bytes_kept(lambda: [tokens(word) for word in ({words})]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(ran.stdout) < bound


def test_a_word_has_the_same_tokens_after_the_cache_was_exceeded() -> None:
    before = tokens("running东京")
    for number in range(20_000):
        tokens(f"é{number}")
    assert tokens("running东京") == before

"""Tests the embedded text of a trace, and the embedder that needs no model."""

import unicodedata

import numpy as np
import pytest

from traceweir.scorers.embedding import embedded_text
from traceweir.scorers.hashing_embedder import HashingEmbedder

GOLDEN = {38: 0.539, 92: -0.3184, 97: -0.3184, 133: 0.3184, 150: 0.3184, 217: -0.3184, 226: 0.3184, 243: -0.3184}
TRACE = "Rebook the passenger on the evening flight. Look up the reservation. Offer the 19:40 departure."


def vector(text: str) -> np.ndarray:
    embedded: np.ndarray = HashingEmbedder().embed([text])[0]
    return embedded


def likeness(a: str, b: str) -> float:
    return float(vector(a) @ vector(b))


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (["look", "done"], "goal look done"),
        (["look", None, "done"], "goal look  done"),
        (["look", ""], "goal look "),
        ([None, None], "goal  "),
        ([], "goal "),
    ],
)
def test_a_step_without_content_leaves_a_space_as_in_knowledgepulse(contents: list[str | None], text: str) -> None:
    assert embedded_text("goal", contents) == text


def test_every_vector_has_length_one_and_a_text_without_words_is_zero() -> None:
    vectors = HashingEmbedder().embed([TRACE, "한국어 문장입니다", "a", "", "... !?", "\ud800 lone surrogate"])
    assert vectors.shape == (6, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0, 0, 1], atol=1e-6)


def test_an_empty_list_of_texts_has_no_rows() -> None:
    assert HashingEmbedder().embed([]).shape == (0, 384)


def test_the_vector_of_a_text_never_changes() -> None:
    # Vectors are kept in tables and compared with those of other machines: a change here needs a new id.
    assert HashingEmbedder().id == "hashing@1"
    places = {
        int(place): round(float(value), 4) for place, value in enumerate(vector("the cat saw the 고양이")) if value
    }
    assert places == GOLDEN


def test_the_vector_of_a_text_does_not_depend_on_its_batch() -> None:
    texts = [TRACE, "", "write a poem", TRACE, "고양이", "a a a a"]
    together = HashingEmbedder().embed(texts)
    assert all(np.array_equal(row, vector(text)) for row, text in zip(together, texts, strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Cancel MY Flight", "cancel my flight"),
        ("STRASSE", "straße"),
        ("환불해 주세요", unicodedata.normalize("NFD", "환불해 주세요")),
        ("ＡＢＣ１", "abc1"),
        ("refund, the order!", "refund the order"),
    ],
)
def test_case_normal_form_and_punctuation_do_not_matter(one: str, other: str) -> None:
    assert np.array_equal(vector(one), vector(other))


def test_a_near_duplicate_is_near_and_another_subject_is_far() -> None:
    assert likeness(TRACE, TRACE.replace("evening", "morning")) > 0.7
    assert abs(likeness(TRACE, "Write unit tests that cover the parser of dates")) < 0.3


def test_the_order_of_words_matters_less_than_the_words() -> None:
    assert 0.3 < likeness("dog bites man", "man bites dog") < 0.9


def test_repeating_a_word_has_little_effect() -> None:
    assert likeness("retry the payment", "retry retry retry retry the payment") > 0.6


def test_scripts_without_spaces_are_compared_by_character() -> None:
    assert likeness("航班已取消", "航班取消") > 0.5


@pytest.mark.slow
def test_a_text_of_combining_marks_only_has_a_vector() -> None:
    """`unicodedata.normalize` alone would take minutes for this text, during which no other session is scored."""
    assert HashingEmbedder().embed(["a" + "\u0301\u0323" * 200_000]).shape[0] == 1

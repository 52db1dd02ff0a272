"""Brevity passes the checks of every scorer, and its values are those that were calculated by hand."""

import pytest
from traceweir_brevity import Brevity

from traceweir.schemas.invocation import Content, Invocation
from traceweir.scorers import Subject
from traceweir.scorers.testing import CHECKS, Check, sample_subjects


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_brevity_is_a_good_scorer(check: Check) -> None:
    check(Brevity(max_words=20), sample_subjects())


@pytest.mark.parametrize(("answer", "value"), [("", 1.0), ("one two", 1.0), ("one two three four", 0.5)])
def test_an_answer_of_twice_the_words_is_worth_half(answer: str, value: float) -> None:
    subject = Subject(invocation=Invocation(final_response=Content.of(answer)))
    assert Brevity(max_words=2).score(subject).value == value

"""Tests infinitives as compromise 14 computes them; the expected words are recorded results of compromise."""

from __future__ import annotations

import pytest

from traceweir.scorers.text.elements import elements, elements_as_mastra, tokens_as_mastra
from traceweir.scorers.text.verbs.compromise.contexts import WordOutcome, outcomes


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It never arrives.", "it does not never arrive"),
        ("They never arrive.", "they do not never arrive"),
        ("You don't break eggs.", "you does not break eggs"),
        ("I can't break eggs.", "i do not break eggs"),
        ("The dogs don't break eggs.", "the dogs do not break eggs"),
        ("The tests which don't pass matter.", "the tests which do not pass matter"),
        ("Those did not arrive.", "those do not arrive"),
        ("These did not arrive.", "these does not arrive"),
        ("There's no place like home.", "there does not be no place like home"),
        ("It isn't there.", "it does be not there"),
        ("There is no food.", "there does not be no food"),
        ("There are no people.", "there be no people"),
        ("We use non-renewable energy.", "we do not use non renewable energy"),
        ("Non-renewable energy is cheap.", "non renewable energy be cheap"),
        ("I am going to go home.", "i go home"),
        ("They tilt it.", "they tild it"),
        ("running", "run"),
        ("binding", "binding"),
        ("She has been working.", "she work"),
        ("The report has been written.", "the report write"),
        ("What did you do?", "what do you do"),
    ],
)
def test_a_text_has_the_words_that_compromise_returns(text: str, left: str) -> None:
    assert {*elements_as_mastra(text)} == {*left.split()}


@pytest.mark.parametrize(
    ("text", "word", "outcome"),
    [
        ("it was deleted by him", "was", WordOutcome.DROPPED),
        ("it was deleted by him", "deleted", WordOutcome.CHANGED),
        ("the server was very slow", "was", WordOutcome.CHANGED),
        ("the deleted files are there", "deleted", WordOutcome.KEPT),
        ("she wants it", "wants", WordOutcome.CHANGED),
        ("can you help me?", "can", WordOutcome.KEPT),
        ("they can help me", "can", WordOutcome.DROPPED),
    ],
)
def test_the_neighbours_of_a_verb_decide_its_outcome(text: str, word: str, outcome: WordOutcome) -> None:
    tokens = tokens_as_mastra(text)
    assert outcomes(tokens)[[token.text for token in tokens].index(word)] is outcome


def test_recorded_forms_only_apply_with_compat() -> None:
    assert elements("They tilt it, it never arrives.") == ["they", "tilt", "it", "never", "arrive"]


def test_a_text_of_marks_has_no_outcomes() -> None:
    assert outcomes([]) == []
    assert elements_as_mastra("... -- !") == []

"""Measures content similarity: how similar the wording of the answer is to that of the question."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.text.folding import with_plain_numbers, without_vowel_signs
from traceweir.scorers.text.javascript import WHITE_SPACE, utf16_units
from traceweir.scorers.text.messages import Compat, question_and_answer
from traceweir.scorers.text.scripts import script_details


class ContentSimilarity(Scorer):
    """Returns Dice's coefficient of the character bigrams of the question and the final response, from 0 to 1.

    White space, Hebrew and Arabic vowel signs and the grouping of numbers are ignored. Equal texts have the value 1,
    also if both are empty. If the texts differ and either has fewer than two characters, the value is 0.

    With `compat: "mastra"` this metric is `createContentSimilarityScorer` of @mastra/evals 1.10. The values differ
    where a character has two encodings (NFC and NFD), where a character is outside the Basic Multilingual Plane, and
    where a message has several text parts.

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> turn = Invocation(user_content=Content.of("the cat sat"), final_response=Content.of("The cat sat down"))
    >>> ContentSimilarity().score(Subject(invocation=turn)).value
    0.8
    """

    version: ClassVar[str] = "2"

    ignore_case: bool = True
    ignore_whitespace: bool = True
    """Accepted because Mastra's configs can contain this option. As in Mastra, either value ignores white space."""
    compat: Compat = None
    """The implementation whose values this metric reproduces: Mastra's, or Traceweir's own if None."""

    def score(self, subject: Subject) -> Measurement:
        """Compares the invocation's question with its answer."""
        texts = question_and_answer(subject, self.compat)
        value = dice(*map(self._characters, texts))
        return Measurement(
            value=value,
            rationale=f"{value:.3f} of the pairs of neighbouring characters are common to both texts",
            details=script_details(self.compat, *texts),
        )

    def _characters(self, text: str) -> str:
        if self.compat is None:
            text = normal_form("NFC", without_vowel_signs(with_plain_numbers(text)))
            return WHITE_SPACE.sub("", text.casefold() if self.ignore_case else text)
        return utf16_units(WHITE_SPACE.sub("", text.lower() if self.ignore_case else text))


def dice(one: str, other: str) -> float:
    """Returns Dice's coefficient: twice the number of common character bigrams, divided by the number of all bigrams.

    A bigram that occurs twice in both texts counts twice.

    >>> dice("night", "nacht")
    0.25
    """
    if one == other:
        return 1.0
    if len(one) < 2 or len(other) < 2:
        return 0.0
    common = Counter(map(str.__add__, one, one[1:])) & Counter(map(str.__add__, other, other[1:]))
    return 2 * common.total() / (len(one) + len(other) - 2)

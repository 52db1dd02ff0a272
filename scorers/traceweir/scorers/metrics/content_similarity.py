"""Content similarity: how alike are the wordings of the question and the answer?"""

from __future__ import annotations

from collections import Counter

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.text.javascript import WHITE_SPACE, utf16_units
from traceweir.scorers.text.messages import Compat, question_and_answer


class ContentSimilarity(Scorer):
    """Dice's coefficient of the pairs of neighbouring characters of the question and the final response, from 0 to 1.

    White space never counts. Equal texts, empty ones among them, give 1; otherwise a text of one character or none gives 0.
    With `compat: "mastra"` it is `createContentSimilarityScorer` of @mastra/evals 1.10, which differs where a character is written in two
    ways (NFC and NFD), is not of the Basic Multilingual Plane, or where a message has several text parts.

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> turn = Invocation(user_content=Content.of("the cat sat"), final_response=Content.of("The cat sat down"))
    >>> ContentSimilarity().score(Subject(invocation=turn)).value
    0.8
    """

    ignore_case: bool = True
    ignore_whitespace: bool = True
    """Accepted for Mastra's configs; white space does not count either way, as there."""
    compat: Compat = None
    """Whose numbers to give."""

    def score(self, subject: Subject) -> Measurement:
        """Compare the invocation's question with its answer."""
        question, answer = (self._characters(text) for text in question_and_answer(subject, self.compat))
        value = dice(question, answer)
        return Measurement(
            value=value, rationale=f"{value:.3f} of the pairs of neighbouring characters are common to both texts"
        )

    def _characters(self, text: str) -> str:
        if self.compat is None:
            text = normal_form("NFC", text)
        text = WHITE_SPACE.sub("", text.lower() if self.ignore_case else text)
        return text if self.compat is None else utf16_units(text)


def dice(one: str, other: str) -> float:
    """Twice the number of common pairs of neighbouring characters by that of all; a pair that comes twice on both sides counts twice.

    >>> dice("night", "nacht")
    0.25
    """
    if one == other:
        return 1.0
    if len(one) < 2 or len(other) < 2:
        return 0.0
    common = Counter(map(str.__add__, one, one[1:])) & Counter(map(str.__add__, other, other[1:]))
    return 2 * common.total() / (len(one) + len(other) - 2)

"""Measures completeness: the share of the words of the question that the answer covers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import ClassVar

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.text.asking import asks, denies, is_asking, without_asking
from traceweir.scorers.text.coverage import covered
from traceweir.scorers.text.elements import elements, elements_as_mastra
from traceweir.scorers.text.messages import Compat, question_and_answer, shown
from traceweir.scorers.text.scripts import script_details

MAX_INLINE_CHARACTERS = 50_000
"""Characters of question and answer together. Longer texts are compared in a thread, so that other sessions go on."""

MAX_BARE_LETTERS = 20
"""Letters and digits of an answer that can be right without a word of the question: "At ten."."""
MAX_BARE_WORDS = 2
"""Words between blanks of such an answer: three can be a sentence on something else, such as "Bananas are yellow."."""
_CHARACTER_LETTERS = 3
"""Letters as which a Chinese, Japanese or Korean character counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementComparison:
    """Holds the result of comparing the elements of two texts."""

    score: float
    """Share of the input's elements that the output covers, from 0 to 1.

    If the input has no elements: 1 if the output has none either, else 0.
    """
    input_elements: list[str]
    output_elements: list[str]
    missing_elements: list[str]
    """Elements of the input that are not in the output unchanged; longer or shorter forms can still cover them."""


def completeness(question: str, answer: str, *, compat: Compat = None) -> ElementComparison:
    """Compares the elements of a question with those of an answer.

    >>> completeness("the lazy dogs", "A dog lazes").missing_elements
    ['the', 'lazy', 'dogs']

    Raises:
        TextGrowsTooMuchError: a text consists of ligatures that stand for many letters each; not with `compat`.
    """
    if compat == "mastra":
        input_elements = elements_as_mastra(question)
        output_elements = elements_as_mastra(answer)
    else:
        input_elements = _expected_elements(question)
        output_elements = elements(answer)
    in_output = dict.fromkeys(output_elements)
    score = (
        sum(covered(input_elements, output_elements)) / len(input_elements)
        if input_elements
        else float(not output_elements)
    )
    return ElementComparison(
        score=score,
        input_elements=input_elements,
        output_elements=output_elements,
        missing_elements=[element for element in input_elements if element not in in_output],
    )


def _expected_elements(question: str) -> list[str]:
    """Returns the elements of a question without those that only ask; all of them if there are no others.

    Those in Latin letters stay: the rest of "What is the price?" is mostly words that every answer has.
    """
    found = [each for each in elements(without_asking(question)) if each.isascii() or not is_asking(each)]
    return found or elements(question)


def _is_bare_answer(question: str, answer: str, comparison: ElementComparison) -> bool:
    """Returns whether the answer to a question is one or two words that the question does not have, and no refusal."""
    if comparison.score > 0 or not comparison.output_elements or len(answer.split()) > MAX_BARE_WORDS:
        return False
    length = sum(_CHARACTER_LETTERS if "\u3040" <= each <= "\ud7a3" else 1 for each in answer if each.isalnum())
    return length <= MAX_BARE_LETTERS and not denies(answer) and asks(question, elements(question))


class Completeness(Scorer):
    """Returns the share of the user's words that the final response covers, from 0 to 1.

    Both texts are split into elements: distinct words, with English verbs as infinitives; see `elements`. An equal
    element covers an element of the input. An element of more than three letters is also covered by an element that
    contains it or is contained in it, if the shorter has more than 60 % of the longer's letters; see `covered`. Words
    that only ask, such as 언제, are not expected in the answer, except those in Latin letters. An answer of one or
    two words without any word of the question has no value, if it is no refusal. An invocation without a final response
    counts as an invocation with an empty response.

    With `compat: "mastra"` this metric is `createCompletenessScorer` of @mastra/evals 1.10: ASCII letters and digits
    only, only the last text part of a message, and 1 if neither text has elements. This metric recognises English
    verbs by their neighbouring words, so its values differ in the second decimal from those that Mastra computes with
    compromise.

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> question, answer = Content.of("Explain photosynthesis"), Content.of("Photosynthesis is ...")
    >>> turn = Invocation(user_content=question, final_response=answer)
    >>> Completeness().score(Subject(invocation=turn)).value
    0.5
    """

    version: ClassVar[str] = "2"

    compat: Compat = None
    """The implementation whose values this metric reproduces: Mastra's, or Traceweir's own if None."""

    def score(self, subject: Subject) -> Measurement | Awaitable[Measurement]:
        """Compares the invocation's question with its answer."""
        question, answer = question_and_answer(subject, self.compat)
        if len(question) + len(answer) > MAX_INLINE_CHARACTERS:
            return asyncio.to_thread(self._measure, question, answer)
        return self._measure(question, answer)

    def _measure(self, question: str, answer: str) -> Measurement:
        comparison = completeness(question, answer, compat=self.compat)
        if not comparison.input_elements and self.compat is None:
            raise MissingInput("the user content has no words that a response could cover")
        if self.compat is None and _is_bare_answer(question, answer, comparison):
            raise MissingInput(
                "the answer is short and has no word of the question, as a right answer of one or two words has none; a "
                "criterion that asks a judge, such as relevance_to_query, can tell"
            )
        count = len(comparison.input_elements)
        missing = len(comparison.missing_elements)
        return Measurement(
            value=comparison.score,
            rationale=f"{round(comparison.score * count)} of {count} elements of the input are covered; "
            f"{missing} {'does' if missing == 1 else 'do'} not occur unchanged",
            details={
                "input_elements": shown(comparison.input_elements),
                "output_elements": shown(comparison.output_elements),
                "missing_elements": shown(comparison.missing_elements),
                "element_counts": {"input": count, "output": len(comparison.output_elements)},
                **script_details(self.compat, question, answer),
            },
        )

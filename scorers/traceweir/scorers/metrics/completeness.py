"""Completeness: how much of what the user named does the answer take up?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.text.coverage import covered
from traceweir.scorers.text.elements import elements, elements_as_mastra
from traceweir.scorers.text.messages import Compat, question_and_answer, shown

LONG = 50_000
"""Characters of both texts together, from which on they are compared beside the other sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two texts compared."""

    score: float
    """The share of the input's elements that the output covers, from 0 to 1; if the input has none, 1 if the output has none either."""
    input_elements: list[str]
    output_elements: list[str]
    missing_elements: list[str]
    """Elements of the input that are not among the output's; a longer or shorter form of one may cover it all the same."""


def completeness(given: str, answer: str, *, compat: Compat = None) -> Compared:
    """How much of one text another covers.

    >>> completeness("the lazy dogs", "A dog lazes").missing_elements
    ['the', 'lazy', 'dogs']
    """
    cut = elements_as_mastra if compat == "mastra" else elements
    ours, theirs = cut(given), cut(answer)
    among = dict.fromkeys(theirs)
    score = sum(covered(ours, theirs)) / len(ours) if ours else float(not theirs)
    return Compared(
        score=score,
        input_elements=ours,
        output_elements=theirs,
        missing_elements=[element for element in ours if element not in among],
    )


class Completeness(Scorer):
    """The share of the user's words that the final response takes up, from 0 to 1.

    Both texts are cut into elements, each counted once: words, English verbs as infinitives; see `elements`. An element of the input is
    covered by an equal one, and if it has more than three letters by one that contains it or is contained in it, where the shorter has
    more than 60 % of the longer's letters. An invocation without a final response counts as one with an empty text.

    With `compat: "mastra"` it is `createCompletenessScorer` of @mastra/evals 1.10: ASCII letters and digits only, a message's last text
    part only, and a text without elements on both sides gives 1. English verbs are told from other words by their neighbours, so that
    values differ in the second decimal from those that compromise gives.

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> turn = Invocation(user_content=Content.of("Explain photosynthesis"), final_response=Content.of("Photosynthesis is ..."))
    >>> Completeness().score(Subject(invocation=turn)).value
    0.5
    """

    compat: Compat = None
    """Whose numbers to give."""

    def score(self, subject: Subject) -> Measurement | Awaitable[Measurement]:
        """Compare the invocation's question with its answer."""
        given, answer = question_and_answer(subject, self.compat)
        if len(given) + len(answer) > LONG:
            return asyncio.to_thread(self._measured, given, answer)
        return self._measured(given, answer)

    def _measured(self, given: str, answer: str) -> Measurement:
        found = completeness(given, answer, compat=self.compat)
        if not found.input_elements and self.compat is None:
            raise MissingInput("the user content has no words that a response could cover")
        count, missing = len(found.input_elements), len(found.missing_elements)
        return Measurement(
            value=found.score,
            rationale=f"{found.score:.3f} of {count} elements of the input are covered; {missing} are not there as they are",
            details={
                "input_elements": shown(found.input_elements),
                "output_elements": shown(found.output_elements),
                "missing_elements": shown(found.missing_elements),
                "element_counts": {"input": count, "output": len(found.output_elements)},
            },
        )

"""Measures response match: the overlap of the answer's words with those of the expected answer (ROUGE-1)."""

from __future__ import annotations

from typing import ClassVar

from traceweir.schemas.base import JsonObject
from traceweir.schemas.reasoning_parts import with_reasoning
from traceweir.scorers.base import AdkCompat, Measurement, MissingInput, NeededReference, Scorer, Subject
from traceweir.scorers.text.rouge import rouge1_f


class ResponseMatch(Scorer):
    """Returns ROUGE-1's F-measure of the final response and the reference's final response, from 0 to 1.

    An invocation without a final response counts as an empty response. The value is 0 if either text is empty.
    This is `response_match_score` of Google ADK 2.13 (`evaluation/final_response_match_v1.py`).

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> from traceweir.schemas.reference import Reference
    >>> answered = Invocation(final_response=Content.of("Ships today"))
    >>> expected = Reference(final_response=Content.of("It ships today."))
    >>> ResponseMatch().score(Subject(invocation=answered, reference=expected)).value
    0.8
    """

    default_threshold: ClassVar[float | None] = 0.8

    compat: AdkCompat = None

    @property
    def needed_reference(self) -> NeededReference:
        """The expected response."""
        return NeededReference(("final_response",))

    def score(self, subject: Subject) -> Measurement:
        """Compares the final response with the reference's."""
        if subject.invocation is None or subject.reference is None or subject.reference.final_response is None:
            raise MissingInput("no reference says which final response was expected")
        response = subject.response
        expected = subject.reference.final_response
        if self.compat is not None:
            said = with_reasoning(subject.invocation.final_response)
            response = said.text if said is not None else response
            expected = with_reasoning(expected) or expected
        value = rouge1_f(response, expected.text)
        return Measurement(value=value, rationale=f"ROUGE-1 F-measure {value:.3f} with the expected response")

    def decisive_options(self) -> JsonObject:
        """Returns the options; without `compat` they are what they were before there was such an option."""
        options = super().decisive_options()
        return options if self.compat is not None else {name: options[name] for name in options if name != "compat"}

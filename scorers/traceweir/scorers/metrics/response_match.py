"""Measures response match: the overlap of the answer's words with those of the expected answer (ROUGE-1)."""

from __future__ import annotations

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
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

    def score(self, subject: Subject) -> Measurement:
        """Compares the final response with the reference's."""
        if subject.invocation is None or subject.reference is None or subject.reference.final_response is None:
            raise MissingInput("no reference says which final response was expected")
        value = rouge1_f(subject.response, subject.reference.final_response.text)
        return Measurement(value=value, rationale=f"ROUGE-1 F-measure {value:.3f} with the expected response")

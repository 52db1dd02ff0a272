"""Defines Reference: the expectations of an invocation."""

from __future__ import annotations

from traceweir.schemas.base import AdkModel
from traceweir.schemas.invocation import Content, FunctionCall, RetrievedChunk, Rubric
from traceweir.schemas.normal_form import normal_form


class Reference(AdkModel):
    """The expectations of an invocation: an answer or facts, tool calls, context, rubrics, guidelines.

    An absent field means that there is no expectation. An empty list of tool uses means that no tool call is expected.
    """

    reference_id: str | None = None
    app_name: str | None = None
    question: str | None = None
    final_response: Content | None = None
    expected_facts: list[str] | None = None
    tool_uses: list[FunctionCall] | None = None
    retrieved_context: list[RetrievedChunk] | None = None
    rubrics: list[Rubric] | None = None
    guidelines: list[str] | None = None
    """Rules for the answer, each in plain words."""


def normalised_question(text: str) -> str:
    """Returns a form in which equal questions are equal: NFKC, case-folded, each run of white space as a single space.

    >>> normalised_question("  Where IS\\nmy bag? ")
    'where is my bag?'
    """
    return " ".join(normal_form("NFKC", text).casefold().split())

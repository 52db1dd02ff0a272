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
    """Id of the reference, by which events name it."""
    app_name: str | None = None
    """The app to which `question` belongs; null for all apps."""
    question: str | None = None
    """The question for which the reference counts, compared without regard to case and spaces."""
    final_response: Content | None = None
    """The expected answer."""
    expected_facts: list[str] | None = None
    """Facts that the answer must state."""
    tool_uses: list[FunctionCall] | None = None
    """The expected tool calls, in order; an empty list means that none is expected."""
    retrieved_context: list[RetrievedChunk] | None = None
    """The documents that should be retrieved."""
    rubrics: list[Rubric] | None = None
    """Properties that the answer or the tool calls should have."""
    guidelines: list[str] | None = None
    """Rules for the answer, each in plain words."""


def normalised_question(text: str) -> str:
    """Returns a form in which equal questions are equal: NFKC, case-folded, each run of white space as a single space.

    >>> normalised_question("  Where IS\\nmy bag? ")
    'where is my bag?'
    """
    return " ".join(normal_form("NFKC", text).casefold().split())

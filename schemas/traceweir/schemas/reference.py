"""Defines Reference: the expectations of an invocation, and of its session."""

from __future__ import annotations

from collections.abc import Iterable

from traceweir.schemas.base import AdkModel
from traceweir.schemas.invocation import Content, FunctionCall, RetrievedChunk, Rubric
from traceweir.schemas.normal_form import normal_form


class Reference(AdkModel):
    """The expectations of an invocation: an answer or facts, tool calls, context, rubrics, guidelines.

    `task` and `expected_outcome` are about the whole session; the reference of any of its invocations can state them.
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
    task: str | None = None
    """What the user wants to reach in the session."""
    expected_outcome: str | None = None
    """What must be true at the end of the session."""


CASE_LABEL = "case_id"
"""The label of an invocation that names the eval case which its session plays."""


def case_reference_id(case: str, number: int) -> str:
    """Returns the id of the reference of a turn of an eval case, which is numbered from 0.

    >>> case_reference_id("rebooking", 0)
    'rebooking#1'
    """
    return f"{case}#{number + 1}"


def session_reference(references: Iterable[Reference | None]) -> Reference | None:
    """Returns what the references of a session's invocations expect of the session; None if they expect nothing of it.

    The first task and the first expected outcome count, and all rubrics and guidelines, equal ones once.

    >>> first, second = Reference(task="Book a table."), Reference(task="Other", guidelines=["Be polite."])
    >>> found = session_reference([None, first, second])
    >>> found.task, found.guidelines, session_reference([None])
    ('Book a table.', ['Be polite.'], None)
    """
    stated = [reference for reference in references if reference is not None]
    rubrics: list[Rubric] = []
    for rubric in (each for reference in stated for each in reference.rubrics or ()):
        if rubric not in rubrics:
            rubrics.append(rubric)
    guidelines = list(dict.fromkeys(each for reference in stated for each in reference.guidelines or ()))
    task = next((reference.task for reference in stated if reference.task), None)
    outcome = next((reference.expected_outcome for reference in stated if reference.expected_outcome), None)
    if not (rubrics or guidelines or task or outcome):
        return None
    return Reference(task=task, expected_outcome=outcome, rubrics=rubrics or None, guidelines=guidelines or None)


def normalised_question(text: str) -> str:
    """Returns a form in which equal questions are equal: NFKC, case-folded, each run of white space as a single space.

    >>> normalised_question("  Where IS\\nmy bag? ")
    'where is my bag?'
    """
    return " ".join(normal_form("NFKC", text).casefold().split())

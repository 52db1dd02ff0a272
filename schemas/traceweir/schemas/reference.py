"""Reference: what was expected of an invocation."""

from __future__ import annotations

import re

from traceweir.schemas.base import AdkModel
from traceweir.schemas.invocation import Content, FunctionCall, RetrievedChunk, Rubric
from traceweir.schemas.normal_form import normal_form


class Reference(AdkModel):
    """What was expected: an answer or facts, tool uses, retrieved context, rubrics. A field that is absent was not said.

    An empty list of tool uses says that none were expected; an absent one says nothing.
    """

    reference_id: str | None = None
    app_name: str | None = None
    question: str | None = None
    final_response: Content | None = None
    expected_facts: list[str] | None = None
    tool_uses: list[FunctionCall] | None = None
    retrieved_context: list[RetrievedChunk] | None = None
    rubrics: list[Rubric] | None = None


def normalised_question(text: str) -> str:
    """The form in which two questions are the same: NFKC, case-folded, white space runs as one blank.

    >>> normalised_question("  Where IS\\nmy bag? ")
    'where is my bag?'
    """
    return re.sub(r"\s+", " ", normal_form("NFKC", text).casefold()).strip()

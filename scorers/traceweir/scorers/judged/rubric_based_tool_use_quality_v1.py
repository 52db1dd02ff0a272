"""Measures the quality of tool use: the share of the rubrics that the tool calls meet."""

from __future__ import annotations

from traceweir.scorers.base import Subject
from traceweir.scorers.judged.base import JudgedTurn
from traceweir.scorers.judged.evidence import question_of, tool_steps_of, tools_of
from traceweir.scorers.judged.rubrics import RubricBased


class RubricBasedToolUseQuality(JudgedTurn, RubricBased):
    """Returns the share of the rubrics that the tool calls meet, from 0 to 1.

    The judge reads the calls with their responses. Rubrics of invocations and references count if their type is
    `TOOL_USE_QUALITY`. This is `rubric_based_tool_use_quality_v1` of Google ADK 2.13, with Traceweir's own prompt.

    >>> RubricBasedToolUseQuality().rubric_type
    'TOOL_USE_QUALITY'
    """

    metric = "rubric_based_tool_use_quality_v1"
    rubric_type = "TOOL_USE_QUALITY"

    def prompt_data(self, subject: Subject) -> dict[str, str]:
        """Returns the tools, the question, and the calls with their responses."""
        invocation = self.read_invocation(subject)
        return {
            "tools": tools_of(invocation),
            "question": question_of(invocation),
            "steps": tool_steps_of(invocation),
        }

"""Measures the quality of the final response: the share of the rubrics that the answer meets."""

from __future__ import annotations

from traceweir.scorers.base import Subject
from traceweir.scorers.judged.base import JudgedTurn
from traceweir.scorers.judged.evidence import (
    answer_of,
    grounding_of,
    instructions_of,
    question_of,
    retrieved_context_of,
    steps_of,
    tool_steps_of,
    tools_of,
)
from traceweir.scorers.judged.rubrics import RubricBased


class RubricBasedFinalResponseQuality(JudgedTurn, RubricBased):
    """Returns the share of the rubrics that the final response meets, from 0 to 1.

    The judge also reads the instructions, tools, steps and grounding of the response. Rubrics of invocations and
    references count if their type is `FINAL_RESPONSE_QUALITY`. This is `rubric_based_final_response_quality_v1` of
    Google ADK 2.13, with Traceweir's own prompt.

    >>> short = {"rubric_id": "short", "rubric_content": {"text_property": "The answer is one sentence."}}
    >>> [rubric.rubric_id for rubric in RubricBasedFinalResponseQuality(rubrics=[short]).rubrics]
    ['short']
    """

    metric = "rubric_based_final_response_quality_v1"
    rubric_type = "FINAL_RESPONSE_QUALITY"
    include_intermediate_responses_in_final: bool = False
    """Whether the agent's intermediate responses count as part of its final response."""

    def prompt_data(self, subject: Subject) -> dict[str, str]:
        """Returns the instructions, tools, question, steps, grounding and the response."""
        invocation = self.read_invocation(subject)
        grounding = [grounding_of(steps_of(invocation)), retrieved_context_of(invocation)]
        return {
            "instructions": instructions_of(invocation),
            "tools": tools_of(invocation),
            "question": question_of(invocation),
            "steps": tool_steps_of(invocation),
            "grounding": "\n".join(text for text in grounding if text),
            "response": answer_of(invocation, self.include_intermediate_responses_in_final),
        }

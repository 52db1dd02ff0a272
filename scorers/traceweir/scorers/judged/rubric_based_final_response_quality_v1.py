"""Quality of the final response: does the answer have the properties that rubrics ask for?"""

from __future__ import annotations

from traceweir.schemas.invocation import Invocation
from traceweir.scorers.judged.evidence import (
    answer_of,
    grounding_of,
    instructions_of,
    question_of,
    retrieved_by,
    steps_of,
    tool_steps_of,
    tools_of,
)
from traceweir.scorers.judged.rubrics import RubricBased


class RubricBasedFinalResponseQuality(RubricBased):
    """The share of the rubrics that the final response meets, by a judge that also sees what it rests on.

    Rubrics of invocations and references count if their type is `FINAL_RESPONSE_QUALITY`.
    This is `rubric_based_final_response_quality_v1` of Google ADK 2.13, with a prompt of our own.

    >>> short = {"rubric_id": "short", "rubric_content": {"text_property": "The answer is one sentence."}}
    >>> [rubric.rubric_id for rubric in RubricBasedFinalResponseQuality(rubrics=[short]).rubrics]
    ['short']
    """

    metric = "rubric_based_final_response_quality_v1"
    rubric_type = "FINAL_RESPONSE_QUALITY"
    include_intermediate_responses_in_final: bool = False
    """Whether what the agent said before its final response counts as part of it."""

    def material(self, invocation: Invocation) -> dict[str, str]:
        """Instructions, tools, question, steps, grounding and the response."""
        grounding = [grounding_of(steps_of(invocation)), retrieved_by(invocation)]
        return {
            "instructions": instructions_of(invocation),
            "tools": tools_of(invocation),
            "question": question_of(invocation),
            "steps": tool_steps_of(invocation),
            "grounding": "\n".join(text for text in grounding if text),
            "response": answer_of(invocation, self.include_intermediate_responses_in_final),
        }

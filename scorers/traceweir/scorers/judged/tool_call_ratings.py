"""Defines the ratings of the tool calls of an invocation under the names that users of MLflow 3 know."""

from __future__ import annotations

import json
from collections.abc import Mapping

from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.scorers.judged.evidence import UNKNOWN_TOOLS, tool_steps_of, tools_of
from traceweir.scorers.judged.yes_no_rating import YesNoRating, request_of

NO_EXPECTATION = "No expectation is stated."


class ToolCallCorrectness(YesNoRating):
    """Returns 1 if the tool calls and their arguments are right for the request, else 0.

    If the reference states tool calls, the calls of the agent are compared with them by their meaning, without regard
    to their order. For an exact comparison, or one of the order, use `tool_trajectory_avg_score`: it asks no judge.

    >>> ToolCallCorrectness().judge_model_options.num_samples
    1
    """

    metric = template = "tool_call_correctness"
    version = "1"
    adjective = "right in its tool calls"

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the tools, the request, the expected calls, and the calls with their responses."""
        expected = reference.tool_uses if reference is not None else None
        calls = [call.model_dump(include={"name", "args"}, exclude_none=True) for call in expected or ()]
        return {
            "tools": tools_of(invocation, unknown=UNKNOWN_TOOLS),
            "question": request_of(invocation, reference),
            "expected": NO_EXPECTATION if expected is None else json.dumps(calls, ensure_ascii=False, indent=2),
            "steps": tool_steps_of(invocation),
        }


class ToolCallEfficiency(YesNoRating):
    """Returns 1 if no tool call of the invocation is wasted, also if there is none, else 0.

    >>> ToolCallEfficiency(judge_model_options={"judge_model": "openai/gpt-4o-mini"}).judge_model
    'openai/gpt-4o-mini'
    """

    metric = template = "tool_call_efficiency"
    version = "1"
    adjective = "efficient in its tool calls"

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the tools, the request, and the calls with their responses."""
        return {
            "tools": tools_of(invocation, unknown=UNKNOWN_TOOLS),
            "question": request_of(invocation, reference),
            "steps": tool_steps_of(invocation),
        }

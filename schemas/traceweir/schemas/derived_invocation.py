"""Derives an invocation from a reasoning trace, for a session that contains traces only."""

from __future__ import annotations

from traceweir.schemas.invocation import Content, FunctionCall, IntermediateData, Invocation, Part
from traceweir.schemas.trace import ReasoningTrace

_CALLS = ("tool_call", "error_recovery")


def derived_invocation(trace: ReasoningTrace) -> Invocation:
    """Returns an invocation with the objective, the tool calls and the result of a trace.

    A tool call is a step with a tool of type `tool_call`, or of type `error_recovery` for a call that recovers from an
    error. An `observation` with a tool is the response to a call.
    """
    uses = [
        FunctionCall.trusted(id=None, name=step.tool.name, args=step.input, model_call_id=None)
        for step in trace.steps
        if step.tool is not None and step.type in _CALLS
    ]
    return Invocation.trusted(
        invocation_id=trace.id,
        user_content=_message(trace.task.objective, "user"),
        final_response=_message(trace.outcome.result_summary, "model"),
        intermediate_data=IntermediateData.trusted(tool_uses=uses, tool_responses=[], intermediate_responses=[]),
        creation_timestamp=trace.created_at.timestamp(),
        rubrics=None,
        app_details=None,
        retrieved_context=None,
        token_usage=None,
        latency_seconds=None,
        duration=None,
        inference_call_count=None,
        unread=None,
        error=None,
        labels=None,
        derived=True,
    )


def _message(text: str, role: str) -> Content:
    part = Part.trusted(text=text, function_call=None, function_response=None, thought=None)
    return Content.trusted(parts=[part], role=role)

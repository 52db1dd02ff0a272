"""Formats the parts of an invocation that a judge reads: instructions, tools, retrieved context and steps.

The layout is that of Google ADK 2.13, so that judges read the same text as in ADK, with four differences. Non-ASCII
text stays unchanged, where ADK escapes it to ASCII. What is equal for all sessions of an agent is a text of its own.
Retrieved context is included. Intermediate data grouped by kind
(`IntermediateData`), which ADK leaves out of the context of an answer, is included as steps: first the tools, then the
intermediate responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import FunctionCall, FunctionResponse, Invocation, InvocationEvents
from traceweir.schemas.refused_record import CONTEXT, INTERMEDIATE, TOOL_CALLS, TOOL_RESULTS
from traceweir.scorers.base import require_accepted, require_arguments, require_calls, require_read

NO_STEPS = "No intermediate steps were taken."
NO_TOOLS = "Agent has no tools."
UNKNOWN_TOOLS = "The record does not say which tools the agent has."
NO_GROUNDING = "No grounding metadata was provided."


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStep:
    """Holds one event between question and answer."""

    author: str = ""
    texts: Sequence[str] = ()
    calls: Sequence[FunctionCall] = ()
    responses: Sequence[FunctionResponse] = ()
    grounding: JsonObject | None = None


def steps_of(invocation: Invocation) -> list[EvidenceStep]:
    """Returns the events between question and answer, from either kind of intermediate data."""
    data = invocation.intermediate_data
    if data is None:
        return []
    if isinstance(data, InvocationEvents):
        steps = []
        for event in data.invocation_events:
            parts = (event.content.parts if event.content else None) or []
            step = EvidenceStep(
                author=event.author,
                texts=[part.text for part in parts if part.text],
                calls=[part.function_call for part in parts if part.function_call],
                responses=[part.function_response for part in parts if part.function_response],
                grounding=event.grounding_metadata,
            )
            steps.append(step)
        return steps
    tools = (
        [EvidenceStep(calls=data.tool_uses, responses=data.tool_responses)]
        if data.tool_uses or data.tool_responses
        else []
    )
    responses = [
        EvidenceStep(author=author, texts=[part.text for part in parts if part.text])
        for author, parts in data.intermediate_responses
    ]
    return [*tools, *responses]


def question_of(invocation: Invocation) -> str:
    """Returns the text of the user's message; empty if there is none.

    Raises:
        MissingInput: the source of the invocation did not contain the message.
    """
    if invocation.user_content is None:
        require_read(invocation, "question")
    return invocation.user_content.text if invocation.user_content else ""


def answer_of(invocation: Invocation, with_intermediate: bool = False) -> str:
    """Returns the text of the final response; `with_intermediate` puts the intermediate responses before it.

    Raises:
        MissingInput: the source of the invocation did not contain the response.
    """
    if invocation.final_response is None:
        require_read(invocation, "answer")
    if with_intermediate:
        require_accepted(invocation, INTERMEDIATE)
    final = invocation.final_response.text if invocation.final_response else ""
    before = ["\n".join(step.texts) for step in steps_of(invocation)] if with_intermediate else []
    return "\n".join(text for text in [*before, final] if text)


def instructions_of(*invocations: Invocation) -> str:
    """Returns the developer's instructions to each agent, equal ones once."""
    found = dict.fromkeys(
        f"{name}:\n{text}"
        for invocation in invocations
        for name, agent in _agents(invocation).items()
        if isinstance(text := agent.get("instructions"), str) and text
    )
    return "\n\n".join(found)


def tools_of(*invocations: Invocation, unknown: str = NO_TOOLS) -> str:
    """Returns the tools that each agent can use, as JSON, equal ones once; `unknown` if no agent is known."""
    tools: JsonObject = {}
    for invocation in invocations:
        for name, agent in _agents(invocation).items():
            declared = agent.get("tool_declarations", agent.get("toolDeclarations")) or []
            known = tools.setdefault(name, declared)
            if known != declared:
                both = (each if isinstance(each, list) else [each] for each in (known, declared))
                tools[name] = _distinct(tool for each in both for tool in each)
    return _json({"tool_declarations": tools}) if tools else unknown


def _distinct(values: Iterable[JsonValue]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def tool_steps_of(invocation: Invocation) -> str:
    """Returns the tool calls with their responses, as JSON.

    A response belongs to the call with the same id. A response without an id belongs to the first call of the same
    name that has no id and no response yet.

    Raises:
        MissingInput: the source of the invocation did not contain the arguments of a call.
    """
    require_calls(invocation)
    require_accepted(invocation, TOOL_RESULTS)
    require_arguments(invocation)
    steps = steps_of(invocation)
    calls = [call for step in steps for call in step.calls]
    if not calls:
        return NO_STEPS
    unmatched = [response for step in steps for response in step.responses]
    shown: list[JsonValue] = []
    for number, call in enumerate(calls):
        own = answer_to(call, unmatched)
        if own is not None:
            unmatched.remove(own)
        response: JsonValue = "None" if own is None else _response(own)
        shown.append({"step": number, "tool_call": _call(call), "tool_response": response})
    return _json({"tool_calls_and_response": shown})


def answer_to(call: FunctionCall, responses: Sequence[FunctionResponse]) -> FunctionResponse | None:
    """Returns the response to a call: that of its id, or without ids the first of its name; None if there is none."""
    return next(
        (each for each in responses if each.id == call.id and (call.id is not None or each.name == call.name)), None
    )


def grounding_of(steps: Sequence[EvidenceStep]) -> str:
    """Returns the grounding metadata of the steps, as JSON."""
    found: list[JsonValue] = [
        {"step": number, "author": step.author, "grounding_metadata": step.grounding}
        for number, step in enumerate(steps)
        if step.grounding
    ]
    return _json({"grounding_metadata": found}) if found else NO_GROUNDING


def retrieved_context_of(invocation: Invocation) -> str:
    """Returns the retrieved context, as JSON; empty if there is none.

    Raises:
        MissingInput: a part of it can be in a record that was refused.
    """
    require_accepted(invocation, CONTEXT)
    chunks: list[JsonValue] = [chunk.model_dump(exclude_none=True) for chunk in invocation.retrieved_context or ()]
    return _json(chunks) if chunks else ""


def json_lines(texts: Iterable[str]) -> str:
    """Returns each text as a line of JSON.

    JSON escapes line breaks, so that a line break inside a text cannot look like the start of the next text.
    """
    return "\n".join(json.dumps(text, ensure_ascii=False) for text in texts)


def agent_of(invocation: Invocation) -> str:
    """Returns what the context of a response says about the agent: it is equal for all sessions of the agent."""
    return f"Developer instructions:\n{instructions_of(invocation)}\n\nTool definitions:\n{tools_of(invocation)}\n"


def context_of(invocation: Invocation, steps: Sequence[EvidenceStep]) -> str:
    """Returns the context of a response that follows these steps, without what `agent_of` returns.

    Raises:
        MissingInput: a part of it can be in a record that was refused.
    """
    require_accepted(invocation, TOOL_CALLS, TOOL_RESULTS, INTERMEDIATE)
    parts = [
        f"User prompt:\n{question_of(invocation)}\n",
        f"Grounding metadata:\n{grounding_of(steps)}\n",
    ]
    if retrieved := retrieved_context_of(invocation):
        parts.append(f"Retrieved context:\n{retrieved}\n")
    for step in steps:
        if step.texts:
            parts.append("\n".join(step.texts) + "\n")
        if step.calls:
            parts.append(f"tool_calls:\n{_json([_call(call) for call in step.calls])}\n")
        if step.responses:
            parts.append(f"tool_outputs:\n{_json([_response(response) for response in step.responses])}\n")
    return "\n".join(parts)


def _agents(invocation: Invocation) -> dict[str, JsonObject]:
    details = invocation.app_details or {}
    agents = details.get("agent_details", details.get("agentDetails"))
    return (
        {name: agent for name, agent in agents.items() if isinstance(agent, dict)} if isinstance(agents, dict) else {}
    )


def _call(call: FunctionCall) -> JsonObject:
    return _without_null({"id": call.id, "args": call.args, "name": call.name})


def _response(response: FunctionResponse) -> JsonObject:
    return _without_null({"id": response.id, "name": response.name, "response": response.response})


def _without_null(document: JsonObject) -> JsonObject:
    return {key: value for key, value in document.items() if value is not None}


def _json(document: JsonValue) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)

"""Finds the outputs of tools that an agent writes as messages of the user, because its model calls tools in its texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from traceweir.streams.intake.formats.chat_turns import ChatMessage

_TOOLS_OF_CLINE = (
    "execute_command|read_file|write_to_file|replace_in_file|search_files|list_files|list_code_definition_names"
    "|browser_action|use_mcp_tool|access_mcp_resource|web_fetch|apply_diff|insert_content"
)
"""Those whose results are outputs: the result of a question to the user is what the user says."""
_OF_NAMED_TOOL = re.compile(
    rf"\[(?P<element>{_TOOLS_OF_CLINE})(?: for '[^'\n]*')?\] Result:|EXECUTION RESULT of \[(?P<function>\w+)\]"
)
"""How an output begins that names its tool, in Cline and in OpenHands."""
_FORMS = (
    (re.compile(r"<returncode>-?\d+</returncode>\s*<(?:output|warning)"), re.compile(r"^```", re.MULTILINE)),
    (re.compile(r"<function_results>"), re.compile(r"<function_calls>")),
    (re.compile(r"OBSERVATION:\n"), re.compile(r"\A\s*DISCUSSION\b|<function=\w")),
    (
        re.compile(r"Observation:\s*Execution logs:"),
        re.compile(r"<code>|<end_code>|^Code:\s*\n```(?:py(?:thon)?)?$", re.MULTILINE),
    ),
    (re.compile(r"Observation:"), re.compile(r"^(?:\*\*)?Action(?: \d+)?:(?:\*\*)? ?\w+(?:\[|: ?\S)", re.MULTILINE)),
)
"""How an output begins and how the model has asked for it: mini-SWE-agent, Claude's first form of tools, SWE-agent,
smolagents, and ReAct with `search[Oslo]` or `search: Oslo`."""
_ACTION = re.compile(r"^(?:\*\*)?Action:", re.MULTILINE)
_ACTION_INPUT = re.compile(r"^(?:\*\*)?Action Input:|\"action_input\"\s*:", re.MULTILINE)
"""What ReAct has after an action: in lines, or in JSON."""
_KIND = "output of a tool"
_MISSING = (
    "the tool calls are not known: the model calls tools in its texts, and their outputs stand in the name of the user"
)


def with_outputs_apart(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Returns messages without those of the user that have the output of a tool: they begin no turn, and are named.

    Such a message stands directly after a text in which the model asks for a tool in the same form, or after another
    output of it. Any other message that is like an output is a question: people report results and observations, too.
    """
    found: list[ChatMessage] = []
    asking = ""
    for message in messages:
        if message.role == "user" and asking and _is_output(message.text.lstrip(), asking):
            # The outputs of several tools can follow one text.
            found.append(ChatMessage("assistant", "", unread=Counter([_KIND]), at=message.at, missing=(_MISSING,)))
            continue
        asking = message.text if message.role == "assistant" else ""
        found.append(message)
    return found


def _is_output(text: str, asking: str) -> bool:
    named = _OF_NAMED_TOOL.match(text)
    if named is not None and named["element"]:
        return f"<{named['element']}>" in asking
    if named is not None:
        return f"<function={named['function']}>" in asking
    if any(output.match(text) and asked.search(asking) for output, asked in _FORMS):
        return True
    action = _ACTION.search(asking) if text.startswith("Observation:") else None
    return action is not None and _ACTION_INPUT.search(asking, action.end()) is not None

"""AgentScope: the standard, with the results of tools in a frame that has their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.conventions.convention import Convention

_STATES = {"success": False, "error": True, "interrupted": True, "denied": True}
"""The states of a result, each with whether the tool failed."""
_KEYS = {"type", "id", "content", "metadata", "state", "is_interrupted", "stream", "is_last"}
"""The keys of a result of AgentScope. The documents of other tools have a content and an id too."""


def _result_with_state(value: Any) -> Mapping[str, Any] | None:
    """Returns the result in the form of MCP, which has the same blocks."""
    if not isinstance(value, dict) or not {"content", "metadata", "id"} <= set(value) <= _KEYS:
        return None
    if not isinstance(value["content"], list):
        return None
    state = value.get("state", "interrupted" if value.get("is_interrupted") else "success")
    known = isinstance(state, str) and state in _STATES
    return {"content": value["content"], "isError": _STATES[state]} if known else None


AGENTSCOPE = Convention(
    name="AgentScope",
    frameworks=(("agentscope", "agentscope"),),
    inner_result=_result_with_state,
)

"""Microsoft's Agent Framework: the standard, with the id of the last response as the conversation."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.span import Attributes

_CONVERSATION = "gen_ai.conversation.id"
_RESPONSE = "resp_"
"""The beginning of the ids of OpenAI's responses: as the id of a conversation, each turn has another one."""


def _no_session(attributes: Attributes) -> str:
    return _CONVERSATION if first_text(attributes, _CONVERSATION).startswith(_RESPONSE) else ""


AGENT_FRAMEWORK = Convention(
    name="Microsoft's Agent Framework",
    switches=(Switch("ENABLE_SENSITIVE_DATA=true", scopes=("agent_framework*",)),),
    frameworks=(("agent_framework", "microsoft-agent-framework"),),
    no_session=_no_session,
)

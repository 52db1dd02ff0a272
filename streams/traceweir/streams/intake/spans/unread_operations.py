"""Names the operations that no convention knows, of spans that have messages all the same."""

from __future__ import annotations

from collections.abc import Iterable

from traceweir.schemas.text import printable
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.span_events import event_name
from traceweir.streams.intake.spans.tree import Node

_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
_EVENTS = frozenset(("gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message", "gen_ai.choice"))
_WITHOUT_ANSWERS = frozenset(("embeddings",))
"""Operations that have texts, and are no work of an agent."""
_MAX_NAMED = 3
_NAME_CHARS = 60


def unread_operations(nodes: Iterable[Node]) -> str:
    """Returns a sentence that names the operations whose messages are not read; empty if there are none.

    A span right around a model call or a tool, or inside one, can repeat its messages, which are read there.

    Args:
        nodes: The spans.
    """
    found: dict[str, None] = {}
    for node in nodes:
        if node.kind == "other" and (operation := operation_of(node.span.attributes)) and _has_messages(node.span):
            inside = node.around is not None and node.around.kind in ("llm", "tool")
            around = any(child.kind in ("llm", "tool", "agent") for child in node.children)
            if not (inside or around or operation in _WITHOUT_ANSWERS):
                found[printable(operation, _NAME_CHARS)] = None
    if not found:
        return ""
    names = ", ".join(map(repr, sorted(found)[:_MAX_NAMED])) + (", and others" if len(found) > _MAX_NAMED else "")
    return (
        f"the messages of spans with gen_ai.operation.name {names} are not read: no convention knows what they are; put a "
        "span of the operation invoke_agent around the work, with gen_ai.input.messages and gen_ai.output.messages"
    )


def _has_messages(span: Span) -> bool:
    return any(key in span.attributes for key in _MESSAGES) or any(event_name(each) in _EVENTS for each in span.events)

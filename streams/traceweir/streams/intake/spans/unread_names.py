"""Names the attributes that may tell a session, a user or a tool, but whose names no convention knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.key_sets import KeyTable
from traceweir.streams.intake.spans.tree import Node

_KNOWN = frozenset(
    (
        *keys_of(lambda each: each.shared_sessions),
        *keys_of(lambda each: each.sessions),
        *keys_of(lambda each: each.users),
        *keys_of(lambda each: each.tool_names),
        *keys_of(lambda each: each.other_ids),
    )
)
_ENDS = {
    "session": ("sessionid", "conversationid", "threadid", "chatid"),
    "user": ("userid", "customerid"),
    "tool": ("toolname",),
}
"""The ends of names without their punctuation, in lower case."""
_WAYS_OUT = {
    "session": "the session is not read: {} may have it, which no convention names; write it as session.id or "
    "gen_ai.conversation.id",
    "user": "the user is not read: {} may have it, which no convention names; write it as user.id",
    "tool": "the tool calls of some spans are not read: {} may tell one, which no convention names; write it as "
    "gen_ai.tool.name on a span with gen_ai.operation.name=execute_tool",
}
_LAST_LETTERS = ("d", "D", "e", "E")
_MAX_KEY_CHARS = 100


def unread_names(nodes: Iterable[Node], *, has_session: bool, has_user: bool, tools: Collection[str]) -> dict[str, str]:
    """Returns a sentence for each of `session`, `user` and `tool` that an attribute may tell, but is not read from.

    Args:
        nodes: The spans of the invocation and those above it.
        has_session: Whether the session was read.
        has_user: Whether the user was read.
        tools: The names of the tools whose calls were read.
    """
    known = {kind for kind, is_read in (("session", has_session), ("user", has_user)) if is_read}
    found: dict[str, str] = {}
    for node in nodes:
        for key, kind in _CANDIDATES.of(node.span.key_set):
            if kind in known or kind in found:
                continue
            text = first_text(node.span.attributes, key)
            if not text or (kind == "tool" and (node.kind != "other" or _is_in_tool(node) or text in tools)):
                continue
            found[kind] = key
    return {kind: _WAYS_OUT[kind].format(f"the attribute {key!r}") for kind, key in found.items()}


def _candidates(keys: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, kind) for key in keys if key.endswith(_LAST_LETTERS) and (kind := _kind_of_key(key)))


def _kind_of_key(key: str) -> str:
    if key in _KNOWN or len(key) > _MAX_KEY_CHARS:
        return ""
    name = re.sub(r"[^a-z0-9]", "", key.lower())
    return next((kind for kind, ends in _ENDS.items() if name.endswith(ends)), "")


_CANDIDATES = KeyTable(_candidates)


def _is_in_tool(node: Node) -> bool:
    return node.around is not None and node.around.kind == "tool"

"""Defines Message: what a model reads or writes, whatever the shape in which an instrumentation wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Role = Literal["system", "user", "assistant", "tool"]

HIDDEN = frozenset({"__REDACTED__", "<elided>", "[REDACTED]", "redacted-by-litellm"})
"""The texts that OpenInference, ADK, Strands and LiteLLM write in place of hidden content."""


class Call(NamedTuple):
    """A tool call that a model asks for."""

    id: str
    """Id of the call; empty if the message has none."""
    name: str
    """Name of the tool."""
    args: Any
    """Arguments as decoded; ABSENT if the message does not have them."""


class Result(NamedTuple):
    """The result of a tool, as the model reads it."""

    id: str
    """Id of the call; empty if the message has none."""
    name: str
    """Name of the tool; empty if the message has none."""
    value: Any
    """The result; ABSENT if the message does not have it."""
    failed: bool = False
    """Whether the message says that the tool failed."""


@dataclass(slots=True)
class Message:
    """A message: its role, its texts, and the tool calls and tool results in it."""

    role: Role
    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    name: str = ""
    finish: str = ""
    hidden: bool = False
    """Whether the message had content that was taken out."""
    _ids: set[str] = field(default_factory=set, compare=False, repr=False)

    def add_call(self, call: Call) -> None:
        """Adds a call, unless the message has a call with its id."""
        if not call.id or call.id not in self._ids:
            self._ids.add(call.id)
            self.calls.append(call)

    @property
    def has_content(self) -> bool:
        """Whether the message has a text, a call or a result."""
        return bool(self.calls or self.results or any(self.texts))

    @property
    def text(self) -> str:
        """The non-empty texts, joined by line breaks."""
        return "\n".join(text for text in self.texts if text)


def is_hidden(value: Any) -> bool:
    """Returns whether a value stands in place of hidden content."""
    return isinstance(value, str) and value in HIDDEN

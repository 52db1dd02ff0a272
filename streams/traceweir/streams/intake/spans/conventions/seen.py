"""Defines SeenInvocation: an invocation as read, of which a convention tells what its spans cannot contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from traceweir.streams.intake.spans.model_calls import ModelCall
    from traceweir.streams.intake.spans.tool_calls import ToolCall
    from traceweir.streams.intake.spans.tree import Node


class SeenInvocation(NamedTuple):
    """An invocation as read from its spans."""

    nodes: Sequence[Node]
    """The spans, in the order of their start."""
    scopes: Set[str]
    """The names of their instrumentation scopes."""
    models: Sequence[ModelCall]
    """The model calls."""
    calls: Sequence[ToolCall]
    """The tool calls."""
    agent: str
    """Name of the agent; empty if unknown."""
    name_of: Callable[[Node], str]
    """Tells the name of the agent that a span itself has; empty if it has none."""
    why: Callable[[], str]
    """Tells why content is not in the spans, or the setting that turns it on."""
